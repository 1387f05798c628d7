"""Random runs of a protocol on a DHT in virtual time: latencies are random, so messages overtake each other.

A run is a small system whose nodes make a few requests each. `Conditions` describes the workload and the faults (loss,
duplication, crashes, resets, churn). A breach of a property raises Violation. So does a run that ends while a node
still waits, because no events are left or its time is over.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.clock import FURTHEST, drawn_clock
from fairgate.core.ids import NIL
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode, over
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.overlay.full import Full
from fairgate.overlay.gates import Gates, gates_of
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.ring import ring_of
from fairgate.overlay.settled import SettledChord, SettledPastry
from fairgate.scenario.manual import ManualNetwork, Violation

MS = 1_000_000
SECOND = 1_000 * MS
NOTICED = 2 * SECOND  # how long it may take until a node misses the pings of a neighbour on a path
MOST_EVENTS = 60_000  # per run; a limit on virtual time is not enough, since time may stand still


class Strides(Full):
    """A settled overlay with many hops: each node knows only the next `stride` nodes on the ring."""

    def next_hop(self, key: int) -> int:
        owner = self.ring.successor(key)
        if owner == self.me:
            return NIL
        mine = self.ring.rank(place_of(self.me))
        ahead = (self.ring.rank(place_of(owner)) - mine) % self.ring.size
        return self.ring.ident(mine + min(ahead, self.setup.options.get("stride", 1)))


OVERLAYS: dict[str, type[Overlay]] = {
    "strides": Strides,
    "full": Full,
    "chord": SettledChord,
    "pastry": SettledPastry,
}
SMALL_TABLES = {"chord_successors": 1, "chord_fingers": 1, "pastry_b": 1, "pastry_leaves": 2}


def over_overlay(overlay: str, protocol: type[Mutex]) -> MakeNode:
    return over(OVERLAYS[overlay], over(Gates, protocol))


def over_strides(protocol: type[Mutex]) -> MakeNode:
    return over_overlay("strides", protocol)


@dataclass(frozen=True)
class Conditions:
    k: int = 1
    requests: int = 3  # per node
    latency: tuple[int, int] = (0, 200 * MS)
    think: int = 1 * SECOND  # the longest pause before a request
    idle: int = 1  # every second node pauses so many times as long
    stay: int = 300 * MS
    cancel: float = 0.0  # share of requests that are cancelled if they still wait after a random time
    loss: float = 0.0
    dup: float = 0.0
    resets: int = 0  # nodes that lose their memory, once each, and with it the request they had
    crashes: int = 0  # nodes that stop forever
    detect: int = NIL  # the other nodes learn of a crash within this time; NIL: never
    joins: int = 0  # nodes that join the ring later; they make no requests
    leaves: int = 0  # nodes that leave the ring and stop two seconds later; they make no requests
    drift: int = 0  # how much faster a clock may run than the slowest one, in parts per million; 0: one clock for all
    until: int = 20 * SECOND  # all faults happen before this time
    patience: int = 2_000 * SECOND  # the run ends at this time


@dataclass
class RunSummary:
    """What happened in a run."""

    hops: int = 0
    entries: int = 0
    lost: int = 0  # permits that ended before their holders left
    waited: int = 0  # by all entrants together, in ns
    overtakes: int = 0  # pairs (request that entered, earlier request that still waited)
    kinds: dict[str, int] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)


class DhtRun(ManualNetwork):
    def __init__(self, make: MakeNode, setup: Setup, conditions: Conditions, rng: random.Random) -> None:
        self.rng = rng
        self.conditions = conditions
        self.make = make
        self.events: list[tuple[int, int, str, tuple[Any, ...]]] = []
        self.sequence = 0
        self.summary = RunSummary()
        self.left = dict.fromkeys(setup.members, conditions.requests)
        self.since: dict[int, int] = {}  # request -> when it was made
        drift, members = conditions.drift, setup.members
        clocks = {me: drawn_clock(drift, FURTHEST, rng.randrange) for me in members} if drift else None
        super().__init__(make, setup, slots=False, chooser=from_floats(rng.random), census=False, clocks=clocks)
        churned = setup.members[: conditions.joins + conditions.leaves]
        self.joiners, self.leavers = churned[: conditions.joins], churned[conditions.joins :]
        self.left.update(dict.fromkeys(churned, 0))
        for me in self.joiners:
            ring_of(setup).remove(me)

    def at(self, delay: int, call: str, *arguments: Any) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (self.now + delay, self.sequence, call, arguments))

    def some(self, most: int) -> int:
        return self.rng.randint(0, most)

    def acquire(self, me: int) -> int:
        self.since[self.requests + 1] = self.now
        return super().acquire(me)

    def do_send(self, me: int, dst: int, msg: Message) -> None:
        self.summary.hops += 1
        self.summary.kinds[msg.tag] = self.summary.kinds.get(msg.tag, 0) + 1
        storm = self.now < self.conditions.until
        if storm and self.rng.random() < self.conditions.loss:
            return
        for _ in range(1 + (storm and self.rng.random() < self.conditions.dup)):
            self.at(self.rng.randint(*self.conditions.latency), "arrive", me, dst, msg)

    def do_timer(self, me: int, name: str, delay: int) -> None:
        super().do_timer(me, name, delay)
        due = self.timers[me, name]
        self.at(due - self.now, "ring", me, name, due)

    def do_granted(self, me: int, request: int, slot: int, fence: int) -> None:
        super().do_granted(me, request, slot, fence)
        self.summary.entries += 1
        self.summary.waited += self.now - self.since[request]
        self.summary.overtakes += sum([earlier < request for earlier in self.waiting.values()])
        self.at(self.some(self.conditions.stay), "leave", me, request)

    # Events.

    def arrive(self, src: int, dst: int, msg: Message) -> None:
        self.step(dst, "on_message", src, msg)

    def ring(self, me: int, name: str, due: int) -> None:
        if self.timers.get((me, name)) == due:
            self.fire(me, name)

    def want_later(self, me: int) -> None:
        rarely = self.conditions.idle if self.setup.members.index(me) % 2 else 1
        self.at(self.some(self.conditions.think * rarely), "want", me)

    def want(self, me: int) -> None:
        if self.left[me] <= 0 or me in self.crashed:
            return
        self.left[me] -= 1
        request = self.acquire(me)
        if self.rng.random() < self.conditions.cancel:
            self.at(self.some(self.conditions.think), "give_up", me, request)

    def give_up(self, me: int, request: int) -> None:
        if self.waiting.get(me) == request:
            self.cancel(me)
            self.want_later(me)

    def leave(self, me: int, request: int) -> None:
        if me in self.inside and self.inside[me].request == request:
            self.release(me)
            self.want_later(me)

    def do_lost(self, me: int, request: int, why: str) -> None:
        super().do_lost(me, request, why)
        self.summary.lost += 1
        self.want_later(me)

    def die(self, me: int) -> None:
        for peer in gates_of(self.nodes[me]).linked():  # they miss its pings
            self.at(self.some(NOTICED), "step", peer, "on_suspect", me, "pings")
        self.crash(me)
        self.left[me] = 0
        ring_of(self.setup).remove(me)
        self.ranges_changed()
        for peer in self.nodes:
            if self.conditions.detect != NIL:
                self.at(self.some(self.conditions.detect), "step", peer, "on_crash", me)

    def join(self, me: int) -> None:
        ring_of(self.setup).add(me)
        self.ranges_changed()

    def part(self, me: int) -> None:
        ring_of(self.setup).remove(me)
        self.ranges_changed()
        self.at(2 * SECOND, "die", me)

    def ranges_changed(self) -> None:
        for me in self.nodes:
            self.step(me, "on_view", 0, (), ())

    def reset(self, me: int) -> None:
        """The node loses its memory, including its request."""
        if me in self.crashed:
            return
        wanted = me in self.waiting or me in self.inside
        self.crash(me)
        self.crashed.discard(me)
        self.nodes[me] = self.make(me, self.setup, self.outboxes[me])
        self.step(me, "on_start")
        if wanted:
            self.want_later(me)

    # The run.

    def go(self) -> RunSummary:
        for me in self.nodes:
            self.want_later(me)
        for me in self.joiners:
            self.at(self.some(self.conditions.until), "join", me)
        for me in self.leavers:
            self.at(self.some(self.conditions.until), "part", me)
        stay = sorted(set(self.nodes) - {*self.joiners, *self.leavers})
        victims = self.rng.sample(stay, self.conditions.crashes + self.conditions.resets)
        for rank, victim in enumerate(victims):
            call = "die" if rank < self.conditions.crashes else "reset"
            self.at(self.some(self.conditions.until), call, victim)
        for _ in range(MOST_EVENTS):
            if not self.events:
                break
            due, _, call, arguments = heapq.heappop(self.events)
            self.now = due
            getattr(self, call)(*arguments)
            if due > self.conditions.patience:
                break
            if not self.waiting and not self.inside and not any(self.left.values()):
                break
        else:
            raise Violation(f"liveness: still busy after {MOST_EVENTS} events")
        if self.waiting:
            raise Violation(f"liveness: nodes {sorted(self.waiting)} wait at {self.now / SECOND:.1f} s")
        self.summary.marks = self.marks
        return self.summary


def random_setup(rng: random.Random, options: dict[str, Any] | None = None, least: int = 3, k: int = 1) -> Setup:
    n = rng.randint(least, 8)
    replicas = rng.choice([3, 4, 5])
    chosen = {"replicas": replicas, "stride": rng.choice([1, 1, 2]), "retry": 1 * SECOND, **SMALL_TABLES}
    members = tuple(rng.sample(range(10_000), n))
    return Setup(members, k, options={**chosen, **(options or {})})


def one_run(make: MakeNode, seed: int, conditions: Conditions, options: dict[str, Any] | None = None) -> RunSummary:
    rng = random.Random(seed)
    try:
        setup = random_setup(rng, options, 3 + conditions.joins + conditions.leaves, conditions.k)
        return DhtRun(make, setup, conditions, rng).go()
    except Violation as broken:
        raise Violation(f"{broken} [seed {seed}]") from broken


def how_runs_end(
    make: MakeNode, seeds: range, conditions: Conditions, options: dict[str, Any] | None = None
) -> dict[str, int]:
    """Property -> number of runs that break it; "" counts the runs that break none."""
    ends: dict[str, int] = {}
    for seed in seeds:
        try:
            one_run(make, seed, conditions, options)
            end = ""
        except Violation as broken:
            end = str(broken).split(":", maxsplit=1)[0]
        except AssertionError:  # an assertion of the protocol itself
            end = "assertion"
        ends[end] = ends.get(end, 0) + 1
    return ends
