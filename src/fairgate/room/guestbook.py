"""A room of a cluster: its processes are *guests*, and only the cluster's peer on this host lets them in.

Guests ask, wait, give up and release as in any room. The peer asks the protocol of the cluster once for each waiting
guest, in the order of their tickets, and its guestbook says for which ones it has. All functions but `promise` are
called with the lock of the room. Like the table, they see neither clock nor kernel, and the exhaustive model runs the
same code.

- A grant belongs to the request that it was asked for. If that guest has given up or died, the grant is passed on.
- Otherwise it goes to the oldest guest that is not stopped, among those for which the protocol was asked. The two then
  swap what the peer has asked for. If all of them are stopped, it is passed on, and the peer asks again when one
  continues.
- What the peer still has to tell the protocol stays in the book until it has done so (`new`, `ended`). So if the peer
  fails between two steps, its next turn does the rest.
- A release frees the seat, and the peer returns the slot to the protocol.
- A record names the peer that granted it, and until when that one has promised the slot. Only this peer raises that
  time, and never once it is over. So when a peer is dead or stopped, every guest knows by itself when its permit ends.
- A new peer has a new id. It asks for all that wait, and leaves those inside to the promise of the old one.
"""

from __future__ import annotations

from collections.abc import Collection

from fairgate.room import links, rules, table
from fairgate.room.layout import (
    ASKED,
    CAPACITY,
    CLUSTER_SLOT,
    DEADLINE,
    DIRTY,
    FENCE,
    GRANTED_BY,
    HEARD,
    INSIDE,
    LAST_FENCE,
    LEASE,
    LIMIT,
    NUDGE,
    OWNER,
    PATIENT,
    PEER,
    PEER_BELL,
    PREVIOUS,
    PROMISED,
    REFUSED,
    SEATS,
    SINCE,
    SKIPPED,
    SLOT,
    STATE,
    TAIL,
    TICKET,
    USED,
    WAITING,
)
from fairgate.room.links import Table
from fairgate.room.notes import write_note
from fairgate.room.table import Change

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from fairgate.room.rules import Senses

ALL = 0  # stands for all tickets


class Guestbook:
    """What a peer knows of one room: the seats of its requests, by ticket."""

    def __init__(self, peer: int) -> None:
        self.peer = peer  # its id
        self.latest = 0  # ticket that it has seen
        self.new: dict[int, int] = {}  # they wait, and the protocol is still to be asked for them
        self.asked: dict[int, int] = {}  # they wait, and the protocol was asked for them
        self.stopped: dict[int, int] = {}  # they wait, but were stopped when their turn came
        self.inside: dict[int, int] = {}  # it has let them in
        self.earlier: dict[int, int] = {}  # another peer has let them in
        self.owners: dict[int, int] = {}  # of all these: the bells that the peer watches
        self.ended: list[int] = []  # the protocol was asked for them, and is still to be told that they are over


def take_over(m: Table, change: Change, senses: Senses, peer: int, bell: int) -> Guestbook:
    """From now on this peer lets guests in. It has asked for nobody yet: `look` tells for whom to ask."""
    m[PEER_BELL] = bell
    m[PEER] = peer
    rules.bury_all(m, change, senses)
    return Guestbook(peer)


def look(
    m: Table, change: Change, senses: Senses, book: Guestbook, called: Collection[int], suspects: Collection[int]
) -> None:
    """Note what has happened since the last look to the requests with these tickets, and which ones are new.

    `suspects` are the owners that the kernel reported dead, or cannot report.
    """
    if suspects:
        bury(m, change, senses, book, suspects)
    everyone = ALL in called or ALL in change.called
    if everyone:
        remind(m, change)
        find_earlier(m, book)
    expire(m, change, book)
    note_ends(m, book, [*book.asked] if everyone or suspects else called)
    if m[PEER] == book.peer:
        note_new(m, book)
    else:  # another peer has taken over
        book.ended += book.asked
        book.asked.clear()
        book.new.clear()


