"""Random runs of a protocol on a DHT in virtual time: latencies are random, so messages overtake each other.

    outcome = run(make_stack("sigma", "full"), Spec(nodes=6), seed=7)

Each node makes `requests` requests, stays inside for a while, and pauses in between. Messages are lost and duplicated.
Nodes lose their memory (`resets`: their replicas and the request they had). Nodes stop forever (`crashes`: their keys
go to the next node, which knows nothing about them). Nodes join the ring (`joins`), or leave it and come back later
with empty memory (`absences`). Then the faults end, and every node must enter.

What must hold: at most k nodes are inside, not counting those whose permit was reported lost; only waiting nodes are
granted; every live node is served in the end. `Outcome.broken` names the property that broke. A breach is `excused` if
too many replicas lost their memory since the first of the nodes inside made its request: so many that k+1 quorums need
no longer have a replica in common that remembers (SG's figure 2).
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.clock import FURTHEST, TRUE, Clocks, drawn_clock
from fairgate.core.kbr import Routed, replica_keys
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode, over
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.overlay.ring import ring_of
from fairgate.registry import LAYERS, find_protocol

MS = 1_000_000
SECOND = 1_000 * MS


@dataclass(frozen=True)
class Spec:
    nodes: int = 5
    only_clients_ask: bool = False  # nodes that host a replica make no requests
    k: int = 1
    requests: int = 2  # per client
    think: int = 400 * MS  # the longest pause before a request
    stay: int = 100 * MS  # the longest stay inside
    latency: int = 200 * MS  # the longest latency of a message
    late: float = 0.0  # share of messages that take up to ten times as long
    fifo: bool = False  # no message overtakes another one between the same two nodes
    loss: float = 0.0
    dup: float = 0.0
    resets: int = 0
    crashes: int = 0
    joins: int = 0  # so many nodes are not on the ring at the start
    absences: int = 0
    drift: int = 0  # how much faster a clock may run than the slowest one, in parts per million; 0: one clock for all
    faults_until: int = 3 * SECOND
    most_events: int = 60_000  # more count as a message storm
    most_time: int = 600 * SECOND
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    broken: str = ""  # k, grant, hang, storm, or the name of an exception
    why: str = ""
    excused: bool = False
    entries: int = 0
    lost: int = 0
    messages: int = 0
    events: int = 0
    now: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)


class Broken(Exception):
    pass


def make_stack(protocol: str | type[Routed], overlay: str = "full") -> MakeNode:
    """A protocol, or a mutant's class, above gates above an overlay."""
    made: MakeNode = find_protocol(protocol) if isinstance(protocol, str) else protocol
    for layer in ("gates", overlay):
        made = over(LAYERS[layer], made)
    return made


