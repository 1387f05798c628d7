"""Chord's routing rule, based on successors, predecessor and fingers.

The owner of a key is the first node at or after it. Successor 0 is the next node after this one, successor 1 the one
after that. Finger i is the first node at or after the place 2^i past this one. A message to a key within the range of
the successors goes straight to the owner. Any other goes to the nearest known node that is not past the key: a finger,
or the last successor. Fingers whose place lies within the range of the successors add nothing and are never used.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyspace import clockwise, is_between, past, place_of, top_bit
from fairgate.core.message import Key
from fairgate.overlay.ring import Ring
from fairgate.overlay.table import Table

SUCCESSORS = 8  # the option `chord_successors`
FINGERS = 64  # how many of the farthest fingers are kept: the option `chord_fingers`; 0: successors only


class ChordTable(Table):
    def __init__(self, me: int, successors: int, fingers: int) -> None:
        Table.__init__(self, me)
        self.most = successors
        self.lowest = 64 - fingers  # the lowest finger

    # What a subclass provides.

    def count(self) -> int:
        """How many successors are known."""
        raise NotImplementedError

    def successor(self, i: int) -> int:
        raise NotImplementedError

    def start(self) -> int:
        """The predecessor's place: this node owns the keys after it."""
        raise NotImplementedError

    def finger(self, i: int) -> int:
        """Finger i; NIL if it is unknown or this node itself."""
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
        """The first successor at this distance or farther."""
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


class KeptChordTable(ChordTable):
    """The table of a dynamic ring: what a node has learned from messages (chord.py)."""

    def __init__(self, me: int, successors: int, fingers: int) -> None:
        ChordTable.__init__(self, me, successors, fingers)
        self.predecessor = NIL
        self.behind = NIL  # the predecessor's predecessor, as it said itself
        self.owned_from = self.place
        self.successors: list[int] = []
        self.fingers = [NIL] * 64

    def count(self) -> int:
        return len(self.successors)

    def successor(self, i: int) -> int:
        return self.successors[i]

    def start(self) -> int:
        return self.owned_from

    def finger(self, i: int) -> int:
        return self.fingers[i]

    def lowest_needed(self) -> int:
        """The lowest finger whose place is past the successors."""
        if not self.successors:
            return 64
        return max(self.lowest, top_bit(clockwise(self.place, place_of(self.successors[len(self.successors) - 1]))) + 1)

    def begin(self, ring: Ring) -> None:
        """Fill the table as it would be on a settled ring."""
        settled = SettledChordTable(self.me, self.most, 64 - self.lowest, ring)
        self.successors = list(settled.neighbours(self.most))
        rank = ring.rank(self.place)
        if self.successors:
            self.set_predecessor(ring.ident(rank - 1), ring.ident(rank - 2))
            for i in range(self.lowest_needed(), 64):
                self.fingers[i] = settled.finger(i)

    def set_predecessor(self, peer: int, behind: int) -> None:
        """Set the predecessor and the node behind it. If it is NIL, this node still owns the keys it owned before."""
        self.predecessor = NIL if peer == self.me else peer
        self.behind = behind
        if self.predecessor != NIL:
            self.owned_from = place_of(peer)

    def stand_alone(self) -> None:
        """Own all keys, since no other node is known."""
        self.predecessor = NIL
        self.owned_from = self.place

    def take_list(self, first: int, rest: list[int]) -> bool:
        """Replace the successors by `first` and the nodes it named, up to this node; return whether they changed."""
        successors = [first]
        reached = clockwise(self.place, place_of(first))
        for peer in rest:
            away = clockwise(self.place, place_of(peer))
            if away <= reached or len(successors) == self.most:
                break
            successors.append(peer)
            reached = away
        changed = successors != self.successors
        self.successors = successors
        return changed

    def set_finger(self, i: int, peer: int) -> None:
        """Set finger i, unless the peer lies before the finger's place: then it cannot be the owner."""
        if peer == self.me:
            self.fingers[i] = NIL
        elif clockwise(self.place, place_of(peer)) >> i:
            self.fingers[i] = peer

    def drop_finger(self, peer: int) -> None:
        for i in range(64):
            if self.fingers[i] == peer:
                self.fingers[i] = NIL

    def key(self) -> Key:
        return (self.predecessor, self.behind, self.owned_from, tuple(self.successors), tuple(self.fingers))

    def load(self, key: Key) -> None:
        self.predecessor, self.behind, self.owned_from, successors, fingers = key
        self.successors = list(successors)
        self.fingers = list(fingers)
