"""The circle of keys: 2^64 places, on which the nodes of an overlay and the names of replicas lie.

A node's place is a one-to-one mixing of its id, so two nodes never share one, and whoever knows an id knows
the place: tables and messages hold ids only.
"""

from hashlib import blake2b

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15  # these three: the mixer of splitmix64
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB


def place_of(ident: int) -> int:
    """Where a node lies on the circle."""
    z = (ident + STEP) & MASK
    z = ((z ^ (z >> 30)) * MIX_1) & MASK
    z = ((z ^ (z >> 27)) * MIX_2) & MASK
    return z ^ (z >> 31)


def key_of(name: str) -> int:
    """Where a name lies on the circle."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def clockwise(start: int, end: int) -> int:
    """How far it is from one place to another, clockwise."""
    return (end - start) & MASK


def apart(a: int, b: int) -> int:
    """How far two places are from each other, the shorter way round."""
    there = (b - a) & MASK
    back = (a - b) & MASK
    return there if there < back else back


def is_between(key: int, start: int, end: int) -> bool:
    """In (start, end], clockwise; all of the circle where start is end."""
    return start == end or 0 < clockwise(start, key) <= clockwise(start, end)
