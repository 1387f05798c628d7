"""Mutants of rooms with guests: each has one rule wrong, and the exhaustive model must find a state that shows it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.mutants.test_room import Mutant, applied, line
from tests.room.explore_guests import explore
from tests.room.guests import Case
from tests.room.model import Case as RoomCase
from tests.room.plain import links
from tests.room.processes import Broken

DEATH = Case(2, 1, deaths=1)
CANCEL = Case(2, 1, cancels=1, entries=(2, 1))
STOP = Case(2, 1, stops=1)
PEERS = Case(2, 1, starts=2, halts=1, lapses=1)
FAIL = Case(2, 1, fails=1)
CLOSE = Case(2, 1, closes=1)
LEASE = Case(2, 1, leases=1)
NO_CASE = RoomCase(1, 1)


@dataclass(frozen=True)
class GuestMutant:
    module: str
    old: str
    new: str
    case: Case


MUTANTS = {
    # Who lets guests in.
    "guests let each other in": GuestMutant(
        "table", line("if m[CLUSTER] == BY_PEER:", "    return", "granted = 0"), line("granted = 0"), Case(2, 1)
    ),
    "the turn of a guest that gave up is inherited": GuestMutant(
        "guestbook",
        "    if ticket not in book.asked:  # its guest has given up, or another peer has taken over\n"
        "        return 0\n",
        "",
        CANCEL,
    ),
    "a stopped guest is let in": GuestMutant(
        "guestbook", "> PATIENT and change.is_stopped(seat):", "> PATIENT and False:", STOP
    ),
    "a later guest is let in first": GuestMutant(
        "guestbook",
        "    for seat in links.waiters(m):\n",
        "    for seat in reversed(list(links.waiters(m))):\n",
        Case(2, 1),
    ),
    "a guest that nobody has asked for is let in": GuestMutant(
        "guestbook", " or m[seat + TICKET] not in book.asked:", ":", STOP
    ),
    "a guest that was let in is not told": GuestMutant(
        "guestbook",
        "change.now - m[seat + ASKED])\n    m[DIRTY] = 0\n    change.woken.append(seat)\n",
        "change.now - m[seat + ASKED])\n    m[DIRTY] = 0\n",
        Case(2, 1),
    ),
    # The order of stores.
    "the state is stored before the promise": GuestMutant(
        "guestbook",
        line("m[seat + PROMISED] = until", "m[seat + SINCE] = change.now"),
        line("m[seat + STATE] = INSIDE", "m[seat + PROMISED] = until", "m[seat + SINCE] = change.now"),
        PEERS,
    ),
    "an interrupted grant is not marked": GuestMutant(
        "guestbook", "    m[DIRTY] = 1\n    m[seat + SLOT] = links.take", "    m[seat + SLOT] = links.take", PEERS
    ),
    # What the peer hears, and tells the cluster.
    "a release does not call the peer": GuestMutant(
        "table",
        line("put_spare(m, seat)", "call_peer(m, change, m[seat + TICKET])"),
        line("put_spare(m, seat)"),
        Case(2, 1),
    ),
    "a slot is not returned": GuestMutant(
        "guestbook", "                book.ended.append(ticket)\n", "                pass\n", Case(2, 1)
    ),
    "the request of a guest that gave up is not withdrawn": GuestMutant(
        "guestbook",
        "            del book.asked[ticket], book.owners[ticket]\n            book.ended.append(ticket)\n",
        "            del book.asked[ticket], book.owners[ticket]\n",
        CANCEL,
    ),
    "the dead are not buried": GuestMutant(
        "guestbook",
        "senses.is_gone(seat):\n                table.leave(m, change, seat)\n",
        "senses.is_gone(seat):\n                pass\n",
        DEATH,
    ),
    "one that gave up and died before it rang is overlooked": GuestMutant(
        "guestbook", "if everyone or suspects else called)", "if everyone else called)", Case(2, 1, cancels=1, deaths=1)
    ),
    "the cluster is asked in the wrong order": GuestMutant(
        "guestbook", "    for seat in reversed(newcomers):\n", "    for seat in newcomers:\n", PEERS
    ),
    "a guest that was stopped at its turn is forgotten": GuestMutant(
        "guestbook",
        "        book.stopped[ticket] = book.asked.pop(ticket)\n",
        "        del book.asked[ticket]\n",
        STOP,
    ),
    "one that swapped its turn is forgotten": GuestMutant(
        "guestbook",
        "    return m[chosen + TICKET]\n",
        "    del book.asked[ticket]\n    return m[chosen + TICKET]\n",
        Case(2, 1),
    ),
    "a grant that was lost on its way is not asked for again": GuestMutant(
        "guestbook",
        "    if ticket in book.asked:\n        book.new[ticket] = book.asked.pop(ticket)\n",
        "",
        Case(2, 1, lapses=1),
    ),
    "what a failed turn has not asked for is forgotten": GuestMutant(
        "guestbook",
        "def note_new(m: Table, book: Guestbook) -> None:\n",
        "def note_new(m: Table, book: Guestbook) -> None:\n    book.new.clear()\n",
        FAIL,
    ),
    "what a failed turn has not returned is forgotten": GuestMutant(
        "guestbook",
        "    expire(m, change, book)\n    note_ends",
        "    expire(m, change, book)\n    book.ended.clear()\n    note_ends",
        FAIL,
    ),
    # Peers that end.
    "a promise that is over is raised": GuestMutant(
        "guestbook", "now < promised < until", "promised < until", Case(2, 1, lapses=1)
    ),
    "a new peer raises the promises of the old one": GuestMutant(
        "guestbook",
        "            book.earlier[ticket] = seat\n",
        "            book.inside[ticket] = seat\n",
        Case(2, 1, starts=2, halts=1, lapses=1),
    ),
    "a new peer does not wake those that the old one let in": GuestMutant(
        "guestbook", "        remind(m, change)\n", "        pass\n", PEERS
    ),
    "a peer that leaves takes no permit back": GuestMutant(
        "guestbook", "    for ticket in list(book.inside):\n        revoke(m, change, book, ticket)\n", "", PEERS
    ),
    # Requests that end although their guests go on.
    "one that was rung does not look whether its request is over": GuestMutant(
        "rules",
        "    if is_over(m, seat, ticket):\n        return False\n    hear(m, seat)\n",
        "    hear(m, seat)\n",
        CLOSE,
    ),
    "a release does not look whether the seat is another guest's": GuestMutant(
        "rules", "    if not is_over(m, seat, ticket):\n", "    if m[seat + STATE] != FREE:\n", CLOSE
    ),
    "a lease never ends": GuestMutant(
        "guestbook", "0 < links.end_of(m, seat) <= change.now:", "0 < m[seat + PROMISED] <= change.now:", LEASE
    ),
    "a guest has the lease of the one before": GuestMutant(
        "guestbook",
        line("m[seat + DEADLINE] = min(change.now + m[seat + LEASE], LIMIT) if m[seat + LEASE] else 0"),
        "",
        Case(2, 1),
    ),
    "a permit is revoked, and its slot is not returned": GuestMutant(
        "table",
        line("empty_slots(m, seat)", "call_peer(m, change, m[seat + TICKET])"),
        line("empty_slots(m, seat)"),
        Case(2, 1, revokes=1),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_notices(name: str) -> None:
    mutant = MUTANTS[name]
    with applied(Mutant(mutant.module, mutant.old, mutant.new, NO_CASE)):
        assert outcome(mutant.case) != ""


def outcome(case: Case) -> str:
    try:
        explore(case)
    except Broken as broken:
        return str(broken)
    except (IndexError, KeyError, RecursionError, links.CorruptTable) as error:
        return type(error).__name__
    return ""
