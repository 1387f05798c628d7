"""A room of a cluster: the other hosts are one more user of it, whom the cluster's peer on this host represents.

A slot that is not on this host is held by a seat of the peer (LENDER). When the protocol of the cluster grants the peer
a slot, the peer leaves that seat, so that users of the room have the slot. When somebody on another host waits, the
peer asks for a slot in this room as any process does, waits for its turn, and gives what it gets back to the protocol.
Order, deaths, stops, lost rings and leases come from the rules of any room (rules.py). In between, while nobody on
another host waits, the peer has nothing to do.

- Beside each slot is the time until which it is on loan. Only its peer raises that, and never once it is over. Users
  are let in to slots on loan only, and their permits end with them. So if the peer is dead or stopped, every user knows
  by itself when its permit ends.
- A seat of the peer that is inside is not freed when the peer dies: its slot belongs to others. The next peer takes it
  over. One that waits is a request like any other: it is buried if the peer is dead, and passed over if it is stopped.
- The peer asks the protocol when a user waits for whom it has not asked yet, and reserves tickets at that moment. If
  others wait when the grant comes, it first asks for a slot back with such a ticket, and then lends: those who asked
  before that share the grant, and later ones do not. Such a request of the peer is a *marker*. If nobody stands before
  it, a slot is back in the same change, so requests to the protocol need never be withdrawn.
- The protocol grants in order: whoever waits elsewhere when a grant comes has asked later than those it was asked for.
  So all markers move behind them. Otherwise an earlier marker would take the slot, and they would wait for another one,
  perhaps for hours, although there are enough.
- If nobody waits elsewhere, there is no marker, and the loan lasts. When somebody does, a marker is put behind all.
- Fences go on from that of the grant. The peer tells the protocol how many have been used.

All functions but `renew` are called with the lock of the room. Like the table, they see neither clock nor kernel.
"""

from __future__ import annotations

from collections.abc import Collection

from fairgate.core.ids import NIL
from fairgate.room import links, rules, table
from fairgate.room.layout import (
    BECKON,
    CAPACITY,
    DIRTY,
    FENCE,
    HEARD,
    INSIDE,
    LAST_FENCE,
    LENDER,
    LIMIT,
    NAMESPACE,
    NEXT_TICKET,
    OWNER,
    PEER,
    PEER_BELL,
    PERMITS,
    PID,
    SKIPPED,
    SLOT,
    SLOTS,
    SPARE,
    STATE,
    TICKET,
    USED,
    USER,
    WAITING,
    K,
)
from fairgate.room.links import Table
from fairgate.room.table import Change

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from fairgate.room.rules import Senses

MOST_PENDING = 4  # requests to the protocol that it has not granted; or k


class NoSeat(Exception):
    """The room must grow. What was done before can be done again."""


class Lender:
    """A peer, and what it knows of one room.

    `back` and `ask` are for the protocol. They stay until it has been told.
    """

    def __init__(self, me: int, owner: int, pid: int, namespace: int, user: int) -> None:
        self.me = me  # its id in the cluster
        self.owner = owner  # its bell
        self.pid = pid
        self.namespace = namespace
        self.user = user
        self.lent: dict[int, int] = {}  # slots, and the fences with which they were granted
        self.markers: dict[int, int] = {}  # the tickets and seats of its requests in this room
        self.pending: list[int] = []  # its requests to the protocol, in order: the first of the k tickets of each
        self.back: list[tuple[int, int, int]] = []  # slots, the fences of their grants, how many were used above those
        self.ask = 0  # for so many more slots
        self.soonest = 0  # no loan ends before this time
        self.earlier_until = 0  # no loan of an earlier peer ends after this time


class Grant:
    """Of the protocol, for the oldest request of this peer. `others`: somebody waits elsewhere, or may wait."""

    def __init__(self, slot: int, fence: int, until: int, others: bool) -> None:
        self.slot = slot
        self.fence = fence
        self.until = until
        self.others = others


def take_over(m: Table, change: Change, senses: Senses, lender: Lender, k: int) -> None:
    """From now on this peer lends, and has what is away."""
    m[PEER_BELL] = lender.owner
    m[PEER] = lender.me
    m[K] = k
    rules.bury_all(m, change, senses)
    for seat in links.all_seats(m):
        if m[seat + LENDER] and m[seat + STATE] == WAITING and m[seat + LENDER] != lender.me:
            table.leave(m, change, seat)  # of this process, when it had another id
    for slot in range(m[CAPACITY]):
        seat = m[SLOTS + slot]
        if seat and m[seat + LENDER]:
            if slot < k:
                identify(m, seat, lender)
            else:
                table.leave(m, change, seat)
        elif slot < k and not links.is_on_loan(m, slot, change.now):
            seize(m, change, lender, slot)
    lender.earlier_until = max([m[links.until_at(m, slot)] for slot in range(k)])


