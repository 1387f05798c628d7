"""The words of a table that are derived from the seats' records: the queue, the slots, and the list of spare seats.

A table is a sequence of 64-bit words (layout.py). These functions read the derived words, or change them one store at a
time; table.py calls them between the two stores of DIRTY.
"""

from collections.abc import Iterator, MutableSequence

from fairgate.room.layout import (
    BUCKETS,
    CAPACITY,
    CLUSTER,
    CLUSTER_SLOT,
    DEADLINE,
    GRANTED_BY,
    GRANTS,
    HEAD,
    HISTOGRAM,
    INSIDE,
    LENDER,
    LIMIT,
    LONGEST,
    NEXT,
    ON_LOAN,
    PERMITS,
    PINNED,
    PREVIOUS,
    PROMISED,
    SEAT,
    SEATS,
    SKIPPED,
    SLOT,
    SLOTS,
    SPARE,
    STATE,
    TAIL,
    TICKET,
    USED,
    WAITED,
    K,
)

Table = MutableSequence[int]


class CorruptTable(Exception):
    """The derived words contradict each other: rebuild the table."""


DAMAGE = (CorruptTable, IndexError, OverflowError, ValueError)  # an index or a number that no change has stored


# Where things are.


def first_seat(m: Table) -> int:
    return SLOTS + 2 * m[CAPACITY]


def until_at(m: Table, slot: int) -> int:
    """Where it says until when the slot is on loan to this host, in a room of a cluster."""
    return SLOTS + m[CAPACITY] + slot


def size(capacity: int, seats: int) -> int:
    """In words."""
    return SLOTS + 2 * capacity + SEAT * seats


def all_seats(m: Table) -> range:
    first = first_seat(m)
    return range(first, first + SEAT * m[SEATS], SEAT)


def is_seat(m: Table, seat: int) -> bool:
    first = first_seat(m)
    return first <= seat < first + SEAT * m[SEATS] and (seat - first) % SEAT == 0


# Who is there, and who watches whom.


def waiters(m: Table) -> Iterator[int]:
    """The queue. The seat that was yielded last may be unlinked meanwhile."""
    seat = m[HEAD]
    for _ in range(m[SEATS]):
        if not seat:
            return
        after = m[seat + NEXT]
        yield seat
        seat = after
    if seat:
        raise CorruptTable  # a loop


def first_waiter(m: Table) -> int:
    """The first one that is not passed over: it watches the holders."""
    seat = m[HEAD]
    for _ in range(m[SEATS]):
        if not seat or not m[seat + SKIPPED]:
            return seat
        seat = m[seat + NEXT]
    if seat:
        raise CorruptTable  # a loop
    return 0


def watched(m: Table, seat: int) -> list[int]:
    """The seats that the owner of this waiting seat must watch: the waiter before it, else all holders."""
    before = running_before(m, seat)
    return [before] if before else users(m)


def running_before(m: Table, seat: int) -> int:
    """The waiter before this one that is not passed over, or 0."""
    before = m[seat + PREVIOUS]
    for _ in range(m[SEATS]):
        if not before or not m[before + SKIPPED]:
            return before
        before = m[before + PREVIOUS]
    raise CorruptTable


def greediest(m: Table) -> int:
    """The waiter that wants the largest number of permits, or 0."""
    return max(waiters(m), key=lambda seat: m[seat + PERMITS], default=0)


def holders(m: Table) -> list[int]:
    """The seats that are inside, each once."""
    left = m[USED]
    if not left:
        return []
    found: dict[int, None] = {}
    for at in range(SLOTS, SLOTS + m[CAPACITY]):
        if left <= 0:
            break
        if m[at]:
            left -= 1
            found[m[at]] = None
    return list(found)


def users(m: Table) -> list[int]:
    """The holders whose death frees a slot: not the peer of a cluster, whose slots are on other hosts."""
    return [seat for seat in holders(m) if not m[seat + LENDER]]


def is_away(m: Table, seat: int) -> bool:
    """Does this seat keep a slot that is on another host? It is never freed for its owner's death, and the next peer
    takes it over."""
    return m[seat + LENDER] != 0 and m[seat + STATE] == INSIDE


def valid_holders(m: Table, now: int) -> list[int]:
    """Without those whose lease is over: their seats stay until somebody needs the slots."""
    return [seat for seat in holders(m) if not 0 < end_of(m, seat) <= now]


def holder_of(m: Table, slot: int) -> int:
    """The seat that holds the slot, or 0."""
    return m[SLOTS + slot] if 0 <= slot < m[CAPACITY] else 0


def next_deadline(m: Table) -> int:
    """The earliest end of a lease, or 0."""
    earliest = 0
    for seat in holders(m) if m[USED] else ():
        deadline = end_of(m, seat)
        if deadline > 0 and (not earliest or deadline < earliest):
            earliest = deadline
    return earliest


def end_of(m: Table, seat: int) -> int:
    """When a permit ends at the latest: by its own lease, or with what its cluster has promised or lent; 0: never."""
    deadline, promised = m[seat + DEADLINE], m[seat + PROMISED]
    if m[CLUSTER] == ON_LOAN and not m[seat + LENDER]:
        promised = lent_until(m, seat)
    return min(deadline, promised) if deadline and promised else deadline + promised


