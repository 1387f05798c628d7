"""Files of version 3, the one before today's, as tables of today.

So they can be looked at while older processes use them, and one that nobody uses is made anew with fences and counters
that go on. Version 3 has no times beside the slots, a shorter header and shorter seats.
"""

from __future__ import annotations

from fairgate.room import links
from fairgate.room.layout import (
    BECKON,
    CAPACITY,
    DIRTY,
    IS_A_ROOM,
    KEPT_SEAT,
    LENDER,
    MAGIC,
    MOST_SEATS,
    MOST_SLOTS,
    NOTE,
    SEAT,
    SEATS,
    SLOTS,
    THIS_VERSION,
    VERSION,
)
from fairgate.room.links import Table
from fairgate.room.words import copied

OLDER = 3
HEADER_THEN = BECKON  # words
SEAT_THEN = 56
NOTE_THEN = LENDER
SIZE_THEN = 8 * (HEADER_THEN + MOST_SLOTS + 64 * SEAT_THEN)  # bytes of a new file


def is_older(m: Table) -> bool:
    return len(m) >= HEADER_THEN and m[MAGIC] == IS_A_ROOM and m[VERSION] == OLDER


def converted(m: Table) -> Table:
    """A copy as a table of today; the same table if it is one, or cannot be converted."""
    if not is_older(m):
        return m
    capacity, seats = m[CAPACITY], m[SEATS]
    first_then = HEADER_THEN + capacity
    if not (1 <= capacity <= MOST_SLOTS and 1 <= seats <= MOST_SEATS and first_then + SEAT_THEN * seats <= len(m)):
        return m
    new: Table = copied(bytes(8 * links.size(capacity, seats)))
    for at in range(HEADER_THEN):
        new[at] = m[at]
    new[VERSION] = THIS_VERSION
    new[DIRTY] = 1  # links between seats are not copied
    first = links.first_seat(new)

    def moved(seat: int) -> int:
        place, rest = divmod(seat - first_then, SEAT_THEN)
        return first + SEAT * place if rest == 0 and 0 <= place < seats else 0

    new[KEPT_SEAT] = moved(m[KEPT_SEAT])
    for slot in range(capacity):
        new[SLOTS + slot] = moved(m[HEADER_THEN + slot])
    for place in range(seats):
        then, seat = first_then + SEAT_THEN * place, first + SEAT * place
        for at in range(NOTE_THEN):
            new[seat + at] = m[then + at]
        for at in range(SEAT_THEN - NOTE_THEN):
            new[seat + NOTE + at] = m[then + NOTE_THEN + at]
    return new
