"""The table of a room: its transitions, on a sequence of 64-bit words, with no system call.

All changes happen under a lock, one word at a time. A process can die after any single store, so:

- The seats' records are the truth. A seat's STATE is stored last: it commits the other words of the record.
- A slot belongs to a seat only if that seat is INSIDE. Slots are stored before the state, so half a grant is no grant.
- HEAD, TAIL, NEXT, PREVIOUS, SPARE and USED are derived from the records. DIRTY is set while they may be wrong. A
  process that takes the lock and finds DIRTY set calls `rebuild`, which also finishes what was interrupted.

Waiters are served by ticket. Each waiter watches its predecessor and the first one watches the holders, so that a
living process notices every death (`watched`). Transitions collect the seats to wake in `Change.woken`; `in_order` says
in which order, because the process that wakes them may die in between.
"""

from collections.abc import Callable

from fairgate.room.layout import (
    ASKED,
    ASKED_K,
    BECKON,
    BOOT,
    BUCKETS,
    BY_PEER,
    CAPACITY,
    CLUSTER,
    DEADLINE,
    DEEP,
    DIRTY,
    FENCE,
    FREE,
    GRANTED_BY,
    GRANTS,
    GROUP,
    HEAD,
    HEARD,
    HISTOGRAM,
    INSIDE,
    IS_A_ROOM,
    IS_BEING_MADE,
    KEPT,
    LAST_FENCE,
    LEASE,
    LENDER,
    LIMIT,
    LONGEST,
    LOOKS,
    LOSSES,
    LOST,
    MAGIC,
    MOST_SEATS,
    MOST_SLOTS,
    NAMESPACE,
    NEXT,
    NEXT_TICKET,
    NOTE,
    NUDGE,
    NUDGED,
    ON_LOAN,
    OWNER,
    PATIENT,
    PEER,
    PEER_BELL,
    PERMITS,
    PID,
    PINNED,
    PROMISED,
    REFUSED,
    SEAT,
    SEATS,
    SINCE,
    SKIPPED,
    SLOT,
    SLOTS,
    SPARE,
    STATE,
    STOP,
    TAIL,
    THIS_VERSION,
    TICK,
    TICKET,
    USED,
    USER,
    VERSION,
    WAITED,
    WAITING,
    K,
)
from fairgate.room.links import (
    CorruptTable,
    Table,
    all_seats,
    append,
    count,
    empty_slots,
    first_seat,
    first_waiter,
    fits,
    holders,
    is_seat,
    put_spare,
    size,
    take_slots,
    unlink,
)


class Change:
    """One change of a table: when it happens, which seats to wake afterwards, and which processes are stopped.

    `seat` and `ticket` are those of the request that it has made, if any. In a room of a cluster, `called` are the
    tickets that its peer has to look at; 0 stands for all.
    """

    def __init__(self, now: int, is_stopped: Callable[[int], bool]) -> None:
        self.is_stopped = is_stopped
        self.woken: list[int] = []
        self.called: list[int] = []
        self.begin(now)

    def begin(self, now: int) -> None:
        """Use this object for another change."""
        self.now: int = now
        if self.woken:
            self.woken = []
        if self.called:
            self.called = []
        self.seat = 0
        self.ticket = 0


class Step:
    """A step of a change, like any callable. The most frequent ones are objects: C code calls `run` directly."""

    def __call__(self, change: Change) -> bool:
        return self.run(change)

    def run(self, change: Change) -> bool:
        raise NotImplementedError


# The whole table.


def create(m: Table, capacity: int, seats: int, k: int, fence: int, boot: int) -> None:
    """A new table, or an old one of which no process can be alive: its fences and tickets go on rising."""
    m[MAGIC] = IS_BEING_MADE
    m[VERSION], m[CAPACITY], m[SEATS], m[BOOT] = THIS_VERSION, capacity, seats, boot
    m[K] = m[ASKED_K] = k
    m[NEXT_TICKET] = max(1, m[NEXT_TICKET])
    m[LAST_FENCE] = max(fence, m[LAST_FENCE])
    m[NUDGED], m[STOP], m[KEPT], m[PEER], m[PEER_BELL] = 0, 0, 0, 0, 0
    for seat in all_seats(m):
        m[seat + STATE] = FREE
    for at in range(BECKON, first_seat(m)):
        m[at] = 0
    m[BECKON] = 1  # the peer has not seen it yet
    rebuild(m, Change(0, nobody_is_stopped))
    m[MAGIC] = IS_A_ROOM


