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
from fairgate.overlay.ring import ring_of


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
        here = place_of(self.me)
        return self.ring.place(self.ring.rank(here) - 1), here

    def layer_key(self) -> Key:
        return ()

    def load_layer(self, key: Key) -> None:
        pass
