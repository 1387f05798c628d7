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


def past(place: int, i: int) -> int:
    """The place 2^i after this one."""
    step = 1
    step <<= i
    return (place + step) & MASK


def apart(a: int, b: int) -> int:
    """How far two places are from each other, the shorter way round."""
    there = (b - a) & MASK
    back = (a - b) & MASK
    return there if there < back else back


def is_between(key: int, start: int, end: int) -> bool:
    """In (start, end], clockwise; all of the circle where start is end."""
    return start == end or 0 < clockwise(start, key) <= clockwise(start, end)


def is_closer(key: int, a: int, b: int) -> bool:
    """Is place a nearer to the key than place b? Of two that are as far, the one that comes after the key is."""
    to_a = apart(key, a)
    to_b = apart(key, b)
    return to_a < to_b or (to_a == to_b and clockwise(key, a) < clockwise(key, b))


def middle(before: int, after: int) -> int:
    """The last key from one place clockwise to another that is closer to the first of the two."""
    return (before + ((clockwise(before, after) - 1) >> 1)) & MASK


def top_bit(value: int) -> int:
    """The number of the highest bit that is set, by halves: one source for both builds. The value is not 0."""
    bit = 0
    half = 32
    while half:
        if value >> half:
            value >>= half
            bit += half
        half >>= 1
    return bit


def shared_digits(a: int, b: int, bits: int) -> int:
    """How many digits, of so many bits each, two places have in common from the left."""
    different = a ^ b
    below = 64 - bits
    count = 0
    while below >= 0 and different >> below == 0:  # mostly few, so this is shorter than a division
        below -= bits
        count += 1
    return count


def digit(place: int, row: int, bits: int) -> int:
    """The digit number `row` from the left."""
    return (place >> (64 - bits * (row + 1))) & ((1 << bits) - 1)


def with_digit(place: int, row: int, column: int, bits: int) -> int:
    """The place with `column` for its digit number `row`."""
    change = digit(place, row, bits) ^ column
    return place ^ (change << (64 - bits * (row + 1)))
