"""The overlay in which every node knows all others: a message to a key takes one hop.

The owner of a key is the first node at or after it, as in Chord. Peers that share a list of members need no more than
this. SG measures Sigma in the same way, because its clients talk directly to the nodes of the replicas.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.ring import no_range, ring_of


class Full(Overlay):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.ring = ring_of(setup)
        Overlay.__init__(self, me, setup, out, upper)

    def next_hop(self, key: int) -> int:
        owner = self.ring.successor(key)
        return NIL if owner == self.me else owner

    def neighbours(self, count: int) -> tuple[int, ...]:
        rank = self.ring.rank(place_of(self.me))
        return tuple([self.ring.ident(rank + step) for step in range(1, min(count, self.ring.size - 1) + 1)])

    def own_range(self) -> tuple[int, int]:
        if not self.ring.has(self.me):
            return no_range(self.me)
        here = place_of(self.me)
        return self.ring.place(self.ring.rank(here) - 1), here

    def layer_key(self) -> Key:
        return ()

    def load_layer(self, key: Key) -> None:
        pass


class Watched(Full):
    """Full on a ring whose nodes learn of crashes one by one, each at its own time (`on_crash`)."""

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.gone: set[int] = set()
        Full.__init__(self, me, setup, out, upper)

    def living(self, rank: int, step: int) -> int:
        """The rank of the first node that is not known to be gone: `rank` itself, or another in steps of `step`."""
        while self.ring.ident(rank) in self.gone:
            rank += step
        return rank

    def next_hop(self, key: int) -> int:
        owner = self.ring.ident(self.living(self.ring.rank(key), 1))
        return NIL if owner == self.me else owner

    def neighbours(self, count: int) -> tuple[int, ...]:
        rank = self.ring.rank(place_of(self.me))
        found: list[int] = []
        for _ in range(min(count, self.ring.size - len(self.gone) - 1)):
            rank = self.living(rank + 1, 1)
            found.append(self.ring.ident(rank))
        return tuple(found)

    def own_range(self) -> tuple[int, int]:
        here = place_of(self.me)
        return self.ring.place(self.living(self.ring.rank(here) - 1, -1)), here

    def on_crash(self, peer: int) -> None:
        self.gone.add(peer)
        Full.on_crash(self, peer)

    def layer_key(self) -> Key:
        return tuple(sorted(self.gone))

    def load_layer(self, key: Key) -> None:
        self.gone = set(key)
