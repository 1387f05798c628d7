"""Requests that wait, in order, at most one per node. This is the plain version; the compiled one is waiting.pyx.

A request is a node and a number. It is *known* from `add` or `know` until `forget`, and *in order* from `add` until
`take_first` or `remove`. A known request may be promised a token: `slot` says which one.

The compiled version has an array for the order and a hash table, and creates no objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from fairgate.core.ids import NIL


class Waiting:
    __slots__ = ("numbers", "order", "slots")
    shape = [("i", "i")]  # of a key: core/outside.py

    def __init__(self) -> None:
        self.order: deque[int] = deque()  # nodes
        self.numbers: dict[int, int] = {}  # node -> number of its request, of those known
        self.slots: dict[int, int] = {}  # node -> slot of the token that is promised to it

    @property
    def known(self) -> int:
        return len(self.numbers)

    def number(self, r: int) -> int:
        """The number of the node's known request, or NIL."""
        return self.numbers.get(r, NIL)

    def slot(self, r: int) -> int:
        """The slot of the token that was promised to the node last, or NIL."""
        return self.slots.get(r, NIL)

    def add(self, r: int, n: int) -> None:
        """Append request n of node r to the order."""
        self.know(r, n, NIL)
        self.order.append(r)

    def know(self, r: int, n: int, slot: int) -> None:
        """Request n of node r is known, or still is. It is promised the token of this slot, or none (NIL)."""
        if n < 0:
            raise ValueError(f"request {n} of node {r} has a negative number")
        self.numbers[r] = n
        self.slots[r] = slot

    def promise(self, r: int, slot: int) -> int:
        """Promise the token of this slot to the known request of this node. Returns the number of the request."""
        self.slots[r] = slot
        return self.numbers[r]

    def take_first(self) -> int:
        """Remove the first request from the order, and return its node; NIL if there is none. It stays known."""
        return self.order.popleft() if self.order else NIL

    def remove(self, r: int) -> None:
        """Remove the request of this node from the order, if it is there. It stays known."""
        if r in self.order:
            self.order.remove(r)

    def forget(self, r: int) -> None:
        """The request of this node is not known any more. Raises KeyError if it was not."""
        del self.numbers[r]
        del self.slots[r]

    def nodes(self) -> tuple[int, ...]:
        """The nodes of the requests in order."""
        return tuple(self.order)

    def copy(self) -> Waiting:
        made = Waiting()
        made.order = self.order.copy()
        made.numbers = self.numbers.copy()
        made.slots = self.slots.copy()
        return made

    def key(self) -> tuple[tuple[int, int], ...]:
        """The requests in order. Those that are only known are not part of it."""
        return tuple([(r, self.numbers[r]) for r in self.order])

    def __repr__(self) -> str:
        return f"Waiting.from_key({self.key()})"

    @classmethod
    def from_key(cls, key: Iterable[tuple[int, int]]) -> Waiting:
        made = cls()
        for r, n in key:
            made.add(r, n)
        return made
