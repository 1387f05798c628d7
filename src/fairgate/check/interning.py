"""Interning: gives every distinct part of a state (a "thing") a number, so that a state is a tuple of small numbers.

Numbers follow the order in which things were met, so two processes number them differently. The order of messages and
the fingerprints of states must be the same everywhere, so they use the hash of a thing instead.
"""

from hashlib import blake2b
from typing import Any

from fairgate.check.symmetry import Ids, Names, renamed


class Interned:
    def __init__(self) -> None:
        self.numbers: dict[tuple[str, Any], int] = {}
        self.kinds: list[str] = []
        self.things: list[Any] = []
        self.hashes: list[int] = []
        self.renamings: list[Names] = []
        self.rows: list[list[int]] = []  # per renaming, the hashes of all things under it
        self.ids: Ids = {}

    def rename(self, renamings: list[Names], ids: Ids) -> None:
        self.renamings = renamings
        self.ids = ids
        self.rows = [
            [hash_of(kind, renamed(kind, thing, names, ids)) for kind, thing in self.since(0)] for names in renamings
        ]

    def number(self, kind: str, thing: Any) -> int:
        found = self.numbers.get((kind, thing))
        return self.add(kind, thing) if found is None else found

    def add(self, kind: str, thing: Any) -> int:
        number = self.numbers[kind, thing] = len(self.things)
        self.kinds.append(kind)
        self.things.append(thing)
        self.hashes.append(hash_of(kind, thing))
        for names, row in zip(self.renamings, self.rows, strict=True):
            row.append(hash_of(kind, renamed(kind, thing, names, self.ids)))
        return number

    def since(self, number: int) -> list[tuple[str, Any]]:
        """The things with this number and above, to be sent to another process."""
        return list(zip(self.kinds[number:], self.things[number:], strict=True))


def hash_of(kind: str, thing: Any) -> int:
    """A 63-bit hash, the same in every process and every run."""
    return int.from_bytes(blake2b(repr((kind, plain(thing))).encode(), digest_size=8).digest()) >> 1


def plain(thing: Any) -> Any:
    """Booleans as integers: a dictionary takes True and 1 for the same key, so they must hash alike."""
    if isinstance(thing, tuple):
        return tuple(map(plain, thing))
    return int(thing) if isinstance(thing, bool) else thing