def bury(m: Table, change: Change, senses: Senses, book: Guestbook, suspects: Collection[int]) -> None:
    """End the requests of the dead. One that ended its request itself may have died before it rang."""
    for part in (book.new, book.asked, book.stopped, book.inside, book.earlier):
        for ticket, seat in part.items():
            there = is_waiting(m, seat, ticket) or is_inside(m, seat, ticket)
            if there and book.owners[ticket] in suspects and senses.is_gone(seat):
                table.leave(m, change, seat)


def remind(m: Table, change: Change) -> None:
    """Wake those that were let in and have not heard of it: the peer that did it may have died before it rang."""
    for seat in links.holders(m):
        if not m[seat + HEARD] and change.now - m[seat + SINCE] > NUDGE:
            change.woken.append(seat)


def find_earlier(m: Table, book: Guestbook) -> None:
    for seat in links.holders(m):
        ticket = m[seat + TICKET]
        if ticket not in book.inside:
            book.earlier[ticket] = seat
            book.owners[ticket] = m[seat + OWNER]


def expire(m: Table, change: Change, book: Guestbook) -> None:
    """Revoke the permits whose time is over, by their own leases or by a promise."""
    for part in (book.inside, book.earlier):
        for ticket, seat in part.items():
            if is_inside(m, seat, ticket) and 0 < links.end_of(m, seat) <= change.now:
                table.lose(m, change, seat)


def note_ends(m: Table, book: Guestbook, called: Collection[int]) -> None:
    """Those that have given up, left, or died."""
    for ticket in called:
        seat = book.asked.get(ticket, 0)
        if seat and not is_waiting(m, seat, ticket):
            del book.asked[ticket], book.owners[ticket]
            book.ended.append(ticket)
    for part in (book.inside, book.earlier):
        for ticket in [ticket for ticket, seat in part.items() if not is_inside(m, seat, ticket)]:
            del part[ticket], book.owners[ticket]
            if part is book.inside:
                book.ended.append(ticket)
    for part in (book.new, book.stopped):
        for ticket in [ticket for ticket, seat in part.items() if not is_waiting(m, seat, ticket)]:
            del part[ticket], book.owners[ticket]


def note_new(m: Table, book: Guestbook) -> None:
    """Those for whom the protocol is to be asked, in order: those that were stopped, and newcomers."""
    again = [ticket for ticket, seat in book.stopped.items() if not m[seat + SKIPPED]]
    for ticket in sorted(again):
        book.new[ticket] = book.stopped.pop(ticket)
    newcomers = []
    seat = m[TAIL]
    for _ in range(m[SEATS]):
        if not seat or m[seat + TICKET] <= book.latest:
            break
        newcomers.append(seat)
        seat = m[seat + PREVIOUS]
    for seat in reversed(newcomers):
        ticket = m[seat + TICKET]
        book.owners[ticket] = m[seat + OWNER]
        (book.stopped if m[seat + SKIPPED] else book.new)[ticket] = seat
        book.latest = ticket


def has_asked(book: Guestbook, ticket: int) -> None:
    """The peer has asked the protocol for this guest."""
    book.asked[ticket] = book.new.pop(ticket)


def ask_again(book: Guestbook, ticket: int) -> None:
    """What the peer has asked for this guest is void."""
    if ticket in book.asked:
        book.new[ticket] = book.asked.pop(ticket)


# Grants.


def choose(m: Table, change: Change, book: Guestbook, ticket: int, until: int) -> int:
    """The protocol has granted what was asked for this request. Returns the ticket of the guest whose turn it is.

    0 if it is nobody's: the grant has to be passed on. If it is another guest's, then the two swap what was asked for
    them, and the grant is that one's. `until` is the end of the peer's lease, or 0. The caller has looked in the same
    change, at this ticket among others.
    """
    if ticket in book.inside:  # the change is made again
        return ticket
    over = 0 < until <= change.now or m[USED] >= m[CAPACITY]
    if ticket not in book.asked:  # its guest has given up, or another peer has taken over
        return 0
    chosen = 0 if over else oldest_running(m, change, book)
    if not chosen:
        book.stopped[ticket] = book.asked.pop(ticket)
        return 0
    return m[chosen + TICKET]


