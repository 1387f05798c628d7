"""Pastry's routing rule, based on a leaf set and a table of prefixes.

Places are read as digits of b bits. The owner of a key is the node nearest to it on either side; of two that are
equally near, the one after it. Leaves 1, 2, ... are the next nodes clockwise, -1, -2, ... those counterclockwise. Cell
(row, column) is a node that shares this node's first `row` digits and then has the digit `column`. Of all such nodes,
it is the one nearest to the cell's `goal`: this node's place with that one digit replaced. So the settled table is
unique.

A message to a key within the leaf set goes straight to the owner. Any other goes to the cell of the key's next digit.
If that cell is empty, it goes to the nearest known node that shares at least as many digits with the key as this node,
and is nearer to it.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyspace import clockwise, digit, is_closer, middle, place_of, shared_digits, with_digit
from fairgate.core.message import Key
from fairgate.overlay.ring import Ring
from fairgate.overlay.table import Table

BITS = 4  # per digit: the option `pastry_b`
LEAVES = 24  # in the leaf set, half on each side: the option `pastry_leaves`


class PastryTable(Table):
    def __init__(self, me: int, bits: int, leaves: int) -> None:
        Table.__init__(self, me)
        if 64 % bits or not 1 <= bits <= 8:
            raise ValueError(f"pastry_b must be 1, 2, 4 or 8, not {bits}")
        if leaves < 2 or leaves % 2:
            raise ValueError(f"pastry_leaves must be even and at least 2, not {leaves}")
        self.bits = bits
        self.columns = 1 << bits
        self.half = leaves // 2

    # What a subclass provides.

    def count(self, side: int) -> int:
        """How many leaves are known on this side: 1 is clockwise, -1 counterclockwise."""
        raise NotImplementedError

    def leaf(self, at: int) -> int:
        raise NotImplementedError

    def cell(self, row: int, column: int) -> int:
        """The node in this cell; NIL if there is none, or if the column is this node's own digit."""
        raise NotImplementedError

    # The rule.

    def next_hop(self, key: int) -> int:
        nearest = self.nearest_leaf(key)
        if nearest == self.me:
            return NIL
        if nearest != NIL:
            return nearest
        row = shared_digits(self.place, key, self.bits)
        cell = self.cell(row, digit(key, row, self.bits))
        return cell if cell != NIL else self.rare_case(key, row)

    def nearest_leaf(self, key: int) -> int:
        """The owner if the key lies within the leaf set, otherwise NIL."""
        away = clockwise(self.place, key)
        count = self.count(1)
        if count and away <= clockwise(self.place, place_of(self.leaf(count))):
            side = 1
        else:
            away = clockwise(key, self.place)
            count = self.count(-1)
            if count and away > clockwise(place_of(self.leaf(-count)), self.place):
                return NIL
            side = -1
        before = self.me
        at = 0
        while away and at < count:
            at += 1
            leaf = self.leaf(side * at)
            place = place_of(leaf)
            far = clockwise(self.place, place) if side == 1 else clockwise(place, self.place)
            if far >= away:
                return leaf if is_closer(key, place, place_of(before)) else before
            before = leaf
        return before

    def rare_case(self, key: int, row: int) -> int:
        """Pastry's rare case, an empty cell: the nearest known node that shares at least `row` digits with the key.

        NIL if none of those is nearer to the key than this node.
        """
        best = self.me
        for at in range(1, self.count(1) + 1):
            best = self.better(key, row, best, self.leaf(at))
        for at in range(1, self.count(-1) + 1):
            best = self.better(key, row, best, self.leaf(-at))
        for other in range(row, self.depth() + 1):
            for column in range(self.columns):
                best = self.better(key, row, best, self.cell(other, column))
        return NIL if best == self.me else best

    def better(self, key: int, row: int, best: int, peer: int) -> int:
        if peer == NIL:
            return best
        place = place_of(peer)
        fits = shared_digits(place, key, self.bits) >= row and is_closer(key, place, place_of(best))
        return peer if fits else best

    def depth(self) -> int:
        """The last row that can have a node: none shares more digits with this node than its neighbours do."""
        depth = 0
        for side in (1, -1):
            if self.count(side):
                depth = max(depth, shared_digits(self.place, place_of(self.leaf(side)), self.bits))
        return depth

    def goal(self, row: int, column: int) -> int:
        """The ideal place of the node in this cell."""
        return with_digit(self.place, row, column, self.bits)

    def neighbours(self, count: int) -> tuple[int, ...]:
        """The nearest leaves of both sides."""
        leaves = {self.leaf(at) for at in range(1, self.count(1) + 1)}
        leaves |= {self.leaf(-at) for at in range(1, self.count(-1) + 1)}
        nearest = sorted([(nearness(self.place, place_of(leaf)), leaf) for leaf in leaves])
        return tuple([leaf for _, leaf in nearest[:count]])

    def owned(self) -> tuple[int, int]:
        """The range of keys that this node owns: half of the way to the neighbour on each side."""
        if not self.count(1) or not self.count(-1):
            return self.place, self.place
        return middle(place_of(self.leaf(-1)), self.place), middle(self.place, place_of(self.leaf(1)))