def lent_until(m: Table, seat: int) -> int:
    """Until when all slots of a user are on loan, which is over at 1: then none of its slots is, or not any more."""
    return min([m[until_at(m, slot)] or 1 for slot in slots_of(m, seat)], default=1)


def is_on_loan(m: Table, slot: int, now: int) -> bool:
    return m[until_at(m, slot)] > now


def may_have(m: Table, seat: int, slot: int, now: int) -> bool:
    """May the request of this seat be let in to this slot, if that is free?

    Where slots are on loan, a user may have those that are. The peer that lends may have any.
    """
    return m[CLUSTER] != ON_LOAN or m[seat + LENDER] != 0 or is_on_loan(m, slot, now)


def fits(m: Table, seat: int, now: int) -> bool:
    """Can this waiter be let in?"""
    left = m[seat + PERMITS]
    if m[USED] + left > m[K]:
        return False
    if m[CLUSTER] != ON_LOAN or m[seat + LENDER]:
        return True
    for slot in range(m[CAPACITY]):
        if not m[SLOTS + slot] and is_on_loan(m, slot, now):
            left -= 1
            if left <= 0:
                return True
    return False


def shown_slots(m: Table, seat: int) -> tuple[int, ...]:
    """The slots of a seat that is inside, as its user knows them: in a room of a cluster that of the cluster."""
    if m[seat + GRANTED_BY]:
        return (m[seat + CLUSTER_SLOT] - 1,) if m[seat + CLUSTER_SLOT] else ()
    return slots_of(m, seat)


def slots_of(m: Table, seat: int) -> tuple[int, ...]:
    """The slots of a seat that is inside."""
    if m[seat + PERMITS] == 1:
        return (m[seat + SLOT],)
    found = []
    for at in range(SLOTS + m[seat + SLOT], SLOTS + m[CAPACITY]):
        if m[at] == seat:
            found.append(at - SLOTS)
            if len(found) == m[seat + PERMITS]:
                break
    return tuple(found)


def has_spare(m: Table) -> bool:
    return m[SPARE] != 0


def is_in_use(m: Table) -> bool:
    """Is anybody inside or waiting, or keeps the gate's k as it is?"""
    return m[USED] != 0 or m[HEAD] != 0 or any(m[seat + STATE] == PINNED for seat in all_seats(m))


def is_skipped(m: Table, seat: int) -> bool:
    return m[seat + SKIPPED] != 0


# Stores.


def append(m: Table, seat: int) -> None:
    tail = m[TAIL]
    m[seat + NEXT] = 0
    m[seat + PREVIOUS] = tail
    if tail:
        m[tail + NEXT] = seat
    else:
        m[HEAD] = seat
    m[TAIL] = seat


def insert(m: Table, seat: int) -> None:
    """As `append`, but where the ticket belongs, which was reserved earlier."""
    before = m[TAIL]
    for _ in range(m[SEATS]):
        if not before or m[before + TICKET] < m[seat + TICKET]:
            break
        before = m[before + PREVIOUS]
    after = m[before + NEXT] if before else m[HEAD]
    m[seat + PREVIOUS] = before
    m[seat + NEXT] = after
    if before:
        m[before + NEXT] = seat
    else:
        m[HEAD] = seat
    if after:
        m[after + PREVIOUS] = seat
    else:
        m[TAIL] = seat


def unlink(m: Table, seat: int, woken: list[int] | None) -> None:
    """Take a seat out of the queue. The one behind it has another one to watch now: it is added to `woken`."""
    before, after = m[seat + PREVIOUS], m[seat + NEXT]
    if before:
        m[before + NEXT] = after
    else:
        m[HEAD] = after
    if after:
        m[after + PREVIOUS] = before
        if woken is not None:
            woken.append(after)
    else:
        m[TAIL] = before


def take_slots(m: Table, seat: int, now: int) -> int:
    """Fill the lowest free slots that it may have. Returns the first of them."""
    left = m[seat + PERMITS]
    first = -1
    for at in range(SLOTS, SLOTS + m[CAPACITY]):
        if not m[at] and may_have(m, seat, at - SLOTS, now):
            m[at] = seat
            if first < 0:
                first = at - SLOTS
            left -= 1
            if left <= 0:
                return first
    raise CorruptTable


def empty_slots(m: Table, seat: int) -> None:
    left = m[seat + PERMITS]
    m[USED] = m[USED] - left
    at = SLOTS + m[seat + SLOT]
    end = SLOTS + m[CAPACITY]
    while left and at < end:
        if m[at] == seat:
            m[at] = 0
            left -= 1
        at += 1


def put_spare(m: Table, seat: int) -> None:
    m[seat + NEXT] = m[SPARE]
    m[SPARE] = seat


def count(m: Table, waited: int) -> None:
    """Counters for metrics. They begin again, all at once, before the sum of the waits no longer fits into its word."""
    if m[WAITED] >= LIMIT - waited:
        m[GRANTS] = m[WAITED] = m[LONGEST] = 0
        for at in range(HISTOGRAM, HISTOGRAM + BUCKETS):
            m[at] = 0
    m[GRANTS] = m[GRANTS] + 1
    m[WAITED] = m[WAITED] + waited
    if waited > m[LONGEST]:
        m[LONGEST] = waited
    bucket = HISTOGRAM + (min((waited // 1000).bit_length(), BUCKETS - 1) if waited > 1000 else 0)
    m[bucket] = m[bucket] + 1