def turn(
    m: Table,
    change: Change,
    senses: Senses,
    lender: Lender,
    grants: Collection[Grant],
    suspects: Collection[int],
    wanted: int,
    tick: bool,
) -> None:
    """What the peer does whenever it is woken.

    `wanted`: for so many of the slots that it has, these grants included, somebody waits elsewhere. `suspects` are the
    owners that it watches and the kernel reported dead, or cannot report.

    It also asks back what earlier peers have lent: those loans end soon, and nobody should be let in to a slot that is
    seized a moment later.
    """
    for ticket, seat in list(lender.markers.items()):
        if is_waiting(m, seat, ticket):
            rules.look(m, change, senses, seat, suspects, tick)
    end_loans(m, change, lender)
    take_back(m, lender)
    drop_markers(m, change, lender)
    for grant in grants:
        if grant.slot not in lender.lent:  # else the change is made again
            admit(m, change, lender, grant)
            take_back(m, lender)
    while len(lender.markers) < min(wanted, len(lender.lent)) + earlier_loans(m, change.now, lender):
        ask_back(m, change, lender, next_ticket(m))
        take_back(m, lender)
    ask_for_users(m, lender)


# Slots that come and go.


def admit(m: Table, change: Change, lender: Lender, grant: Grant) -> None:
    slot, place = grant.slot, lender.pending[0]
    if not is_slot_away(m, slot):  # an earlier peer had lent it, and that is over
        seize(m, change, lender, slot)
    for ticket, seat in sorted(lender.markers.items()):
        if ticket < place:
            move(m, change, lender, seat, place)
            place += 1
    if grant.others:
        while place in lender.markers:  # the change is made again
            place += 1
        ask_back(m, change, lender, place)  # before the slot is free: those who asked later must not have it
    lender.lent[slot] = grant.fence
    lender.soonest = min(lender.soonest, grant.until)
    lender.pending.pop(0)
    m[LAST_FENCE] = max(m[LAST_FENCE], grant.fence - 1)
    m[links.until_at(m, slot)] = grant.until
    table.leave(m, change, m[SLOTS + slot])


def seize(m: Table, change: Change, lender: Lender, slot: int) -> None:
    """A loan is over: its user loses its permit, and nobody else gets the slot."""
    m[links.until_at(m, slot)] = 0
    holder = m[SLOTS + slot]
    if holder and not m[holder + LENDER]:
        table.lose(m, change, holder)
    if not m[SLOTS + slot]:  # else a marker has got it
        seat = fill_seat(m, change, lender)
        m[seat + SLOT] = slot
        m[seat + FENCE] = m[LAST_FENCE]
        m[seat + HEARD] = 1
        m[SLOTS + slot] = seat
        m[seat + STATE] = INSIDE
        m[USED] = m[USED] + 1
        m[DIRTY] = 0


def end_loans(m: Table, change: Change, lender: Lender) -> None:
    """Seize the slots whose loans are over."""
    if change.now < lender.soonest:
        return
    lender.soonest = LIMIT
    for slot in list(lender.lent):
        until = m[links.until_at(m, slot)]
        if until <= change.now:
            seize(m, change, lender, slot)
            note_back(m, lender, slot)
        else:
            lender.soonest = min(lender.soonest, until)


def take_back(m: Table, lender: Lender) -> None:
    """Forget the markers that have been let in, and note which slots have come back with them."""
    for ticket, seat in list(lender.markers.items()):
        if not is_waiting(m, seat, ticket):
            if not rules.is_over(m, seat, ticket):
                rules.hear(m, seat)
                note_back(m, lender, m[seat + SLOT])
            del lender.markers[ticket]


def note_back(m: Table, lender: Lender, slot: int) -> None:
    """Unless it was on loan by an earlier peer."""
    fence = lender.lent.pop(slot, NIL)
    if fence != NIL:
        lender.back.append((slot, fence, max(0, m[LAST_FENCE] - fence)))


def is_slot_away(m: Table, slot: int) -> bool:
    seat = m[SLOTS + slot]
    return seat != 0 and m[seat + LENDER] != 0


