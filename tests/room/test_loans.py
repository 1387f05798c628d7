"""Every state of small rooms whose slots are on loan. The counts are pinned: a change of them must be explained."""

from __future__ import annotations

import pytest

from fairgate.room.layout import (
    BECKON,
    CAPACITY,
    CLUSTER,
    FENCE,
    GRANTS,
    INSIDE,
    LAST_FENCE,
    LENDER,
    LOST,
    ON_LOAN,
    SEATS,
    SLOT,
    SLOTS,
    STATE,
    TICKET,
    WAITING,
)  # fmt: skip
from tests.room.explore_loans import explore
from tests.room.loans import Case
from tests.room.plain import keeping, lending, links, rules, table

Counts = tuple[int, int]  # all states, and the calm ones
SMALL: dict[str, tuple[Case, Counts]] = {
    "two users": (Case(2, 1), (4_656, 478)),
    "blind": (Case(2, 1, blind=True), (6_257, 440)),
    "nobody elsewhere": (Case(2, 1, remotes=0), (468, 60)),
    "two elsewhere": (Case(2, 1, remotes=2), (20_164, 1_687)),
    "two elsewhere, blind": (Case(2, 1, remotes=2, blind=True), (21_873, 1_526)),
    "one gives up": (Case(2, 1, cancels=1), (17_046, 1_712)),
    "one gives up, blind": (Case(2, 1, cancels=1, blind=True), (22_947, 1_642)),
    "one is stopped": (Case(2, 1, stops=1), (35_477, 3_734)),
    "one dies": (Case(1, 1, deaths=1), (2_768, 497)),
    "a permit is revoked": (Case(2, 1, revokes=1), (16_959, 1_696)),
    "a room is closed": (Case(2, 1, closes=1), (45_282, 2_496)),
    "a loan ends": (Case(1, 1, lapses=1, entries=(2,)), (5_550, 498)),
    "the peer ends": (Case(1, 1, starts=2, halts=1), (4_034, 1_274)),
    "the peer ends, and its loans": (Case(1, 1, lapses=1, starts=2, halts=1), (27_591, 6_280)),
    "two slots": (Case(2, 2), (57_292, 3_445)),
    "two slots for one": (Case(2, 2, permits=(1, 2), remotes=0), (1_544, 168)),
}
LARGE: dict[str, tuple[Case, Counts]] = {
    "one is stopped, blind": (Case(2, 1, stops=1, blind=True), (59_970, 3_956)),
    "a death": (Case(2, 1, deaths=1), (199_512, 14_386)),
    "a death, blind": (Case(2, 1, deaths=1, blind=True), (321_275, 14_788)),
    "a loan ends": (Case(2, 1, lapses=1), (84_547, 4_576)),
    "a loan ends, blind": (Case(2, 1, lapses=1, blind=True), (97_527, 3_392)),
    "the peer ends": (Case(2, 1, starts=2, halts=1), (106_431, 15_461)),
    "the peer ends, blind": (Case(2, 1, blind=True, starts=2, halts=1), (132_689, 13_899)),
    "one comes again, and gives up": (Case(2, 1, entries=(2, 1), cancels=1), (71_937, 5_707)),
    "one gives up, the peer ends": (Case(2, 1, cancels=1, remotes=0, starts=2, halts=1), (29_152, 5_998)),
    "a room is closed, a loan ends": (Case(2, 1, closes=1, lapses=1, remotes=0), (44_191, 1_597)),
    "a process forks, a death": (Case(2, 1, deaths=1, forks=1, remotes=0), (53_843, 3_338)),
    "three users": (Case(3, 1), (105_613, 5_592)),
    "two slots, blind": (Case(2, 2, blind=True), (102_660, 2_542)),
    "two slots, two elsewhere": (Case(2, 2, remotes=2), (517_582, 23_878)),
}


@pytest.mark.parametrize(("case", "counts"), SMALL.values(), ids=SMALL)
def test_nothing_breaks(case: Case, counts: Counts) -> None:
    found = explore(case)
    assert (found.states, found.calm) == counts


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("case", "counts"), LARGE.values(), ids=LARGE)
def test_nothing_breaks_in_larger_rooms(case: Case, counts: Counts) -> None:
    found = explore(case)
    assert (found.states, found.calm) == counts


