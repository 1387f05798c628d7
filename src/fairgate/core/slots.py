"""An ordered set of slots, the numbers of a gate's tokens. This is the plain version; the compiled one is slots.pyx.

The compiled version keeps a linked list in arrays, so that no operation allocates memory or depends on the size.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST = 1 << 20  # slots; the arrays of the compiled version are as long as the largest slot


class Slots:
    __slots__ = ("slots",)
    shape = ["i"]  # of a key: core/outside.py

    def __init__(self) -> None:
        self.slots: dict[int, None] = {}

    @property
    def count(self) -> int:
        return len(self.slots)

    def has(self, slot: int) -> bool:
        return slot in self.slots

    def first(self) -> int:
        """The slot that has been in the set for longest. Raises IndexError if there is none."""
        for slot in self.slots:
            return slot
        raise IndexError("no slot is in the set")

    def add(self, slot: int) -> None:
        """Append the slot, unless it is in the set."""
        if not 0 <= slot < MOST:
            raise ValueError(f"slot {slot} is not between 0 and {MOST - 1:,}")
        self.slots[slot] = None

    def remove(self, slot: int) -> None:
        """Remove the slot if it is in the set."""
        self.slots.pop(slot, None)

    def take_first(self) -> int:
        """Remove and return the slot that has been in the set for longest. Raises IndexError if there is none."""
        slot = self.first()
        self.remove(slot)
        return slot

    def take_last(self) -> int:
        """Remove and return the slot that was added last. Raises IndexError if there is none."""
        if not self.slots:
            raise IndexError("no slot is in the set")
        return self.slots.popitem()[0]

    def copy(self) -> Slots:
        return self.from_key(self.slots)

    def key(self) -> tuple[int, ...]:
        return tuple(self.slots)

    def __repr__(self) -> str:
        return f"Slots.from_key({self.key()})"

    @classmethod
    def from_key(cls, key: Iterable[int]) -> Slots:
        made = cls()
        for slot in key:
            made.add(slot)
        return made
