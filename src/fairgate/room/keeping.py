"""A process that uses a gate alone keeps its slot, and enters again without the lock.

After a release its seat stays INSIDE. The word KEPT says whether the process is really inside, and has the fence of its
last entry. The process changes KEPT without the lock, by one atomic exchange for each entry and each release.

The next process that takes the lock calls `end` first, which takes the slot away. `end` adds 1 to ENDINGS and then
reads KEPT; a process that enters or leaves exchanges KEPT and then reads ENDINGS. Both have a memory barrier in
between, so at least one of the two sees what the other one did:

- `end` sees that the process is inside: its seat is one like any other from now on.
- The process sees that the keeping has ended: it cannot know what `end` saw, so it takes the lock and looks.

A fence is never given twice. So a process that was stopped for long cannot take the KEPT of another one for its own.
Plain Python has no atomic exchange: it ends the keeping of others, but keeps nothing itself (`words.ATOMIC`).
"""

from fairgate.room import links, table
from fairgate.room.layout import (
    BY_PEER,
    CLUSTER,
    DEADLINE,
    ENDINGS,
    FENCE,
    GRANTS,
    HEAD,
    HISTOGRAM,
    INSIDE,
    KEPT,
    KEPT_FROM,
    KEPT_SEAT,
    LAST_FENCE,
    LIMIT,
    ON_LOAN,
    PERMITS,
    SINCE,
    SLOT,
    STATE,
    TICKET,
    USED,
)
from fairgate.room.links import Table
from fairgate.room.table import Change
from fairgate.room.words import barrier, swap

# KEPT is twice the fence of the last entry, plus one of these.
RESTS = 0
IS_INSIDE = 1


def is_alone(m: Table, seat: int, ticket: int) -> bool:
    """With the lock: may the holder of this seat keep its slot?

    Not if it has a lease, there is anybody else, or the peer of a cluster lets anybody in.
    """
    return (
        m[HEAD] == 0
        and m[CLUSTER] != BY_PEER
        and (m[USED] == 1 or (m[CLUSTER] == ON_LOAN and len(links.users(m)) == 1))
        and m[seat + TICKET] == ticket
        and m[seat + STATE] == INSIDE
        and m[seat + PERMITS] == 1
        and m[seat + DEADLINE] == 0
        and m[seat + FENCE] == m[LAST_FENCE]
    )


def keep(m: Table, seat: int) -> int:
    """With the lock: release a permit, but keep its seat. Returns what `enter` and `rest` have to know."""
    m[KEPT_SEAT] = seat
    m[KEPT_FROM] = m[seat + FENCE]
    m[KEPT] = 2 * m[seat + FENCE] + RESTS  # the last store: it commits the others
    return m[ENDINGS]


def enter(m: Table, seat: int, fence: int, endings: int, now: int) -> bool:
    """Without the lock: the owner of this seat enters again, with the next fence. False if that is not certain."""
    if m[CLUSTER] == ON_LOAN and not links.is_on_loan(m, m[seat + SLOT], now):
        return False
    if not swap(m, KEPT, 2 * fence + RESTS, 2 * fence + 2 + IS_INSIDE) or m[ENDINGS] != endings:
        return False
    m[seat + FENCE] = fence + 1
    m[seat + SINCE] = now
    return True


def rest(m: Table, seat: int, fence: int, endings: int) -> bool:
    """Without the lock: release the permit with this fence, and keep its seat. False if that is not certain.

    A permit may have got a lease meanwhile.
    """
    if m[seat + DEADLINE]:
        return False
    return swap(m, KEPT, 2 * fence + IS_INSIDE, 2 * fence + RESTS) and m[ENDINGS] == endings


def end(m: Table, change: Change) -> None:
    """With the lock: nobody keeps a slot from now on. It can be repeated, if a process died in the middle of it."""
    m[ENDINGS] = m[ENDINGS] + 1 if 0 <= m[ENDINGS] < LIMIT else 1
    barrier()
    kept = m[KEPT]
    seat, fence = m[KEPT_SEAT], kept >> 1
    if links.is_seat(m, seat) and m[seat + STATE] == INSIDE and m[KEPT_FROM] <= fence < LIMIT:
        m[LAST_FENCE] = max(m[LAST_FENCE], fence)
        m[seat + FENCE] = fence
        count(m, fence - m[KEPT_FROM])
        m[KEPT_FROM] = fence
        if kept & 1 == RESTS:
            table.leave(m, change, seat)
    m[KEPT] = 0


def count(m: Table, entries: int) -> None:
    """Counters for metrics: these did not have to wait."""
    m[GRANTS] = m[GRANTS] + entries
    m[HISTOGRAM] = m[HISTOGRAM] + entries
