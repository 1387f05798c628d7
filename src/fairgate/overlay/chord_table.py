"""Chord's rule of routing, over successors, predecessor and fingers.

The owner of a key is the first node at or after it. Successor 0 is the next node after this one, successor 1 the one
after that; finger i is the first node at or after the place 2^i past this one. A key among the successors goes straight
to its owner. Any other goes to the nearest node that is known and not past it: a finger, or the last of the
successors. Fingers whose place lies among the successors add nothing, and are never asked for.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyspace import clockwise, is_between, past, place_of, top_bit
from fairgate.overlay.ring import Ring
from fairgate.overlay.table import Table

SUCCESSORS = 8  # the option `chord_successors`
FINGERS = 64  # how many of the farthest are kept: the option `chord_fingers`; 0: the ring alone


class ChordTable(Table):
    def __init__(self, me: int, successors: int, fingers: int) -> None:
        Table.__init__(self, me)
        self.most = successors
        self.lowest = 64 - fingers  # the lowest finger

    # What is asked of a table.

    def count(self) -> int:
        """How many successors are known."""
        raise NotImplementedError

    def successor(self, i: int) -> int:
        raise NotImplementedError

    def start(self) -> int:
        """The predecessor's place: what this node owns begins behind it."""
        raise NotImplementedError

    def finger(self, i: int) -> int:
        """NIL: not known, or this node itself."""
        raise NotImplementedError

    # The rule.

    def next_hop(self, key: int) -> int:
        if is_between(key, self.start(), self.place):
            return NIL
        count = self.count()
        if count == 0:
            return NIL
        last = self.successor(count - 1)
        away = clockwise(self.place, key)
        reach = clockwise(self.place, place_of(last))
        if away <= reach:
            return self.successor_at(away)
        i = top_bit(away)
        while i >= self.lowest and reach >> i == 0:
            finger = self.finger(i)
            if finger != NIL and clockwise(self.place, place_of(finger)) <= away:
                return finger
            i -= 1
        return last

    def successor_at(self, away: int) -> int:
        """The first of the successors that is so far away, or farther."""
        i = 0
        while clockwise(self.place, place_of(self.successor(i))) < away:
            i += 1
        return self.successor(i)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return tuple([self.successor(i) for i in range(min(count, self.count()))])

    def owned(self) -> tuple[int, int]:
        return self.start(), self.place


class SettledChordTable(ChordTable):
    def __init__(self, me: int, successors: int, fingers: int, ring: Ring) -> None:
        ChordTable.__init__(self, me, successors, fingers)
        self.ring = ring

    def count(self) -> int:
        others = self.ring.size - 1
        return self.most if self.most < others else others

    def successor(self, i: int) -> int:
        return self.ring.ident(self.ring.rank(self.place) + 1 + i)

    def start(self) -> int:
        return self.ring.place(self.ring.rank(self.place) - 1)

    def finger(self, i: int) -> int:
        finger = self.ring.successor(past(self.place, i))
        return NIL if finger == self.me else finger