def nobody_is_stopped(seat: int) -> bool:
    return False


def why_unusable(m: Table) -> str:
    """What is wrong with the header, or "". The caller has checked that the header itself is there."""
    if m[MAGIC] != IS_A_ROOM:
        return "it is not a gate file"
    if m[VERSION] != THIS_VERSION:
        return f"it has version {m[VERSION]}, and this fairgate uses version {THIS_VERSION}"
    if not (1 <= m[CAPACITY] <= MOST_SLOTS and 1 <= m[SEATS] <= MOST_SEATS and 1 <= m[K] <= m[CAPACITY]):
        return "its header is damaged"
    if size(m[CAPACITY], m[SEATS]) > len(m):
        return f"it is cut off: {8 * len(m)} bytes of {8 * size(m[CAPACITY], m[SEATS])}"
    return ""


def grow(m: Table, seats: int) -> None:
    """The buffer has room for this many seats now."""
    m[DIRTY] = 1
    old = all_seats(m).stop
    m[SEATS] = seats
    for seat in range(old, all_seats(m).stop, SEAT):
        m[seat + STATE] = FREE
        put_spare(m, seat)
    m[DIRTY] = 0


def rebuild(m: Table, change: Change) -> None:
    """Derive everything from the records, finish what was interrupted, and wake those who may not have heard of it."""
    m[DIRTY] = 1
    m[HEAD] = m[TAIL] = m[SPARE] = m[USED] = 0
    m[K] = min(max(m[K], 1), m[CAPACITY])
    m[NEXT_TICKET] = max(m[NEXT_TICKET], 1) if m[NEXT_TICKET] < LIMIT else 1
    for at in (GRANTS, LOSSES, WAITED, LONGEST, *range(HISTOGRAM, HISTOGRAM + BUCKETS)):
        if not 0 <= m[at] < LIMIT:  # damaged
            m[at] = 0
    slots = rebuild_slots(m)
    queue = []
    for seat in reversed(all_seats(m)):
        state = m[seat + STATE]
        if not 0 < m[seat + TICKET] < LIMIT or m[seat + FENCE] < 0:  # damaged, like the next two
            state = m[seat + STATE] = FREE
        if state == WAITING and not 1 <= m[seat + PERMITS] <= m[K]:
            state = m[seat + STATE] = FREE
        if state == INSIDE and slots.get(seat, 0) != m[seat + PERMITS]:
            state = m[seat + STATE] = LOST
        if state == WAITING:
            queue.append((m[seat + TICKET], seat))
        elif state in (INSIDE, LOST):
            m[LAST_FENCE] = max(m[LAST_FENCE], m[seat + FENCE])
            if state == LOST or not m[seat + HEARD]:
                change.woken.append(seat)
        elif state == REFUSED:
            change.woken.append(seat)
        elif state != PINNED:
            m[seat + STATE] = FREE
            put_spare(m, seat)
            continue
        m[NEXT_TICKET] = max(m[NEXT_TICKET], m[seat + TICKET] + 1)
    rebuild_slots(m)
    call_peer(m, change, 0)
    for _, seat in sorted(queue):
        append(m, seat)
    let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def rebuild_slots(m: Table) -> dict[int, int]:
    """Empty the slots whose seat is not inside, and count the others in USED. Returns how many each seat holds."""
    m[USED] = 0
    held: dict[int, int] = {}
    for at in range(SLOTS, SLOTS + m[CAPACITY]):
        seat = m[at]
        if seat and is_seat(m, seat) and m[seat + STATE] == INSIDE:
            m[USED] = m[USED] + 1
            held[seat] = held.get(seat, 0) + 1
        elif seat:
            m[at] = 0
    return held


# Transitions.


