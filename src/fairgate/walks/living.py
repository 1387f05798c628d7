"""Random runs of protocols on self-organising rings, in virtual time: nodes join, leave and crash under load.

First all nodes except the joiners form a ring, each through a contact. When the ring is complete, the work begins.
Joiners and leavers make no requests. A leaver stays for a while and forwards the messages it gets. The rest is as in
walks/dht.py.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import replace
from typing import Any

from fairgate.core.layers import MakeNode, over
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.overlay.chord import Chord
from fairgate.overlay.gates import Gates
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.pastry import Pastry
from fairgate.overlay.spans import CIRCLE
from fairgate.overlay.titles import Titled
from fairgate.scenario.manual import Violation
from fairgate.walks.dht import MS, SECOND, Conditions, DhtRun, RunSummary

PERIOD = 1 * SECOND  # of the ring's upkeep; a round trip takes at most 0.4 s
LINGER = 30 * SECOND  # how long a node that has left forwards messages
LEASE = 3 * SECOND
MOST_EVENTS = 400_000  # per run
SMALL_TABLES = {"chord_successors": 3, "chord_fingers": 2, "pastry_b": 1, "pastry_leaves": 4}
LIVING: dict[str, type[Titled]] = {"chord": Chord, "pastry": Pastry}


class Untitled:
    """An overlay without titles, to show what they are for.

    Any node that believes it owns a key serves it, and no state moves with the key.
    """

    def arrive(self: Any, src: int, msg: Any) -> None:
        Overlay.arrive(self, src, msg)

    def give(self, span: Any) -> None:
        pass


class UntitledChord(Untitled, Chord):
    pass


class UntitledPastry(Untitled, Pastry):
    pass


UNTITLED: dict[str, Any] = {"chord": UntitledChord, "pastry": UntitledPastry}


class LivingRun(DhtRun):
    nodes: dict[int, Any]

    def __init__(self, make: MakeNode, setup: Setup, conditions: Conditions, rng: random.Random) -> None:
        super().__init__(make, setup, replace(conditions, until=0), rng)  # no faults before the ring is complete
        self.until = conditions.until
        self.gathering = [me for me in setup.members if me not in self.joiners]
        self.opened = False
        self.parted: set[int] = set()

    # Membership.

    def join(self, me: int) -> None:
        """Join through a random node of the ring, and retry in case that node was gone."""
        if me not in self.crashed and me not in self.parted and not self.nodes[me].joined:
            there = self.there()
            self.step(me, "on_join", self.rng.choice(there) if there else me)
            self.at(5 * PERIOD, "join", me)

    def there(self) -> list[int]:
        return [me for me, node in sorted(self.nodes.items()) if me not in self.crashed and node.joined]

    def part(self, me: int) -> None:
        self.parted.add(me)
        self.step(me, "on_leave")
        self.at(LINGER, "crash", me)

    def die(self, me: int) -> None:
        self.crash(me)
        self.left[me] = 0

    def reset(self, me: int) -> None:
        if me not in self.crashed:
            super().reset(me)
            self.join(me)

    def ranges_changed(self) -> None:
        """A no-op: these overlays find out by themselves."""

    # The run.

    def is_whole(self) -> bool:
        nodes = [self.nodes[me] for me in self.gathering]
        if not all(node.joined and (isinstance(node, Untitled) or node.titles == node.owned()) for node in nodes):
            return False
        owned: int = sum(past - first for node in nodes for first, past in node.owned())
        return owned == CIRCLE

    def see_whole(self) -> None:
        if self.is_whole():
            self.opened = True
            patience = self.now + self.conditions.patience
            self.conditions = replace(self.conditions, until=self.now + self.until, patience=patience)
            self.begin_work(self.until)
        else:
            self.at(PERIOD, "see_whole")

    def begin_work(self, until: int) -> None:
        for me in self.nodes:
            self.want_later(me)
        for me in self.joiners:
            self.at(self.some(until), "join", me)
        for me in self.leavers:
            self.at(self.some(until), "part", me)
        stay = sorted(set(self.gathering) - set(self.leavers))
        victims = self.rng.sample(stay, self.conditions.crashes + self.conditions.resets)
        for rank, victim in enumerate(victims):
            self.at(self.some(until), "die" if rank < self.conditions.crashes else "reset", victim)

    def go(self) -> RunSummary:
        for rank, me in enumerate(self.gathering):
            self.at(rank * 300 * MS, "join", me)
        self.at(len(self.gathering) * 300 * MS, "see_whole")
        for _ in range(MOST_EVENTS):
            if not self.events or self.now > self.conditions.patience:
                break
            self.now, _, call, arguments = heapq.heappop(self.events)
            getattr(self, call)(*arguments)
            if self.opened and not self.waiting and not self.inside and not any(self.left.values()):
                break
        else:
            raise Violation(f"liveness: still busy after {MOST_EVENTS} events")
        if not self.opened:
            raise Violation(f"ring: still incomplete at {self.now / SECOND:.1f} s")
        if self.waiting:
            raise Violation(f"liveness: nodes {sorted(self.waiting)} wait at {self.now / SECOND:.1f} s")
        self.summary.marks = self.marks
        return self.summary


def one_run(
    overlay: Any, protocol: type[Mutex], seed: int, conditions: Conditions, options: dict[str, Any] | None = None
) -> RunSummary:
    rng = random.Random(seed)
    n = rng.randint(4, 8) + conditions.joins + conditions.leaves
    chosen = {"replicas": rng.choice([3, 4, 5]), "retry": 1 * SECOND, "base": 0, "overlay_upkeep": PERIOD}
    setup = Setup(tuple(rng.sample(range(10_000), n)), options={**chosen, **SMALL_TABLES, **(options or {})})
    try:
        return LivingRun(over(overlay, over(Gates, protocol)), setup, conditions, rng).go()
    except Violation as broken:
        raise Violation(f"{broken} [seed {seed}]") from broken
