"""Mutants of rooms whose slots are on loan: each has one rule wrong, and the exhaustive model must show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.mutants.test_room import Mutant, applied, line
from tests.room import test_loans
from tests.room.explore_loans import explore
from tests.room.loans import Case
from tests.room.model import Case as RoomCase
from tests.room.plain import links
from tests.room.processes import Broken

USERS = Case(2, 1)
BLIND = Case(2, 1, blind=True)
DEATH = Case(2, 1, deaths=1)
STOP = Case(2, 1, stops=1)
PEERS = Case(2, 1, starts=2, halts=1)
LAPSE = Case(2, 1, lapses=1)
ALL_OF_PEERS = Case(2, 1, starts=2, halts=1, lapses=1)
TWO_SLOTS = Case(2, 2)
NO_CASE = RoomCase(1, 1)
BEFORE = "ask_back(m, change, lender, place)  # before the slot is free: those who asked later must not have it"
ASKS = (
    "if grant.others:",
    "    while place in lender.markers:  # the change is made again",
    "        place += 1",
    f"    {BEFORE}",
)
LENDS = (
    "lender.lent[slot] = grant.fence",
    "lender.soonest = min(lender.soonest, grant.until)",
    "lender.pending.pop(0)",
    "m[LAST_FENCE] = max(m[LAST_FENCE], grant.fence - 1)",
    "m[links.until_at(m, slot)] = grant.until",
    "table.leave(m, change, m[SLOTS + slot])",
)


@dataclass(frozen=True)
class LoanMutant:
    module: str
    old: str
    new: str
    case: Case


MUTANTS = {
    # Who may have a slot.
    "a slot that is not on loan is used": LoanMutant(
        "links", "    return m[until_at(m, slot)] > now\n", "    return True\n", USERS
    ),
    "a loan that is over is used": LoanMutant(
        "links", "    return m[until_at(m, slot)] > now\n", "    return m[until_at(m, slot)] > 0\n", LAPSE
    ),
    "a permit goes on when its loan is over": LoanMutant(
        "links",
        "    if m[CLUSTER] == ON_LOAN and not m[seat + LENDER]:\n        promised",
        "    if False:\n        promised",
        LAPSE,
    ),
    "a marker waits for a slot on loan": LoanMutant(
        "links", " or m[seat + LENDER] != 0 or is_on_loan(", " or is_on_loan(", ALL_OF_PEERS
    ),
    "a slot on another host is freed with the dead": LoanMutant(
        "rules", " and not links.is_away(m, seat) and senses", " and senses", PEERS
    ),
    "waiters watch the peer as a holder": LoanMutant(
        "links", "return [before] if before else users(m)", "return [before] if before else holders(m)", PEERS
    ),
    "a slot on another host is revoked": LoanMutant(
        "rules", "if not seat or m[seat + LENDER] or fence", "if not seat or fence", Case(2, 1, revokes=1)
    ),
    "a request looks like one of an earlier peer": LoanMutant(
        "table",
        "m[seat + GRANTED_BY], m[seat + PROMISED], m[seat + LENDER] = 0, 0, 0",
        "m[seat + GRANTED_BY], m[seat + PROMISED] = 0, 0",
        USERS,
    ),
    # Lending.
    "a slot is lent before it is asked back": LoanMutant(
        "lending", line(*ASKS, *LENDS), line(*LENDS, *ASKS), Case(2, 1, blind=True, cancels=1)
    ),
    "a slot is lent for good although others wait": LoanMutant(
        "lending", line("if grant.others:"), line("if False:"), BLIND
    ),
    "a marker is put behind those who asked later": LoanMutant(
        "lending", f"        {BEFORE}\n", "        ask_back(m, change, lender, next_ticket(m))\n", BLIND
    ),
    "an earlier marker takes the slot of those it was not asked for": LoanMutant(
        "lending", "        if ticket < place:\n", "        if False:\n", TWO_SLOTS
    ),
    "a marker that moves is not taken out of the queue": LoanMutant(
        "lending", "    links.unlink(m, seat, change.woken)\n", "", TWO_SLOTS
    ),
    "a marker moves without a mark": LoanMutant(
        "lending", "    m[DIRTY] = 1\n    del lender.markers", "    del lender.markers", Case(2, 2, halts=1)
    ),
    "no ticket is reserved": LoanMutant(
        "lending", "        m[NEXT_TICKET] = m[NEXT_TICKET] + m[K]  # as many markers may move there\n", "", BLIND
    ),
    "a marker is sorted in the wrong way": LoanMutant(
        "links", "m[before + TICKET] < m[seat + TICKET]", "m[before + TICKET] > m[seat + TICKET]", BLIND
    ),
    "a marker is put in front of all": LoanMutant(
        "links", "if not before or m[before + TICKET] < m[seat + TICKET]:", "if not before:", BLIND
    ),
    "fences go on from those of the room": LoanMutant(
        "lending", "    m[LAST_FENCE] = max(m[LAST_FENCE], grant.fence - 1)\n", "", USERS
    ),
    "the slot is free before it is on loan": LoanMutant(
        "lending",
        line(*LENDS[-2:]),
        line(*reversed(LENDS[-2:])),
        USERS,
    ),
    "an earlier peer's user keeps a slot that is granted anew": LoanMutant(
        "lending",
        "    if not is_slot_away(m, slot):  # an earlier peer had lent it, and that is over\n"
        "        seize(m, change, lender, slot)\n",
        "    if not m[SLOTS + slot]:\n        seize(m, change, lender, slot)\n",
        ALL_OF_PEERS,
    ),
    "a loan that is over is renewed": LoanMutant(
        "lending",
        "        if now < m[links.until_at(m, slot)] < until:\n",
        "        if m[links.until_at(m, slot)] < until:\n",
        LAPSE,
    ),
    # What comes back.
    "the protocol does not learn how many fences were used": LoanMutant(
        "lending", "max(0, m[LAST_FENCE] - fence)", "0", TWO_SLOTS
    ),
    "a slot that came back is not noticed": LoanMutant(
        "lending", "                note_back(m, lender, m[seat + SLOT])\n", "", USERS
    ),
    "markers of loans that are over stay": LoanMutant(
        "lending",
        "    take_back(m, lender)\n    drop_markers(m, change, lender)\n    for grant",
        "    for grant",
        LAPSE,
    ),
    "nobody asks back what others wait for": LoanMutant(
        "lending", "min(wanted, len(lender.lent))", "min(0, len(lender.lent))", USERS
    ),
    "a marker does not do the duties of a waiter": LoanMutant(
        "lending", "            rules.look(m, change, senses, seat, suspects, tick)\n", "            pass\n", DEATH
    ),
    "a seized slot stays on loan": LoanMutant("lending", "    m[links.until_at(m, slot)] = 0\n", "", PEERS),
    "the user of a seized slot stays inside": LoanMutant(
        "lending", "    if holder and not m[holder + LENDER]:\n", "    if False:\n", PEERS
    ),
    "a loan that is over is not seized": LoanMutant(
        "lending", "        if until <= change.now:\n", "        if False:\n", LAPSE
    ),
    "a slot that is seized is not given back": LoanMutant(
        "lending", "            note_back(m, lender, slot)\n        else:", "            pass\n        else:", LAPSE
    ),
    "a peer that leaves keeps what it has lent": LoanMutant(
        "lending", "        seize(m, change, lender, slot)\n        note_back", "        note_back", PEERS
    ),
    "a seized slot counts as free": LoanMutant("lending", "        m[USED] = m[USED] + 1\n", "", PEERS),
    "an interrupted seizure is not marked": LoanMutant(
        "table", line("m[DIRTY] = 1", "ticket = m[NEXT_TICKET]"), line("ticket = m[NEXT_TICKET]"), PEERS
    ),
    # A new peer.
    "a new peer does not ask back what earlier ones have lent": LoanMutant(
        "lending", " + earlier_loans(m, change.now, lender):\n", ":\n", PEERS
    ),
    "a new peer takes what is still on loan": LoanMutant(
        "lending",
        "        elif slot < k and not links.is_on_loan(m, slot, change.now):\n",
        "        elif slot < k:\n",
        PEERS,
    ),
    "a new peer cannot be rung": LoanMutant("lending", "    m[PEER_BELL] = lender.owner\n", "", USERS),
    # Who asks.
    "the peer does not want to be rung": LoanMutant(
        "lending", "    m[BECKON] = int(most > more)\n", "    m[BECKON] = 0\n", USERS
    ),
    "a user that has to wait does not ring": LoanMutant(
        "table",
        "        let_in_all_that_fit(m, change)\n        beckon(m, change, seat)\n",
        "        let_in_all_that_fit(m, change)\n",
        USERS,
    ),
    "a user that continues does not ring": LoanMutant(
        "table",
        "    let_in_all_that_fit(m, change)\n    beckon(m, change, seat)\n",
        "    let_in_all_that_fit(m, change)\n",
        STOP,
    ),
}


@dataclass(frozen=True)
class SmallMutant:
    """What the model has no room for."""

    module: str
    old: str
    new: str
    test: Callable[[], None]


SMALL = {
    "a slot is kept beyond its loan": SmallMutant(
        "keeping",
        line("if m[CLUSTER] == ON_LOAN and not links.is_on_loan(m, m[seat + SLOT], now):", "    return False"),
        "",
        test_loans.test_who_enters_again_and_again_does_so_as_long_as_the_slot_is_on_loan,
    ),
    "who is alone on this host keeps nothing": SmallMutant(
        "keeping",
        "(m[USED] == 1 or (m[CLUSTER] == ON_LOAN and len(links.users(m)) == 1))",
        "m[USED] == 1",
        test_loans.test_who_enters_again_and_again_does_so_as_long_as_the_slot_is_on_loan,
    ),
    "a slot is kept although somebody waits": SmallMutant(
        "keeping",
        "        m[HEAD] == 0\n        and ",
        "        ",
        test_loans.test_another_user_ends_the_keeping_of_a_slot,
    ),
    "the markers of another id stay": SmallMutant(
        "lending",
        "            table.leave(m, change, seat)  # of this process, when it had another id\n",
        "            pass\n",
        test_loans.test_a_peer_with_another_id,
    ),
    "what is away beyond k stays away": SmallMutant(
        "lending", "            if slot < k:\n", "            if True:\n", test_loans.test_another_k
    ),
    "a grant is admitted twice": SmallMutant(
        "lending",
        "        if grant.slot not in lender.lent:  # else the change is made again\n",
        "        if True:\n",
        test_loans.test_a_room_that_is_full_grows_in_the_middle_of_a_turn,
    ),
    "a marker that has been let in is moved": SmallMutant(
        "lending",
        "            admit(m, change, lender, grant)\n            take_back(m, lender)\n",
        "            admit(m, change, lender, grant)\n",
        test_loans.test_grants_that_nobody_needs_any_more_go_back_at_once,
    ),
    "the end of a loan is overlooked": SmallMutant(
        "lending",
        "    lender.soonest = min(lender.soonest, grant.until)\n",
        "",
        test_loans.test_who_enters_again_and_again_does_so_as_long_as_the_slot_is_on_loan,
    ),
    "loans of earlier peers count as over": SmallMutant(
        "lending",
        "    lender.earlier_until = max([m[links.until_at(m, slot)] for slot in range(k)])\n",
        "",
        test_loans.test_a_peer_with_another_id,
    ),
    "every user costs a request": SmallMutant(
        "lending", "max(m[K], MOST_PENDING)", "1000", test_loans.test_no_request_is_made_for_those_who_share_a_grant
    ),
    "the peer is rung though everything is here": SmallMutant(
        "lending",
        "    m[BECKON] = int(most > more)\n",
        "    m[BECKON] = 1\n",
        test_loans.test_the_peer_is_rung_only_if_it_can_help,
    ),
    "a marker counts as an entry": SmallMutant(
        "table",
        "    if not m[seat + LENDER]:\n        count(m",
        "    if True:\n        count(m",
        test_loans.test_only_users_count_as_entries,
    ),
}


def in_room(mutant: LoanMutant | SmallMutant) -> Mutant:
    return Mutant(mutant.module, mutant.old, mutant.new, NO_CASE)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_the_model_notices(mutant: LoanMutant) -> None:
    with applied(in_room(mutant)), pytest.raises((Broken, IndexError, KeyError, links.CorruptTable)):
        explore(mutant.case)


@pytest.mark.parametrize("mutant", SMALL.values(), ids=SMALL)
def test_a_test_notices(mutant: SmallMutant) -> None:
    mutant.test()
    with applied(in_room(mutant)), pytest.raises((AssertionError, IndexError)):
        mutant.test()