class World:
    def __init__(self, make: MakeNode, spec: Spec, rng: random.Random) -> None:
        self.make = make
        self.spec = spec
        self.rng = rng
        self.setup = Setup(tuple(range(spec.nodes)), spec.k, options=spec.options)
        self.keys = replica_keys(self.setup)
        self.ring = ring_of(self.setup)
        self.outcome = Outcome()
        self.queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.number = itertools.count()
        self.now = 0
        self.timers: dict[tuple[int, str], int] = {}  # (node, name) -> number of the event that fires it
        self.channels: dict[tuple[int, int], int] = {}  # fifo: when the last message arrives
        self.requests = 0
        self.waiting: dict[int, tuple[int, int]] = {}  # node -> request, time of the request
        self.inside: dict[int, tuple[int, int]] = {}
        players = {self.ring.successor(key) for key in self.keys} if spec.only_clients_ask else set()
        self.left = {me: spec.requests for me in range(spec.nodes) if me not in players}
        self.down: set[int] = set()
        self.memories_lost: list[int] = []  # times, one entry per replica that was lost
        self.clocks: Clocks = {}
        if spec.drift:
            self.clocks = {me: drawn_clock(spec.drift, FURTHEST, rng.randrange) for me in range(spec.nodes)}
        self.outboxes: dict[int, Collected] = {}
        self.nodes: dict[int, Node] = {}
        for me in range(spec.nodes - spec.joins, spec.nodes):
            self.down.add(me)
            self.ring.remove(me)
            self.later(rng.randrange(spec.faults_until), self.join, me)
        for me in range(spec.nodes - spec.joins):
            self.start(me)
            if me in self.left:
                self.later(rng.randrange(spec.think + 1), self.ask, me)
        for _ in range(spec.resets):
            self.later(rng.randrange(spec.faults_until), self.reset, rng.randrange(spec.nodes))
        for _ in range(spec.crashes):
            self.later(rng.randrange(spec.faults_until), self.crash, rng.randrange(spec.nodes))
        for _ in range(spec.absences):
            self.later(rng.randrange(spec.faults_until), self.go_away, rng.randrange(spec.nodes))

    def later(self, delay: int, what: Callable[..., None], *arguments: Any) -> int:
        number = next(self.number)
        heapq.heappush(self.queue, (self.now + delay, number, what, arguments))
        return number

    def run(self) -> Outcome:
        try:
            while self.queue and (self.waiting or self.inside or any(self.left.values())):
                self.now, number, what, arguments = heapq.heappop(self.queue)
                what(*arguments) if what != self.fire else self.fire(number, *arguments)
                self.check_length()
            if self.waiting:
                raise Broken(f"hang: nothing moves any more, and nodes {sorted(self.waiting)} wait")
        except Broken as broken:
            self.outcome.broken, _, self.outcome.why = str(broken).partition(": ")
        except Exception as error:  # for example an assertion in a mutant
            self.outcome.broken, self.outcome.why = type(error).__name__, str(error)
        self.outcome.now = self.now
        return self.outcome

    def check_length(self) -> None:
        self.outcome.events += 1
        if self.outcome.events > self.spec.most_events:
            raise Broken(f"storm: {self.outcome.events} events, and nodes {sorted(self.waiting)} wait")
        if self.now > self.spec.most_time:
            raise Broken(f"hang: nodes {sorted(self.waiting)} wait after {self.now / SECOND:.0f} s")

    # Events.

    def start(self, me: int) -> None:
        self.outboxes[me] = Collected(from_floats(self.rng.random))
        self.nodes[me] = self.make(me, self.setup, self.outboxes[me])
        self.step(me, "on_start")

    def step(self, me: int, call: str, *arguments: Any) -> None:
        if me in self.down:
            return
        self.nodes[me].now = self.clocks.get(me, TRUE).reading(self.now)
        getattr(self.nodes[me], call)(*arguments)
        for effect in self.outboxes[me].drain():
            getattr(self, f"do_{effect[0]}")(me, *effect[1:])

    def ask(self, me: int) -> None:
        if me in self.down or not self.left[me] or me in self.waiting or me in self.inside:
            return
        self.left[me] -= 1
        self.requests += 1
        self.waiting[me] = (self.requests, self.now)
        self.step(me, "on_acquire", self.requests)

    def leave(self, me: int, request: int) -> None:
        if self.inside.get(me, (0, 0))[0] == request:
            del self.inside[me]
            self.step(me, "on_release", request)
            self.ask_later(me)

    def ask_later(self, me: int) -> None:
        self.later(self.rng.randrange(self.spec.think + 1), self.ask, me)

    def fire(self, number: int, me: int, name: str) -> None:
        if self.timers.get((me, name)) == number:
            del self.timers[me, name]
            self.step(me, "timer_due", name)

    def forget(self, me: int) -> None:
        """The node's state is lost. If it had a request, it will make it again."""
        self.memories_lost += [self.now for key in self.keys if self.ring.successor(key) == me]
        for timer in [timer for timer in self.timers if timer[0] == me]:
            del self.timers[timer]
        if self.waiting.pop(me, None) or self.inside.pop(me, None):
            self.left[me] += 1

    def reset(self, me: int) -> None:
        if me not in self.down:
            self.forget(me)
            self.start(me)
            if me in self.left:
                self.ask_later(me)

    def crash(self, me: int) -> None:
        if self.stop(me):
            self.left.pop(me, None)

    def go_away(self, me: int) -> None:
        if self.stop(me):
            self.later(self.rng.randrange(self.spec.faults_until), self.join, me)

    def stop(self, me: int) -> bool:
        """Take the node off the ring, unless it is the last one."""
        if me in self.down or len(self.down) == self.spec.nodes - 1:
            return False
        self.forget(me)
        self.down.add(me)
        self.ring.remove(me)
        self.tell_neighbours(me)
        return True

    def join(self, me: int) -> None:
        self.down.remove(me)
        self.ring.add(me)
        self.start(me)
        self.tell_neighbours(me)
        if me in self.left:
            self.ask_later(me)

    def tell_neighbours(self, me: int) -> None:
        """The nodes whose keys change learn of it at once; nobody else does."""
        rank = self.ring.rank(place_of(me))
        for neighbour in sorted({self.ring.ident(rank + step) for step in (-1, 0, 1)}):
            self.step(neighbour, "on_view", 0, (), ())

    # Effects of nodes.

    def do_send(self, me: int, dst: int, msg: Message) -> None:
        self.outcome.messages += 1
        kind = msg.tag
        self.outcome.kinds[kind] = self.outcome.kinds.get(kind, 0) + 1
        faulty = self.now < self.spec.faults_until
        if faulty and self.rng.random() < self.spec.loss:
            return
        for _ in range(2 if faulty and self.rng.random() < self.spec.dup else 1):
            slow = 10 if self.spec.late and self.rng.random() < self.spec.late else 1
            at = self.now + self.rng.randrange(self.spec.latency * slow + 1)
            if self.spec.fifo:
                at = self.channels[me, dst] = max(at, self.channels.get((me, dst), 0))
            self.later(at - self.now, self.step, dst, "on_message", me, msg)

    def do_timer(self, me: int, name: str, delay: int) -> None:
        due = self.clocks.get(me, TRUE).time(self.nodes[me].now + delay)
        self.timers[me, name] = self.later(due - self.now, self.fire, me, name)

    def do_untimer(self, me: int, name: str) -> None:
        self.timers.pop((me, name), None)

    def do_granted(self, me: int, request: int, slot: int, fence: int) -> None:
        number, since = self.waiting.pop(me, (0, 0))
        if number != request:
            raise Broken(f"grant: node {me} was granted request {request}, which does not wait")
        self.inside[me] = (request, since)
        self.outcome.entries += 1
        if len(self.inside) > self.spec.k:
            self.outcome.excused = self.is_excused()
            raise Broken(f"k: {sorted(self.inside)} are inside")
        self.later(self.rng.randrange(self.spec.stay + 1), self.leave, me, request)

    def is_excused(self) -> bool:
        n = len(self.keys)
        m: int = self.spec.options.get("quorum", n // (self.spec.k + 1) + 1)
        first = min(since for _, since in self.inside.values())
        return sum(at >= first for at in self.memories_lost) >= (self.spec.k + 1) * m - n

    def do_lost(self, me: int, request: int, why: str) -> None:
        self.outcome.lost += 1
        self.outcome.marks.add(why)
        if self.inside.get(me, (0, 0))[0] == request:
            del self.inside[me]
            self.ask_later(me)

    def do_note(self, me: int, mark: str) -> None:
        self.outcome.marks.add(mark)


def run(make: MakeNode, spec: Spec, seed: int) -> Outcome:
    return World(make, spec, random.Random(seed)).run()
