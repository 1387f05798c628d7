"""The members of an overlay in the order of their places, for settled overlays.

In a settled overlay every node knows what it would know after all joins and repairs have finished. Its tables need not
be stored: they follow from the members (settled.py). One `Ring` serves all nodes of a run (`Setup.shared`). The driver
may change the members (`add`, `remove`), and every node knows at once. Dynamic overlays, which learn by messages and
can go wrong on the way, are in chord.py and pastry.py.

Places are hashes of ids, so they are spread evenly. The circle is divided into about as many equal parts as there are
members, and an index has the rank at which each part begins. So a key is found in a step or two.
"""

from array import array
from collections.abc import Iterable

from fairgate.core.keyspace import clockwise, place_of
from fairgate.core.setup import Setup


class Ring:
    """Ids by place. A rank is an index in that order."""

    def __init__(self, members: tuple[int, ...]) -> None:
        self.size = 0
        self.version = 0  # increases whenever the members change
        self.shift = 63
        self.places = array("Q")
        self.ids = array("q")
        self.index = array("q")
        order = sorted([(place_of(ident), ident) for ident in members])
        self.fill(array("Q", [place for place, _ in order]), array("q", [ident for _, ident in order]))

    def fill(self, places: "array[int]", ids: "array[int]") -> None:
        self.size = len(ids)
        self.version += 1
        bits = max(1, self.size.bit_length())
        self.shift = 64 - bits
        self.places = places
        self.ids = ids
        parts = 1 << bits
        self.index = array("q", [0]) * parts
        rank = 0
        for part in range(parts):
            while rank < self.size and self.places[rank] >> self.shift < part:
                rank += 1
            self.index[part] = rank

    def place(self, rank: int) -> int:
        return self.places[self.around(rank)]

    def ident(self, rank: int) -> int:
        return self.ids[self.around(rank)]

    def around(self, rank: int) -> int:
        """Wrap a rank around the circle, in both directions. No `%`: a division costs more than all the rest."""
        while rank < 0:
            rank += self.size
        while rank >= self.size:
            rank -= self.size
        return rank

    def rank(self, key: int) -> int:
        """The rank of the first node at or after the key; `size` if there is none up to the top of the circle."""
        rank = self.index[key >> self.shift]
        while rank < self.size and self.places[rank] < key:
            rank += 1
        return rank

    def successor(self, key: int) -> int:
        """The first node at or after the key."""
        return self.ident(self.rank(key))

    def has(self, ident: int) -> bool:
        return self.size > 0 and self.successor(place_of(ident)) == ident

    def add(self, ident: int) -> None:
        if not self.has(ident):
            places, ids = self.copies()
            rank = self.rank(place_of(ident))
            places.insert(rank, place_of(ident))
            ids.insert(rank, ident)
            self.fill(places, ids)

    def remove(self, ident: int) -> None:
        self.remove_all([ident])

    def remove_all(self, gone: Iterable[int]) -> None:
        ranks = sorted([self.rank(place_of(ident)) for ident in gone if self.has(ident)], reverse=True)
        if ranks:
            places, ids = self.copies()
            for rank in ranks:
                del places[rank]
                del ids[rank]
            self.fill(places, ids)

    def copies(self) -> "tuple[array[int], array[int]]":
        places, ids = array("Q"), array("q")
        places.frombytes(memoryview(self.places).tobytes())
        ids.frombytes(memoryview(self.ids).tobytes())
        return places, ids


def no_range(me: int) -> tuple[int, int]:
    """The range of a node that is not on the ring: its own place alone, because equal ends mean the whole circle."""
    place = place_of(me)
    return clockwise(1, place), place


def ring_of(setup: Setup) -> Ring:
    """The ring that all nodes of this setup share."""
    ring: Ring | None = setup.shared.get("ring")
    if ring is None:
        ring = setup.shared["ring"] = Ring(base_of(setup))
    return ring


def base_of(setup: Setup) -> tuple[int, ...]:
    """The members that are on the ring from the start: the first `base` of them, by default all. The others join."""
    return setup.members[: setup.options.get("base", len(setup.members))]