class SettledPastryTable(PastryTable):
    def __init__(self, me: int, bits: int, leaves: int, ring: Ring) -> None:
        PastryTable.__init__(self, me, bits, leaves)
        self.ring = ring
        # A cache of facts about the ring, refreshed when the members have changed.
        self.version = 0
        self.here = 0  # this node's rank
        self.after = 0  # how far the leaf set reaches clockwise
        self.before = 0  # and counterclockwise

    def look_around(self) -> None:
        ring = self.ring
        count = self.count(1)
        self.version = ring.version
        self.here = ring.rank(self.place)
        self.after = clockwise(self.place, ring.place(self.here + count))
        self.before = clockwise(ring.place(self.here - count), self.place)

    def count(self, side: int) -> int:
        others = self.ring.size - 1
        return self.half if self.half < others else others

    def leaf(self, at: int) -> int:
        if self.version != self.ring.version:
            self.look_around()
        return self.ring.ident(self.here + at)

    def nearest_leaf(self, key: int) -> int:
        """The same result without a walk along the leaves: the ring knows the nodes on both sides of a key."""
        ring = self.ring
        if self.version != ring.version:
            self.look_around()
        if ring.size > 1 and clockwise(self.place, key) > self.after and clockwise(key, self.place) > self.before:
            return NIL
        rank = ring.rank(key)
        if is_closer(key, ring.place(rank), ring.place(rank - 1)):
            return ring.ident(rank)
        return ring.ident(rank - 1)

    def cell(self, row: int, column: int) -> int:
        if column == digit(self.place, row, self.bits):
            return NIL
        ring = self.ring
        goal = self.goal(row, column)
        rank = ring.rank(goal)
        below = 64 - self.bits * (row + 1)  # number of bits after the prefix that all nodes of this cell share
        before = rank > 0 and (ring.places[rank - 1] ^ goal) >> below == 0
        after = rank < ring.size and (ring.places[rank] ^ goal) >> below == 0
        if after and not (before and is_closer(goal, ring.places[rank - 1], ring.places[rank])):
            return ring.ids[rank]
        return ring.ids[rank - 1] if before else NIL


class KeptPastryTable(PastryTable):
    """The table of a dynamic ring (pastry.py): nodes that were heard from directly and have not gone missing since."""

    def __init__(self, me: int, bits: int, leaves: int) -> None:
        PastryTable.__init__(self, me, bits, leaves)
        self.after: list[int] = []  # the leaves clockwise, the nearest first
        self.before: list[int] = []  # the leaves counterclockwise, the nearest first
        self.cells: dict[int, int] = {}  # row * columns + column -> the node there

    def count(self, side: int) -> int:
        return len(self.after if side == 1 else self.before)

    def leaf(self, at: int) -> int:
        return self.after[at - 1] if at > 0 else self.before[-at - 1]

    def cell(self, row: int, column: int) -> int:
        return self.cells.get(row * self.columns + column, NIL)

    def leaves(self) -> list[int]:
        """Each leaf once, in a meaningless but deterministic order."""
        return sorted({*self.after, *self.before})

    def known(self) -> list[int]:
        return sorted({*self.after, *self.before, *self.cells.values()})

    def begin(self, ring: Ring) -> None:
        """Fill the table as it would be on a settled ring."""
        settled = SettledPastryTable(self.me, self.bits, 2 * self.half, ring)
        self.after = [settled.leaf(at) for at in range(1, settled.count(1) + 1)]
        self.before = [settled.leaf(-at) for at in range(1, settled.count(-1) + 1)]
        for row in range(self.depth() + 1):
            for column in range(self.columns):
                peer = settled.cell(row, column)
                if peer != NIL:
                    self.cells[row * self.columns + column] = peer

    def at(self, peer: int, side: int) -> int:
        """The index that a node would have among the leaves of this side, from 0."""
        far = self.far(peer, side)
        leaves = self.after if side == 1 else self.before
        at = 0
        while at < len(leaves) and self.far(leaves[at], side) < far:
            at += 1
        return at

    def far(self, peer: int, side: int) -> int:
        place = place_of(peer)
        return clockwise(self.place, place) if side == 1 else clockwise(place, self.place)

    def wants(self, peer: int) -> bool:
        """Would this peer improve the table?"""
        if peer == self.me or peer in self.after or peer in self.before:
            return False
        return self.at(peer, 1) < self.half or self.at(peer, -1) < self.half or self.fits_cell(peer)

    def fits_cell(self, peer: int) -> bool:
        """Is the peer's cell empty, or is the peer nearer to its goal than the node there?"""
        place = place_of(peer)
        row = shared_digits(self.place, place, self.bits)
        column = digit(place, row, self.bits)
        present = self.cell(row, column)
        return present == NIL or is_closer(self.goal(row, column), place, place_of(present))

    def learn(self, peer: int) -> None:
        if peer == self.me:
            return
        for side in (1, -1):
            leaves = self.after if side == 1 else self.before
            if peer not in leaves:
                leaves.insert(self.at(peer, side), peer)
                del leaves[self.half :]
        if self.fits_cell(peer):
            place = place_of(peer)
            row = shared_digits(self.place, place, self.bits)
            self.cells[row * self.columns + digit(place, row, self.bits)] = peer

    def forget(self, peer: int) -> None:
        """Remove a peer. If it was a leaf, the other known nodes fill the gap."""
        was_leaf = peer in self.after or peer in self.before
        self.after = [leaf for leaf in self.after if leaf != peer]
        self.before = [leaf for leaf in self.before if leaf != peer]
        self.cells = {at: cell for at, cell in self.cells.items() if cell != peer}
        if was_leaf:
            for other in self.known():
                self.learn(other)

    def key(self) -> Key:
        return (tuple(self.after), tuple(self.before), tuple(sorted(self.cells.items())))

    def load(self, key: Key) -> None:
        after, before, cells = key
        self.after = list(after)
        self.before = list(before)
        self.cells = dict([tuple(cell) for cell in cells])


def nearness(place: int, other: int) -> tuple[int, int]:
    """Sort key that agrees with `is_closer`."""
    there, back = clockwise(place, other), clockwise(other, place)
    return min(there, back), there