def enter(m: Table, change: Change, owner: int, pid: int, namespace: int, user: int, permits: int, lease: int) -> int:
    """A new request: its seat, which waits or is inside already. Returns 0 if all seats are taken."""
    seat = m[SPARE]
    if seat:
        take_spare(m, change, owner, pid, namespace, user, permits, lease)
        m[seat + STATE] = WAITING
        append(m, seat)
        call_peer(m, change, m[seat + TICKET])
        let_in_all_that_fit(m, change)
        beckon(m, change, seat)
        m[DIRTY] = 0
    return seat


def pin(m: Table, change: Change, owner: int, pid: int, namespace: int, user: int) -> int:
    """A seat that keeps the gate in use. Returns 0 if all seats are taken."""
    seat = m[SPARE]
    if seat:
        take_spare(m, change, owner, pid, namespace, user, 0, 0)
        m[seat + STATE] = PINNED
        m[DIRTY] = 0
    return seat


def take_spare(
    m: Table, change: Change, owner: int, pid: int, namespace: int, user: int, permits: int, lease: int
) -> None:
    """Fill the record of the first spare seat, all but its state. The table stays marked as dirty."""
    seat = m[SPARE]
    if not is_seat(m, seat):
        raise CorruptTable
    m[DIRTY] = 1
    ticket = m[NEXT_TICKET]
    change.seat, change.ticket = seat, ticket
    m[NEXT_TICKET] = ticket + 1
    m[seat + TICKET], m[seat + PERMITS], m[seat + LEASE] = ticket, permits, lease
    m[seat + OWNER], m[seat + PID], m[seat + NAMESPACE], m[seat + USER] = owner, pid, namespace, user
    m[seat + ASKED], m[seat + SKIPPED], m[seat + GROUP], m[seat + NOTE] = change.now, 0, 0, 0
    m[seat + HEARD], m[seat + LOOKS] = 0, 0
    m[seat + GRANTED_BY], m[seat + PROMISED], m[seat + LENDER] = 0, 0, 0
    m[SPARE] = m[seat + NEXT]


def leave(m: Table, change: Change, seat: int) -> None:
    """A request is over: released, cancelled, its loss was seen, or its owner is dead."""
    m[DIRTY] = 1
    state = m[seat + STATE]
    m[seat + STATE] = FREE
    if state == WAITING:
        unlink(m, seat, change.woken)
        wake_if_late(m, change, m[TAIL])
    elif state == INSIDE:
        empty_slots(m, seat)
    put_spare(m, seat)
    call_peer(m, change, m[seat + TICKET])
    let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def lose(m: Table, change: Change, seat: int) -> None:
    """Revoke a holder's permit. The seat stays until its owner has seen that."""
    m[DIRTY] = 1
    m[seat + SINCE] = change.now  # before the state: its owner looks without the lock
    m[seat + STATE] = LOST
    change.woken.append(seat)
    m[LOSSES] = m[LOSSES] + 1
    empty_slots(m, seat)
    call_peer(m, change, m[seat + TICKET])
    let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def skip(m: Table, change: Change, seat: int) -> None:
    """Pass over a waiter that is stopped. It keeps its ticket.

    It is woken, so that it looks as soon as it continues. The one behind it takes over its duties.
    """
    m[DIRTY] = 1
    pass_over(m, change, seat)
    wake_next(m, change, seat)
    let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def pass_over(m: Table, change: Change, seat: int) -> None:
    m[seat + LOOKS] = change.now  # that is when others looked at it last
    m[seat + SKIPPED] = 1
    change.woken.append(seat)


def resume(m: Table, change: Change, seat: int) -> None:
    """A waiter that was passed over runs again."""
    m[DIRTY] = 1
    m[seat + SKIPPED] = 0
    wake_next(m, change, seat)
    call_peer(m, change, m[seat + TICKET])
    let_in_all_that_fit(m, change)
    beckon(m, change, seat)
    m[DIRTY] = 0


def resize(m: Table, change: Change, k: int) -> None:
    """Holders beyond the new k stay; nobody else is let in until there are fewer. No waiter may want more than k."""
    m[DIRTY] = 1
    m[K] = k
    let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def extend(m: Table, seat: int, deadline: int) -> None:
    """One store: it needs no DIRTY."""
    m[seat + DEADLINE] = deadline


