"""Things by number, each once: what makes a state a short tuple of small numbers.

Numbers follow the order in which things were met, so two processes number them differently. What must be
the same everywhere, the order of messages and the fingerprints of states, goes by the hash of a thing.
"""

from hashlib import blake2b
from typing import Any


class Table:
    def __init__(self) -> None:
        self.numbers: dict[tuple[str, Any], int] = {}
        self.kinds: list[str] = []
        self.things: list[Any] = []
        self.hashes: list[int] = []

    def number(self, kind: str, thing: Any) -> int:
        found = self.numbers.get((kind, thing))
        return self.add(kind, thing) if found is None else found

    def add(self, kind: str, thing: Any) -> int:
        number = self.numbers[kind, thing] = len(self.things)
        self.kinds.append(kind)
        self.things.append(thing)
        self.hashes.append(hash_of(kind, thing))
        return number

    def since(self, number: int) -> list[tuple[str, Any]]:
        """What was added from that number on, for another process to learn."""
        return list(zip(self.kinds[number:], self.things[number:], strict=True))


def hash_of(kind: str, thing: Any) -> int:
    """63 bits, the same in every process and every run."""
    return int.from_bytes(blake2b(repr((kind, plain(thing))).encode(), digest_size=8).digest()) >> 1


def plain(thing: Any) -> Any:
    """True is 1, as it is to a dictionary."""
    if isinstance(thing, tuple):
        return tuple(map(plain, thing))
    return int(thing) if isinstance(thing, bool) else thing
