"""What a node of an overlay knows of the others, and the rule by which it routes with that.

A rule of routing (chord_table.py, pastry_table.py) is written once, over a few questions about the table. A table that
is kept, by joins and repairs (chord.py, pastry.py), answers them from what it has learned; a settled one
(settled.py) from the ring of all members.
"""

from fairgate.core.keyspace import place_of


class Table:
    def __init__(self, me: int) -> None:
        self.me = me
        self.place = place_of(me)

    def next_hop(self, key: int) -> int:
        """Where a message to this key goes from here; NIL: this node is the owner."""
        raise NotImplementedError

    def neighbours(self, count: int) -> tuple[int, ...]:
        """Up to so many nodes that come next: they own this node's keys if it fails."""
        raise NotImplementedError

    def owned(self) -> tuple[int, int]:
        """This node owns the keys in (start, end]; all of them where the two are the same."""
        raise NotImplementedError