# One rule at a time.

FAR = 10**9


class Room:
    """A table on loan, in which nobody dies or is stopped, and a peer with id 1."""

    def __init__(self, k: int, seats: int = 16) -> None:
        self.m = [0] * links.size(k, seats)
        self.m[CLUSTER] = ON_LOAN
        table.create(self.m, k, seats, k, 0, 0)
        self.now = 100
        self.peer = self.started(1, k)

    def is_gone(self, seat: int) -> bool:
        return False

    def is_stopped(self, seat: int) -> bool:
        return False

    def change(self) -> table.Change:
        return table.Change(self.now, self.is_stopped)

    def started(self, me: int, k: int) -> lending.Lender:
        peer = lending.Lender(me, 201, 99, 1, 0)
        lending.take_over(self.m, self.change(), self, peer, k)
        return peer

    def ask(self, permits: int = 1) -> int:
        seat: int = rules.ask(self.m, self.change(), self, rules.Request(2, 2, 1, 0, permits, 0))
        return seat

    def called(self) -> list[int]:
        """Of a user that has to wait: does it ring the peer?"""
        change = self.change()
        rules.ask(self.m, change, self, rules.Request(3, 3, 1, 0, 1, 0))
        return change.called

    def leave(self, seat: int) -> None:
        rules.leave(self.m, self.change(), seat, self.m[seat + TICKET])

    def turn(self, *grants: lending.Grant, wanted: int = 0) -> None:
        lending.turn(self.m, self.change(), self, self.peer, grants, (), wanted, False)

    def state(self, seat: int) -> int:
        return self.m[seat + STATE]

    def away(self) -> list[int]:
        return [slot for slot in range(self.m[CAPACITY]) if lending.is_slot_away(self.m, slot)]


def grant(slot: int, fence: int = 1, until: int = FAR, others: bool = False) -> lending.Grant:
    return lending.Grant(slot, fence, until, others)


def test_who_enters_again_and_again_does_so_as_long_as_the_slot_is_on_loan() -> None:
    room = Room(2)
    seat = room.ask()
    room.turn()
    room.turn(grant(1, fence=7, until=1000))
    m, ticket = room.m, room.m[seat + TICKET]
    assert (room.state(seat), m[seat + SLOT], m[seat + FENCE]) == (INSIDE, 1, 7)
    assert keeping.is_alone(m, seat, ticket)  # beside a slot that is away
    endings = keeping.keep(m, seat)
    assert keeping.enter(m, seat, 7, endings, 999)
    assert keeping.rest(m, seat, 8, endings)
    assert not keeping.enter(m, seat, 8, endings, 1000)
    room.now = 1000
    keeping.end(m, room.change())
    room.turn()
    assert room.away() == [0, 1]
    assert (room.peer.back, m[LAST_FENCE]) == ([(1, 7, 1)], 8)


def test_another_user_ends_the_keeping_of_a_slot() -> None:
    room = Room(1)
    seat = room.ask()
    room.turn()
    room.turn(grant(0))
    other = room.ask()
    assert not keeping.is_alone(room.m, seat, room.m[seat + TICKET])
    room.leave(seat)
    assert room.state(other) == INSIDE
    assert keeping.is_alone(room.m, other, room.m[other + TICKET])


def test_a_room_that_is_full_grows_in_the_middle_of_a_turn() -> None:
    """What was done before is not done again."""
    room = Room(3, seats=6)
    users = [room.ask() for _ in range(3)]
    room.turn()
    assert (room.peer.ask, len(room.peer.pending)) == (3, 3)
    with pytest.raises(lending.NoSeat):
        room.turn(*[grant(slot, others=True) for slot in range(3)])
    m = room.m
    while links.has_spare(m):
        room.ask()
    m += [0] * (links.size(3, 12) - len(m))
    table.grow(m, 12)
    grants = [grant(slot, others=True) for slot in range(3)]
    room.turn(*grants)
    before = m.copy()
    room.turn(*grants)  # a change is made again if the table was damaged
    assert m == before
    assert [room.state(seat) for seat in users] == [INSIDE] * 3
    assert (len(room.peer.lent), len(room.peer.markers), room.peer.pending) == (3, 3, [])
    queue = [m[seat + LENDER] for seat in links.waiters(m)]
    assert queue == [1] * 3 + [0] * (len(queue) - 3)
    for seat in users:
        room.leave(seat)
    room.turn()
    assert (room.away(), len(room.peer.back)) == ([0, 1, 2], 3)


