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
from fairgate.overlay.ring import ring_of
from fairgate.overlay.table import Table


class Settled(Overlay):
    gates_independent = True  # messages of one gate do not change the routes of others

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.table = self.make_table(me, setup)
        Overlay.__init__(self, me, setup, out, upper)

    def make_table(self, me: int, setup: Setup) -> Table:
        raise NotImplementedError

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


class SettledChord(Settled):
    def make_table(self, me: int, setup: Setup) -> Table:
        successors = setup.options.get("chord_successors", SUCCESSORS)
        return SettledChordTable(me, successors, setup.options.get("chord_fingers", FINGERS), ring_of(setup))


class SettledPastry(Settled):
    def make_table(self, me: int, setup: Setup) -> Table:
        leaves = setup.options.get("pastry_leaves", LEAVES)
        return SettledPastryTable(me, setup.options.get("pastry_b", BITS), leaves, ring_of(setup))
