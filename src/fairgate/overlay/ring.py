"""The members of an overlay in the order of their places, for overlays whose tables are settled.

A settled overlay is one in which every node knows what it would know after all joins and repairs have come to rest.
Its tables need not be kept: they follow from the members. One `Ring` serves all nodes of a run (`Setup.shared`).
Who drives the nodes may change the members (`add`, `remove`); then every node knows at once. Rings that learn by
messages, with all that can go wrong on the way, are in chord.py and pastry.py.
"""

from array import array

from fairgate.core.keyspace import place_of
from fairgate.core.setup import Setup


class Ring:
    """Ids by place. A rank is an index in that order."""

    def __init__(self, members: tuple[int, ...]) -> None:
        self.size = 0
        self.places = array("Q")
        self.ids = array("q")
        self.fill(sorted([(place_of(ident), ident) for ident in members]))

    def fill(self, members: list[tuple[int, int]]) -> None:
        self.size = len(members)
        self.places = array("Q", [place for place, _ in members])
        self.ids = array("q", [ident for _, ident in members])

    def place(self, rank: int) -> int:
        """Ranks go on round the circle, both ways."""
        return self.places[(rank + self.size) % self.size]

    def ident(self, rank: int) -> int:
        return self.ids[(rank + self.size) % self.size]

    def rank(self, key: int) -> int:
        """Of the first node at or after the key; `size` if there is none before the circle closes."""
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            if self.places[middle] < key:
                low = middle + 1
            else:
                high = middle
        return low

    def successor(self, key: int) -> int:
        """The first node at or after the key."""
        return self.ident(self.rank(key))

    def has(self, ident: int) -> bool:
        return self.size > 0 and self.successor(place_of(ident)) == ident

    def members(self) -> list[tuple[int, int]]:
        return [(self.place(rank), self.ident(rank)) for rank in range(self.size)]

    def add(self, ident: int) -> None:
        if not self.has(ident):
            self.fill(sorted([*self.members(), (place_of(ident), ident)]))

    def remove(self, ident: int) -> None:
        self.fill([member for member in self.members() if member[1] != ident])


def ring_of(setup: Setup) -> Ring:
    """The one ring of all nodes of this setup."""
    ring: Ring | None = setup.shared.get("ring")
    if ring is None:
        ring = setup.shared["ring"] = Ring(setup.members)
    return ring
