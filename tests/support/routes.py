"""Overlays for tests, with long routes or with routes that the test defines."""

from __future__ import annotations

from fairgate.core.ids import NIL
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.ring import ring_of


class Circle(Overlay):
    """Each node knows only its successor: a message goes around the ring to the first node at or after its key."""

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.ring = ring_of(setup)
        Overlay.__init__(self, me, setup, out, upper)

    def next_hop(self, key: int) -> int:
        return NIL if self.ring.successor(key) == self.me else self.neighbours(1)[0]

    def neighbours(self, count: int) -> tuple[int, ...]:
        rank = self.ring.rank(place_of(self.me))
        return tuple([self.ring.ident(rank + step) for step in range(1, min(count, self.ring.size - 1) + 1)])

    def own_range(self) -> tuple[int, int]:
        here = place_of(self.me)
        return self.ring.place(self.ring.rank(here) - 1), here

    def layer_key(self) -> Key:
        return ()

    def load_layer(self, key: Key) -> None:
        pass


class Drawn(Overlay):
    """The option `routes` maps, per replica, each node to its next hop. A node that is not in the map is the owner."""

    def next_hop(self, key: int) -> int:
        keys: tuple[int, ...] = self.setup.options["keys"]
        routes: list[dict[int, int]] = self.setup.options["routes"]
        return routes[keys.index(key)].get(self.me, NIL)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return ()

    def layer_key(self) -> Key:
        return ()

    def load_layer(self, key: Key) -> None:
        pass
