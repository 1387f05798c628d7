"""Settled overlays: Chord and Pastry as they are when all joins and repairs are done, without a table at any node.

The routing rules are those of the dynamic overlays; what a node knows is looked up in the ring of all members.
"""

from fairgate.core.layers import MakeNode
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.chord_table import FINGERS, SUCCESSORS, SettledChordTable
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.pastry_table import BITS, LEAVES, SettledPastryTable
from fairgate.overlay.ring import Ring, no_range, ring_of
from fairgate.overlay.table import Table


class Settled(Overlay):
    gates_independent = True  # messages of one gate do not change the routes of others

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.table = self.make_table(me, setup)
        Overlay.__init__(self, me, setup, out, upper)

    def make_table(self, me: int, setup: Setup) -> Table:
        raise NotImplementedError

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        """A node that has left owns nothing, and passes messages that still arrive on to the ring.

        It gets another table for that, so that members, which route very often, need not check whether they have left.
        """
        ring = ring_of(self.setup)
        if ring.has(self.me) == isinstance(self.table, LeftTable):
            self.table = self.make_table(self.me, self.setup) if ring.has(self.me) else LeftTable(self.me, ring)
        Overlay.on_view(self, number, members, ghosts)

    def next_hop(self, key: int) -> int:
        return self.table.next_hop(key)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return self.table.neighbours(count)

    def own_range(self) -> tuple[int, int]:
        return self.table.owned()

    def layer_key(self) -> Key:
        return ()

    def load_layer(self, key: Key) -> None:
        pass


class LeftTable(Table):
    """The table of a node that is not on the ring."""

    def __init__(self, me: int, ring: Ring) -> None:
        Table.__init__(self, me)
        self.ring = ring

    def next_hop(self, key: int) -> int:
        return self.ring.successor(key)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return ()

    def owned(self) -> tuple[int, int]:
        return no_range(self.me)


class SettledChord(Settled):
    def make_table(self, me: int, setup: Setup) -> Table:
        successors = setup.options.get("chord_successors", SUCCESSORS)
        return SettledChordTable(me, successors, setup.options.get("chord_fingers", FINGERS), ring_of(setup))


class SettledPastry(Settled):
    def make_table(self, me: int, setup: Setup) -> Table:
        leaves = setup.options.get("pastry_leaves", LEAVES)
        return SettledPastryTable(me, setup.options.get("pastry_b", BITS), leaves, ring_of(setup))
