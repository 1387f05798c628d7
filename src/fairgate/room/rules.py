"""What a process does while it has the lock of a room. The same code runs live and in the exhaustive model.

A process cannot see what others are doing except through its `Senses`: is the owner of a seat dead, or stopped?
"""

from __future__ import annotations

from collections.abc import Collection

from fairgate.room import links, table
from fairgate.room.layout import (
    BY_PEER,
    CLUSTER,
    FAR,
    FENCE,
    FREE,
    HEAD,
    HEARD,
    INSIDE,
    LENDER,
    LOOKS,
    LOSSES,
    NEAR,
    NEXT,
    NUDGE,
    OWNER,
    PERMITS,
    PREVIOUS,
    SEATS,
    SINCE,
    SKIPPED,
    SPARE,
    STATE,
    TICK,
    TICKET,
    WAITING,
)
from fairgate.room.links import CorruptTable, Table
from fairgate.room.table import Change, Step

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from typing import Protocol

    class Senses(Protocol):
        def is_gone(self, seat: int) -> bool:
            """Is the owner of this seat dead, and has it left no process inside? What cannot be seen is alive."""

        def is_stopped(self, seat: int) -> bool:
            """Is the process of this seat stopped (SIGSTOP, a debugger)?"""


class Request(Step):
    """A request for this many permits. `owner` is the name of its bell; `lease` is in ns, or 0."""

    def __init__(self, owner: int, pid: int, namespace: int, user: int, permits: int, lease: int) -> None:
        self.owner = owner
        self.pid = pid
        self.namespace = namespace
        self.user = user
        self.permits = permits
        self.lease = lease


class Duties:
    """What a waiter does next: watch these owners, and look again at `when` at the latest."""

    def __init__(self, owners: set[int], when: int) -> None:
        self.owners = owners
        self.when = when


def ask(m: Table, change: Change, senses: Senses, request: Request) -> int:
    """A seat for the request, or 0 if there is none even without those of dead processes: the room must grow."""
    if m[CLUSTER] != BY_PEER:
        if m[HEAD]:
            bury_passed_over(m, change, senses)
        if not m[HEAD]:  # else it is up to the first waiter: the processes that it lets in are watched by it
            expire(m, change)
    if not m[SPARE]:
        bury_all(m, change, senses)
    seat = table.enter(
        m, change, request.owner, request.pid, request.namespace, request.user, request.permits, request.lease
    )
    if seat and m[seat + STATE] == INSIDE:
        hear(m, seat)
    return seat


def look(m: Table, change: Change, senses: Senses, seat: int, suspects: Collection[int], tick: bool) -> None:
    """What a waiter does whenever it is woken: by its bell, by the death of a watched process, or by a tick.

    `suspects` are the owners that the kernel reported dead, or cannot report. Afterwards the seat may be inside.
    """
    if m[seat + STATE] == WAITING:
        if links.is_skipped(m, seat):
            table.resume(m, change, seat)
        if m[CLUSTER] != BY_PEER:
            look_at_others(m, change, senses, seat, suspects, tick)
    if m[seat + STATE] != WAITING:
        hear(m, seat)
        change.woken += table.perhaps_not_woken(m, seat)


def look_at_others(m: Table, change: Change, senses: Senses, seat: int, suspects: Collection[int], tick: bool) -> None:
    """Not where the peer of a cluster does that."""
    bury_passed_over(m, change, senses)
    bury_watched(m, change, senses, seat, suspects)
    if links.first_waiter(m) == seat:
        expire(m, change)
    if tick and m[seat + STATE] == WAITING:
        look_at_the_head(m, change, senses, seat)
        remind(m, change)


def hear(m: Table, seat: int) -> None:
    """The owner of this seat knows that it was let in. It is the only one who stores this, so it needs no lock."""
    m[seat + HEARD] = 1


def hear_ring(m: Table, seat: int, ticket: int) -> bool:
    """The owner of this request was rung, because it was let in. False if the request is over.

    It needs no lock, but no other thread of its process may close the room meanwhile: another request could get the
    seat. As long as the process lives, nobody else frees it.
    """
    if is_over(m, seat, ticket):
        return False
    hear(m, seat)
    return True


def is_over(m: Table, seat: int, ticket: int) -> bool:
    """Is this seat no longer that of the request with this ticket? Then another thread has closed the room."""
    return m[seat + TICKET] != ticket or m[seat + STATE] == FREE


def look_at_the_head(m: Table, change: Change, senses: Senses, seat: int) -> None:
    """Make sure that the first waiter is able to do its duties."""
    for _ in range(m[SEATS] + 1):
        if m[seat + STATE] != WAITING:
            return
        head = links.first_waiter(m)
        if head == seat:
            return
        elif senses.is_stopped(head):
            table.skip(m, change, head)
        elif senses.is_gone(head):
            table.leave(m, change, head)
        else:
            return
    raise CorruptTable


def remind(m: Table, change: Change) -> None:
    """Wake those whose wake-up was lost, because the process that owed it died, or was left out (table.NUDGE)."""
    for seat in links.holders(m):
        if not m[seat + HEARD] and change.now - m[seat + SINCE] > NUDGE:
            change.woken.append(seat)
    table.wake_if_late(m, change, links.first_waiter(m))