# Letting in.


def let_in_all_that_fit(m: Table, change: Change) -> None:
    """Let waiters in, by ticket. The first one that does not fit keeps all others waiting, so that none starves.

    Where the peer of a cluster does that, nobody else lets anybody in.
    """
    if m[CLUSTER] == BY_PEER:
        return
    granted = 0
    after = m[HEAD]
    for _ in range(m[SEATS]):
        seat = after
        if not seat:
            break
        after = m[seat + NEXT]
        if not m[seat + SKIPPED]:
            if not fits(m, seat, change.now):
                break
            if change.now - m[seat + ASKED] > PATIENT and change.is_stopped(seat):
                pass_over(m, change, seat)
            else:
                let_in(m, change, seat)
                granted = seat
                if seat != change.seat:  # the process that makes this change sees that by itself
                    change.woken.append(seat)
    else:
        if after:
            raise CorruptTable  # a loop
    if granted and m[HEAD] and change.now - m[NUDGED] >= NUDGE:
        nudge(m, change, granted)


def call_peer(m: Table, change: Change, ticket: int) -> None:
    """Something has happened to this request, or, if it is 0, perhaps to any. The peer lets in whose turn it is."""
    if m[CLUSTER] == BY_PEER:
        change.called.append(ticket)


def beckon(m: Table, change: Change, seat: int) -> None:
    """If this request has to wait, the peer may get another slot from its cluster."""
    if m[CLUSTER] == ON_LOAN and m[BECKON] and seat and m[seat + STATE] == WAITING:
        change.called.append(0)


def let_in(m: Table, change: Change, seat: int) -> None:
    """Grant a waiter the lowest free slots."""
    m[seat + SLOT] = take_slots(m, seat, change.now)
    m[LAST_FENCE] = m[LAST_FENCE] + 1
    m[seat + FENCE] = m[LAST_FENCE]
    m[seat + SINCE] = change.now
    m[seat + DEADLINE] = min(change.now + m[seat + LEASE], LIMIT) if m[seat + LEASE] else 0
    m[seat + STATE] = INSIDE
    m[USED] = m[USED] + m[seat + PERMITS]
    unlink(m, seat, None)
    if not m[seat + LENDER]:
        count(m, change.now - m[seat + ASKED])


def nudge(m: Table, change: Change, granted: int) -> None:
    """Wake the new first waiter, after this seat was let in, and the one behind it, which will notice if it is stopped.

    It has other holders to watch now than when it looked last, or a lease to expire, or it was far behind.
    """
    if m[K] > 1 or m[granted + DEADLINE] or m[m[TAIL] + TICKET] - m[granted + TICKET] > DEEP:
        seat = first_waiter(m)
        if seat:
            m[NUDGED] = change.now
            change.woken.append(seat)
            wake_next(m, change, seat)


# Who watches whom, and who is woken.


def wake_next(m: Table, change: Change, seat: int) -> None:
    """Wake the waiter behind: it has another one to watch now."""
    if m[seat + NEXT]:
        change.woken.append(m[seat + NEXT])


def wake_if_late(m: Table, change: Change, seat: int) -> None:
    """Wake a waiter at an end of the queue that does not know of its place: it would not look for a long time."""
    if seat and m[seat + LOOKS] - change.now > 2 * TICK:
        change.woken.append(seat)


def in_order(m: Table, woken: list[int]) -> list[int]:
    """The seats to wake, each once.

    First those that only have to look again, because they may have to watch those that are let in. Of these the first
    comes last: it watches the process that lets it in, and so notices if that one dies before it has woken everybody.
    """
    each = list(dict.fromkeys(woken))
    looking = [seat for seat in each if m[seat + STATE] in (WAITING, REFUSED)]
    return looking + [seat for seat in reversed(each) if m[seat + STATE] in (INSIDE, LOST)]


def perhaps_not_woken(m: Table, seat: int) -> list[int]:
    """A waiter that learns of its grant by a death wakes these: the dead process may not have got that far."""
    after = first_waiter(m)
    return [one for one in holders(m) if one != seat and not m[one + HEARD]] + ([after] if after else [])