def earlier_loans(m: Table, now: int, lender: Lender) -> int:
    """How many slots are on loan by peers before this one."""
    if now >= lender.earlier_until:
        return 0
    on_loan = [slot for slot in range(m[K]) if links.is_on_loan(m, slot, now) and not is_slot_away(m, slot)]
    return len([slot for slot in on_loan if slot not in lender.lent])


def renew(m: Table, now: int, lender: Lender, until: int) -> None:
    """The lease of this peer ends then. A loan that is over stays over: somebody else may have the slot."""
    for slot in lender.lent:
        if now < m[links.until_at(m, slot)] < until:
            m[links.until_at(m, slot)] = until


def leave(m: Table, change: Change, lender: Lender) -> None:
    """This peer leaves the cluster and returns all slots: those inside lose their permits, those that wait stay."""
    m[PEER] = m[PEER_BELL] = 0
    m[BECKON] = 1
    for slot in list(lender.lent):
        seize(m, change, lender, slot)
        note_back(m, lender, slot)
    take_back(m, lender)
    drop_markers(m, change, lender)


# Requests of the peer.


def ask_for_users(m: Table, lender: Lender) -> None:
    """Ask the protocol for those who wait and for whom it was not asked; or have the next one ring."""
    latest = max([*lender.pending, *lender.markers], default=0)  # those before a marker share what is here
    missing = m[K] - len(lender.lent) + len(lender.markers)
    most = max(m[K], MOST_PENDING) - len(lender.pending) if missing > 0 else 0
    waiting = 0
    if most > 0:
        for seat in links.waiters(m):
            if m[seat + TICKET] > latest and not m[seat + LENDER] and not m[seat + SKIPPED]:
                waiting += m[seat + PERMITS]
    more = max(min(waiting, missing, most), 0)
    for _ in range(more):
        lender.pending.append(m[NEXT_TICKET])
        m[NEXT_TICKET] = m[NEXT_TICKET] + m[K]  # as many markers may move there
    lender.ask += more
    m[BECKON] = int(most > more)


def ask_back(m: Table, change: Change, lender: Lender, ticket: int) -> None:
    """Ask for a slot in this room, at the place of this ticket."""
    seat = fill_seat(m, change, lender)
    m[seat + TICKET] = ticket
    lender.markers[ticket] = seat
    m[seat + STATE] = WAITING
    links.insert(m, seat)
    table.let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def move(m: Table, change: Change, lender: Lender, seat: int, ticket: int) -> None:
    """Give a marker a later place."""
    m[DIRTY] = 1
    del lender.markers[m[seat + TICKET]]
    links.unlink(m, seat, change.woken)
    m[seat + TICKET] = ticket
    lender.markers[ticket] = seat
    links.insert(m, seat)
    table.let_in_all_that_fit(m, change)
    m[DIRTY] = 0


def drop_markers(m: Table, change: Change, lender: Lender) -> None:
    """No more of them than loans, some of which have ended: otherwise the next loan would come back at once."""
    if len(lender.markers) > len(lender.lent):
        more = len(lender.markers) - len(lender.lent) - earlier_loans(m, change.now, lender)
        for ticket, seat in sorted(lender.markers.items())[::-1]:
            if more > 0:
                del lender.markers[ticket]
                table.leave(m, change, seat)
                more -= 1


def is_waiting(m: Table, seat: int, ticket: int) -> bool:
    return m[seat + TICKET] == ticket and m[seat + STATE] == WAITING


def next_ticket(m: Table) -> int:
    ticket = m[NEXT_TICKET]
    m[NEXT_TICKET] = ticket + 1
    return ticket


def fill_seat(m: Table, change: Change, lender: Lender) -> int:
    """The record of a request of this peer, all but its state. The table stays marked as dirty."""
    seat = m[SPARE]
    if not seat:
        raise NoSeat
    table.take_spare(m, change, lender.owner, lender.pid, lender.namespace, lender.user, 1, 0)
    change.seat = 0  # nothing withdraws it if the change fails
    m[seat + LENDER] = lender.me
    return seat


def identify(m: Table, seat: int, lender: Lender) -> None:
    m[seat + OWNER], m[seat + PID] = lender.owner, lender.pid
    m[seat + NAMESPACE], m[seat + USER] = lender.namespace, lender.user
    m[seat + LENDER] = lender.me
    m[seat + HEARD] = 1