def duties(m: Table, seat: int, now: int) -> Duties:
    """What a waiter watches, and when it looks again on its own; its seat says so, for others to see."""
    watched = links.watched(m, seat) if m[CLUSTER] != BY_PEER else []
    when = now + TICK * (1 + places_from_an_end(m, seat))
    if m[CLUSTER] != BY_PEER and (
        not watched or m[watched[0] + STATE] == INSIDE
    ):  # it is the first waiter, which expires leases
        deadline = links.next_deadline(m)
        if deadline:
            when = min(when, deadline)
    m[seat + LOOKS] = when
    return Duties({m[one + OWNER] for one in watched}, when)


def places_from_an_end(m: Table, seat: int) -> int:
    """How far a waiter is from the first one, or from the last one plus one place; not more than FAR.

    Those in the middle look seldom. If many are let in at once, they come near the head without knowing it; the last
    ones keep looking, and wake a first one that does not know that it is.
    """
    after = m[seat + NEXT]
    for place in range(NEAR):
        if not after:
            return running_ahead(m, seat, 1 + place)
        after = m[after + NEXT]
    ahead = running_ahead(m, seat, NEAR)
    if ahead == NEAR:  # further back only tickets tell: those of requests that gave up lie in between
        ahead = max(NEAR, m[seat + TICKET] - m[links.first_waiter(m) + TICKET])
    return min(ahead, FAR)


def running_ahead(m: Table, seat: int, most: int) -> int:
    """How many waiters before this one are not passed over. No more than `most` are counted."""
    ahead = 0
    before = m[seat + PREVIOUS]
    for _ in range(m[SEATS]):
        if not before or ahead == most:
            return ahead
        if not m[before + SKIPPED]:
            ahead += 1
        before = m[before + PREVIOUS]
    raise CorruptTable


def leave(m: Table, change: Change, seat: int, ticket: int) -> None:
    """Release, or give up, if the seat still belongs to this request.

    One that was let in without hearing of it wakes the others that the same process may not have woken.
    """
    if not is_over(m, seat, ticket):
        if m[seat + STATE] == INSIDE:
            if not m[seat + HEARD]:
                change.woken += table.perhaps_not_woken(m, seat)
            if 0 < links.end_of(m, seat) <= change.now:
                m[LOSSES] = m[LOSSES] + 1
        table.leave(m, change, seat)


def abandon(m: Table, change: Change, owners: Collection[int]) -> None:
    """End all requests of these bells."""
    for seat in links.all_seats(m):
        if m[seat + STATE] != FREE and m[seat + OWNER] in owners:
            leave(m, change, seat, m[seat + TICKET])


def withdraw(m: Table, change: Change) -> None:
    """End the request that this change has made, if any: the change failed, or is repeated."""
    if change.seat:
        leave(m, change, change.seat, change.ticket)
        change.seat = 0  # its ticket tells the step that is repeated that this was done


def resize(m: Table, change: Change, senses: Senses, k: int) -> int:
    """Change k, and return 0. If a waiter wants more permits, return its seat instead: it would keep all waiting."""
    greedy = links.greediest(m)
    if greedy and m[greedy + PERMITS] > k:
        bury_all(m, change, senses)
        greedy = links.greediest(m)
    if greedy and m[greedy + PERMITS] > k:
        return greedy
    table.resize(m, change, k)
    return 0


def pin(m: Table, change: Change, senses: Senses, owner: int, pid: int, namespace: int, user: int) -> int:
    """A seat that keeps the gate in use, or 0 as for `ask`."""
    if not links.has_spare(m):
        bury_all(m, change, senses)
    return table.pin(m, change, owner, pid, namespace, user)


def revoke(m: Table, change: Change, slot: int, fence: int = 0) -> bool:
    """End the permit that holds this slot, if it has this fence, or any. Returns whether there was one."""
    seat = links.holder_of(m, slot)
    if not seat or m[seat + LENDER] or fence not in (0, m[seat + FENCE]):
        return False
    table.lose(m, change, seat)
    return True


def expire(m: Table, change: Change) -> None:
    """Revoke the permits whose lease is over. Only the first waiter does that, or a newcomer if nobody waits."""
    if 0 < links.next_deadline(m) <= change.now:
        for seat in links.holders(m):
            if 0 < links.end_of(m, seat) <= change.now and m[seat + STATE] == INSIDE:
                table.lose(m, change, seat)


# The dead.


def bury_watched(m: Table, change: Change, senses: Senses, seat: int, suspects: Collection[int]) -> None:
    """End the requests of dead processes that this waiter watches, until it watches none."""
    if not suspects:
        return
    for _ in range(m[SEATS] + 1):
        gone = [one for one in links.watched(m, seat) if m[one + OWNER] in suspects and senses.is_gone(one)]
        if not gone:
            return
        for one in gone:
            table.leave(m, change, one)
        if m[seat + STATE] != WAITING:
            return
    raise CorruptTable


def bury_passed_over(m: Table, change: Change, senses: Senses) -> None:
    """End the request of a process that died after it was passed over: nobody watches it. One is looked at per tick."""
    seat = m[HEAD]
    for _ in range(m[SEATS]):
        if not seat or not links.is_skipped(m, seat):
            return
        if change.now - m[seat + LOOKS] > TICK:
            m[seat + LOOKS] = change.now
            if senses.is_gone(seat):
                table.leave(m, change, seat)
            return
        seat = m[seat + NEXT]
    if seat:
        raise CorruptTable


def bury_all(m: Table, change: Change, senses: Senses) -> None:
    """Before the room grows: free the seats of all dead processes."""
    for seat in links.all_seats(m):
        if m[seat + STATE] != FREE and not links.is_away(m, seat) and senses.is_gone(seat):
            table.leave(m, change, seat)
