"""Random runs of End-to-End in virtual time: those of dht_walk, with cancels, joining nodes and longer routes."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.kbr import Routed
from fairgate.core.layers import MakeNode, over
from fairgate.overlay.gates import Gates
from fairgate.registry import LAYERS
from tests.support.dht_walk import MS, SECOND, Outcome, Spec, World
from tests.support.routes import Circle

WAYS: dict[str, Any] = {
    **{name: LAYERS[name] for name in ("full", "settled_chord", "settled_pastry")},
    "circle": Circle,
}
SMALL = {"chord_successors": 1, "chord_fingers": 2, "pastry_b": 1, "pastry_leaves": 2}  # routes of several hops
PLAIN = Spec(latency=100 * MS, think=300 * MS, most_events=20_000)
HARD = Spec(latency=100 * MS, think=600 * MS, faults_until=6 * SECOND, most_events=200_000, most_time=200 * SECOND)
QUICK = {"lease": 2 * SECOND, "drift": 0, "ping": 300 * MS}


class Lively(World):
    def __init__(self, make: MakeNode, spec: Spec, rng: random.Random, cancels: float = 0, joins: int = 0) -> None:
        self.cancels = cancels
        super().__init__(make, spec, rng)
        for me in range(spec.nodes, spec.nodes + joins):
            self.later(rng.randrange(spec.faults_until), self.join, me)

    def ask(self, me: int) -> None:
        super().ask(me)
        if me in self.waiting and self.rng.random() < self.cancels:
            self.later(self.rng.randrange(self.spec.think), self.cancel, me, self.waiting[me][0])

    def cancel(self, me: int, request: int) -> None:
        for where in (self.waiting, self.inside):
            if where.get(me, (0, 0))[0] == request:
                del where[me]
                self.step(me, "on_cancel", request)
                self.ask_later(me)
                return

    def owners(self) -> list[list[int]]:
        """The owners of each replica's key according to the overlay: Pastry assigns keys differently from Chord."""
        nodes: dict[int, Any] = {me: node for me, node in self.nodes.items() if me not in self.down}
        return [[me for me, node in nodes.items() if node.next_hop(key) == NIL] for key in self.keys]

    def forget(self, me: int) -> None:
        known = self.memories_lost
        super().forget(me)
        self.memories_lost = known + [self.now for owners in self.owners() if me in owners]

    def join(self, me: int) -> None:
        """A new node joins. It owns some keys from now on, and knows nothing about them."""
        self.ring.add(me)
        self.left[me] = 1
        self.start(me)
        self.memories_lost += [self.now for owners in self.owners() if me in owners]
        self.ask_later(me)


def one_run(
    protocol: type[Routed], seed: int, spec: Spec = PLAIN, ways: tuple[str, ...] = (), joins: int = 0
) -> Outcome:
    """Run a small system of random size on a random overlay."""
    rng = random.Random(seed)
    way = rng.choice(ways or sorted(WAYS))
    options = {"replicas": rng.choice([3, 4, 5]), **SMALL, **spec.options}
    spec = replace(spec, nodes=rng.randint(3, 10), requests=rng.randint(1, 4), options=options)
    make = over(WAYS[way], over(Gates, protocol))
    return Lively(make, spec, rng, rng.choice([0, 0, 0.3]), joins).run()
