"""The dynamic Pastry overlay: nodes join, leave and repair their tables.

Rowstron, Druschel: Pastry, Middleware 2001. b = 4 and a leaf set of 24, as in FreePastry.

A node enters a table only after it has said itself that it is a member. A node that was named by a third one is pinged
first (`consider`). So a dead node does not come back by hearsay, and a node that is still joining is in no table.

Joining: a node looks up its own place. Every node on the route sends it the row of cells that both have in common; the
owner sends its leaf set. The node pings those of them that its table has use for. When all have answered or are given
up, it is on the ring and says so to all nodes it knows.

Repair: all leaves are pinged once per period; the two neighbours are also asked for their leaf sets. A missing leaf is
replaced from what is known, and the nodes at both ends of the leaf set are asked for theirs. The cells are looked up in
turn: the node that belongs in a cell is the owner of the cell's goal or one of the owner's two neighbours, since no
other can be nearer.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyspace import digit, place_of, shared_digits
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.living import Living
from fairgate.overlay.messages import Ask, Found, Lookup, Names, Ping, Upkeep
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.pastry_table import BITS, LEAVES, KeptPastryTable
from fairgate.overlay.ring import Ring
from fairgate.overlay.table import Table

CELLS = 4  # looked up per period: the option `pastry_cells`


class Pastry(Living):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        bits = setup.options.get("pastry_b", BITS)
        self.table = KeptPastryTable(me, bits, setup.options.get("pastry_leaves", LEAVES))
        self.cells_a_period: int = setup.options.get("pastry_cells", CELLS)
        self.next_cell = 0
        self.welcomed = False  # while joining: the owner of this node's place has answered
        Living.__init__(self, me, setup, out, upper)

    def tables(self) -> Table:
        return self.table

    def begin(self, ring: Ring) -> None:
        self.table.begin(ring)

    def acquainted(self) -> list[int]:
        return self.table.known()

    # Joining.

    def on_lookup(self, src: int, m: Lookup) -> None:
        if m.target == place_of(m.asker) and m.asker != self.me:
            self.out.send(m.asker, Names(self.row_for(m.target)))
        Overlay.on_lookup(self, src, m)

    def row_for(self, place: int) -> tuple[int, ...]:
        """The cells of this node that a node at this place could use too."""
        table = self.table
        row = shared_digits(self.place, place, table.bits)
        cells = [table.cell(row, column) for column in range(table.columns)]
        return tuple([cell for cell in cells if cell != NIL])

    def names_for(self, m: Lookup) -> tuple[int, ...]:
        if m.target == place_of(m.asker):
            return tuple(self.table.leaves())
        return tuple(sorted({*self.table.after[:1], *self.table.before[:1]}))

    def on_found(self, src: int, m: Found) -> None:
        if not m.upkeep:
            self.rider.on_found(m.target, src)
            return
        self.welcomed = self.welcomed or m.target == self.place
        self.table.learn(src)
        self.consider(m.names)
        self.enter_if_ready()

    def enter_if_ready(self) -> None:
        if not self.seeking or not self.welcomed or self.awaited:
            return
        self.welcomed = False
        if self.table.after:  # else the nodes that welcomed it are gone again
            self.enter_ring()
            for peer in self.table.known():
                self.probe(peer, Ask(True) if self.is_neighbour(peer) else Ping(True))

    # Liveness of peers.

    def consider(self, names: tuple[int, ...]) -> None:
        for peer in names:
            if peer not in self.awaited and self.table.wants(peer):
                self.probe(peer, Ping(self.joined))

    def heard(self, src: int) -> None:
        self.table.learn(src)
        self.enter_if_ready()

    def answer(self, src: int) -> None:
        self.out.send(src, Names(tuple(self.table.leaves())))

    def on_news(self, src: int, msg: Upkeep) -> None:
        if isinstance(msg, Names):
            self.table.learn(src)
            self.consider(msg.names)

    def is_neighbour(self, peer: int) -> bool:
        return peer in self.table.after[:1] or peer in self.table.before[:1]

    def forget(self, peer: int) -> None:
        table = self.table
        known = peer in table.known()
        was_leaf = peer in table.after or peer in table.before
        table.forget(peer)
        if was_leaf and self.joined:
            for side in (1, -1):
                if table.count(side):
                    self.probe(table.leaf(side * table.count(side)), Ask(True))
        elif known and self.joined:
            row = shared_digits(self.place, place_of(peer), table.bits)
            self.look_up_cell(row, digit(place_of(peer), row, table.bits))
        self.enter_if_ready()

    # Upkeep.

    def upkeep(self) -> None:
        for peer in self.table.leaves():
            self.probe(peer, Ask(True) if self.is_neighbour(peer) else Ping(True))
        if self.table.after:
            for _ in range(self.cells_a_period):
                self.fix_next_cell()

    def fix_next_cell(self) -> None:
        table = self.table
        self.next_cell = (self.next_cell + 1) % ((table.depth() + 1) * table.columns)
        row, column = divmod(self.next_cell, table.columns)
        present = table.cell(row, column)
        if present != NIL:
            self.probe(present, Ping(True))
        self.look_up_cell(row, column)

    def look_up_cell(self, row: int, column: int) -> None:
        if column != digit(self.place, row, self.table.bits):
            self.later(Lookup(self.table.goal(row, column), self.me, True, 0))

    # The state.

    def layer_key(self) -> Key:
        return (self.living_key(), self.table.key(), self.next_cell, self.welcomed)

    def load_layer(self, key: Key) -> None:
        living, table, self.next_cell, self.welcomed = key
        self.table.load(tuple(table))
        self.load_living(tuple(living))
