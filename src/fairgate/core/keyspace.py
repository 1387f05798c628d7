"""The circle of keys: 2^64 places for the nodes of an overlay and the names of replicas.

A node's place is computed from its id by a one-to-one mixing function. So two nodes never share a place, and tables and
messages need to contain ids only.
"""

from hashlib import blake2b

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15  # this and the next two: the constants of splitmix64
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB


def place_of(ident: int) -> int:
    """The place of a node on the circle."""
    z = (ident + STEP) & MASK
    z = ((z ^ (z >> 30)) * MIX_1) & MASK
    z = ((z ^ (z >> 27)) * MIX_2) & MASK
    return z ^ (z >> 31)


def key_of(name: str) -> int:
    """The place of a name on the circle."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def clockwise(start: int, end: int) -> int:
    """The clockwise distance from `start` to `end`."""
    return (end - start) & MASK


def past(place: int, i: int) -> int:
    """The place 2^i after this one."""
    step = 1
    step <<= i
    return (place + step) & MASK


def apart(a: int, b: int) -> int:
    """The distance between two places, the shorter way round."""
    there = (b - a) & MASK
    back = (a - b) & MASK
    return there if there < back else back


def is_between(key: int, start: int, end: int) -> bool:
    """Is the key in (start, end], clockwise? If start == end, that is the whole circle."""
    return start == end or 0 < clockwise(start, key) <= clockwise(start, end)


def is_closer(key: int, a: int, b: int) -> bool:
    """Is place a nearer to the key than place b? In a tie, the one clockwise of the key counts as nearer."""
    to_a = apart(key, a)
    to_b = apart(key, b)
    return to_a < to_b or (to_a == to_b and clockwise(key, a) < clockwise(key, b))


def middle(before: int, after: int) -> int:
    """The last key, clockwise from `before` to `after`, that is closer to `before`."""
    return (before + ((clockwise(before, after) - 1) >> 1)) & MASK


def top_bit(value: int) -> int:
    """The number of the highest set bit of a value, which must not be 0.

    A binary search instead of `int.bit_length`, so that it compiles to C.
    """
    bit = 0
    half = 32
    while half:
        if value >> half:
            value >>= half
            bit += half
        half >>= 1
    return bit


def shared_digits(a: int, b: int, bits: int) -> int:
    """How many leading digits of `bits` bits each two places have in common."""
    different = a ^ b
    below = 64 - bits
    count = 0
    while below >= 0 and different >> below == 0:  # usually few iterations, which is faster than a division
        below -= bits
        count += 1
    return count


def digit(place: int, row: int, bits: int) -> int:
    """Digit number `row`, counted from the left, from 0."""
    return (place >> (64 - bits * (row + 1))) & ((1 << bits) - 1)


def with_digit(place: int, row: int, column: int, bits: int) -> int:
    """The place with digit number `row` replaced by `column`."""
    change = digit(place, row, bits) ^ column
    return place ^ (change << (64 - bits * (row + 1)))
