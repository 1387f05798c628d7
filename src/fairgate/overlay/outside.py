"""Clients that are not members of the DHT: they own no keys, and reach the owners of keys through a member.

SG section II: only the replicas have to be members. A message that such a client routes goes to a random member, which
routes it on. After the first answer the client talks directly to the node that serves a replica, as members do.
"""

from fairgate.core.ids import NIL
from fairgate.core.kbr import members_of
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.overlay import Overlay


class Outside(Overlay):
    """In place of an overlay, at a node that is not a member."""

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.members = members_of(setup)
        Overlay.__init__(self, me, setup, out, upper)

    def next_hop(self, key: int) -> int:
        """A random member. Another one is tried next time: the last one may be gone."""
        return NIL if key == place_of(self.me) else self.members[self.out.choose(len(self.members))]

    def serves(self, key: int) -> bool:
        return False

    def neighbours(self, count: int) -> tuple[int, ...]:
        return ()

    def own_range(self) -> tuple[int, int]:
        """Its own place and no other, so that it receives answers and serves nothing."""
        here = place_of(self.me)
        return here - 1, here

    def layer_key(self) -> Key:
        return ()

    def load_layer(self, key: Key) -> None:
        pass


def inside_or_outside(overlay: MakeNode, outside: MakeNode) -> MakeNode:
    """A function that makes the last `outsiders` nodes of the setup with `outside`, and all others with `overlay`."""

    def make(me: int, setup: Setup, out: Outbox) -> Node:
        is_outside = len(members_of(setup)) <= me < len(setup.members)
        return outside(me, setup, out) if is_outside else overlay(me, setup, out)

    return make