def test_a_peer_with_another_id() -> None:
    """It was excluded. Its markers are not those of its new id, and what is away stays away."""
    room = Room(2)
    seat = room.ask()
    room.turn()
    room.turn(grant(0, others=True))
    marker = next(iter(room.peer.markers.values()))
    room.peer = room.started(2, 2)
    m = room.m
    assert [m[m[SLOTS + slot] + LENDER] for slot in range(2)] == [0, 2]
    room.turn()
    assert room.state(seat) == INSIDE
    assert len(room.peer.markers) == 1  # for the loan that still runs
    assert [m[each + LENDER] for each in links.waiters(m)] == [2]
    assert m[marker + LENDER] in (0, 2)
    room.leave(seat)
    room.turn()
    assert (room.away(), room.peer.back, room.peer.markers) == ([0, 1], [], {})  # its slot was another life's


def test_another_k() -> None:
    room = Room(3)
    users = [room.ask() for _ in range(2)]
    room.turn()
    room.turn(grant(0, until=500), grant(2, until=500))
    assert [room.state(seat) for seat in users] == [INSIDE] * 2
    room.peer = room.started(2, 1)
    room.turn()
    waits = room.ask()
    assert (room.away(), room.state(waits)) == ([], WAITING)
    room.now = 500
    room.turn()
    assert (room.away(), [room.state(seat) for seat in users]) == ([0], [LOST, LOST])  # a slot beyond k is nobody's
    room.turn(grant(0, until=900))
    assert room.state(waits) == INSIDE


def test_the_peer_is_rung_only_if_it_can_help() -> None:
    room = Room(1)
    m = room.m
    assert m[BECKON] == 1
    seat = room.ask()
    room.turn()
    assert (room.peer.ask, m[BECKON]) == (1, 1)
    room.turn(grant(0))
    assert m[BECKON] == 0  # everything is here
    assert room.called() == []
    room.turn(wanted=1)  # and goes away when those who wait have had it
    assert m[BECKON] == 1
    assert room.called() == [0]
    room.turn()
    assert room.called() == [0]  # another request for those who come now
    room.leave(seat)


def test_no_request_is_made_for_those_who_share_a_grant() -> None:
    """Many of them: the protocol gets a few requests, each for all that had asked by then."""
    room = Room(1, seats=64)
    for _ in range(40):
        room.ask()
        room.turn()
    assert (room.peer.ask, len(room.peer.pending)) == (lending.MOST_PENDING, lending.MOST_PENDING)
    assert room.m[BECKON] == 0
    assert room.m[SEATS] == 64


def test_only_users_count_as_entries() -> None:
    room = Room(1)
    for fence in (1, 3):
        seat = room.ask()
        room.turn()
        room.turn(grant(0, fence=fence, others=True))
        room.leave(seat)
        room.turn()
        assert room.away() == [0]
    assert room.m[GRANTS] == 2


def test_grants_that_nobody_needs_any_more_go_back_at_once() -> None:
    room = Room(3)
    users = [room.ask() for _ in range(3)]
    room.turn()
    for seat in users:
        room.leave(seat)
    room.turn(*[grant(slot, others=True) for slot in range(3)])
    assert (room.away(), len(room.peer.back), room.peer.lent, room.peer.markers) == ([0, 1, 2], 3, {}, {})
    table.rebuild(room.m, room.change())
    assert list(links.waiters(room.m)) == []
    seat = room.ask()
    room.turn()
    room.turn(grant(1))
    assert room.state(seat) == INSIDE