def oldest_running(m: Table, change: Change, book: Guestbook) -> int:
    """The first guest in the queue that is not stopped, among those for which the protocol was asked."""
    for seat in links.waiters(m):
        if m[seat + SKIPPED] or m[seat + TICKET] not in book.asked:
            continue
        if change.now - m[seat + ASKED] > PATIENT and change.is_stopped(seat):
            m[DIRTY] = 1
            table.pass_over(m, change, seat)
            m[DIRTY] = 0
        else:
            return seat
    return 0


def let_in(m: Table, change: Change, book: Guestbook, ticket: int, slot: int, fence: int, until: int) -> None:
    """Let in the guest whose turn it is. `slot` and `fence` are -1 if the protocol has none.

    If the change fails and is made again, the book says whether the guest is inside.
    """
    if ticket in book.inside:
        change.woken.append(book.inside[ticket])
        return
    seat = book.asked[ticket]
    m[DIRTY] = 1
    m[seat + SLOT] = links.take_slots(m, seat, change.now)
    m[LAST_FENCE] = max(m[LAST_FENCE], fence)
    m[seat + FENCE] = max(fence, 0)
    m[seat + CLUSTER_SLOT] = slot + 1
    m[seat + GRANTED_BY] = book.peer
    m[seat + PROMISED] = until
    m[seat + SINCE] = change.now
    m[seat + DEADLINE] = min(change.now + m[seat + LEASE], LIMIT) if m[seat + LEASE] else 0
    book.inside[ticket] = book.asked.pop(ticket)
    m[seat + STATE] = INSIDE
    m[USED] = m[USED] + 1
    links.unlink(m, seat, None)
    links.count(m, change.now - m[seat + ASKED])
    m[DIRTY] = 0
    change.woken.append(seat)


def refuse(m: Table, change: Change, book: Guestbook, ticket: int, k: int, why: str) -> None:
    """The cluster refuses this request: because the gate's k is another one, or for the reason given."""
    part = book.new if ticket in book.new else book.asked
    seat = part.get(ticket, 0)
    if seat and is_waiting(m, seat, ticket):
        write_note(m, seat, why)
        m[DIRTY] = 1
        m[seat + SLOT] = k
        m[seat + STATE] = REFUSED
        links.unlink(m, seat, None)
        m[DIRTY] = 0
        change.woken.append(seat)
    if seat:
        del part[ticket], book.owners[ticket]


def revoke(m: Table, change: Change, book: Guestbook, ticket: int) -> None:
    """The protocol has taken this permit back."""
    seat = book.inside.get(ticket, 0)
    if seat and is_inside(m, seat, ticket):
        table.lose(m, change, seat)
    if seat:
        del book.inside[ticket], book.owners[ticket]


def promise(m: Table, now: int, book: Guestbook, until: int) -> None:
    """The lease of this peer ends then. A promise that is over stays over: somebody else may have the slot.

    It needs no lock, for which a crowd of guests might make the peer wait for too long: the promise is one word, which
    only this peer stores, and nobody reads that of a seat that is not inside.
    """
    for ticket, seat in book.inside.items():
        promised = m[seat + PROMISED]
        if is_inside(m, seat, ticket) and (not promised or now < promised < until):
            m[seat + PROMISED] = until


def leave(m: Table, change: Change, book: Guestbook) -> None:
    """This peer leaves the cluster and returns all slots: those inside lose their permits, those that wait stay."""
    if m[PEER] == book.peer:
        m[PEER] = m[PEER_BELL] = 0
    for ticket in list(book.inside):
        revoke(m, change, book, ticket)


def next_end(m: Table, book: Guestbook) -> int:
    """When the next permit ends, if nothing else happens; 0: never."""
    ends = [links.end_of(m, seat) for seat in (*book.inside.values(), *book.earlier.values())]
    return min([end for end in ends if end], default=0)


def is_waiting(m: Table, seat: int, ticket: int) -> bool:
    return m[seat + TICKET] == ticket and m[seat + STATE] == WAITING


def is_inside(m: Table, seat: int, ticket: int) -> bool:
    return m[seat + TICKET] == ticket and m[seat + STATE] == INSIDE
