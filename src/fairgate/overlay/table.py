"""Routing tables: what a node of an overlay knows about the others, and the rule by which it routes.

Each routing rule (chord_table.py, pastry_table.py) is written once, in terms of a few queries to the table. The kept
table of a dynamic overlay (chord.py, pastry.py) answers them from what it has learned by joins and repairs; a settled
table (settled.py) answers them from the ring of all members.
"""

from fairgate.core.keyspace import place_of


class Table:
    def __init__(self, me: int) -> None:
        self.me = me
        self.place = place_of(me)

    def next_hop(self, key: int) -> int:
        """The next node on the route to this key; NIL if this node is the owner."""
        raise NotImplementedError

    def neighbours(self, count: int) -> tuple[int, ...]:
        """Up to `count` nodes that come next: they own this node's keys if it fails."""
        raise NotImplementedError

    def owned(self) -> tuple[int, int]:
        """The range of keys that this node owns: (start, end], or all keys if the two are equal."""
        raise NotImplementedError
