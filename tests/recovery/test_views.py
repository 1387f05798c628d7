"""Agreed rosters, rule by rule (recovery/views.py and what it builds on; docs/rosters.md)."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.message import Message, decode
from fairgate.recovery.agreed import (
    NO_VALUE,
    Accept,
    Ask,
    Beat,
    Chosen,
    Introduce,
    Join,
    Leave,
    Member,
    Nack,
    Prepare,
    Promise,
    TurnedAway,
    Value,
)
from fairgate.recovery.ballots import LEAD
from tests.recovery.peers import DELAY, SECOND, Peers

PATIENCE = 0.4
ME: Member = (0, 1, True, 0, ())
EVIL: Value = (9, (7,), ((7, 9, True, 0, ()),), (), ())


def trio(**options: Any) -> Peers:
    """Three peers that all vote, and one more; peer 0 leads."""
    peers = Peers(4, 3, **options)
    peers.do(0, "on_timer", "watch")
    peers.run(0.3)
    assert peers.nodes[0].phase == LEAD
    return peers


# Who is a member.


def test_a_founder_alone_leads_at_once() -> None:
    peers = Peers()
    assert peers.nodes[0].phase == LEAD
    peers.run(0.2)
    assert peers.nodes[0].has_lease()


def test_a_newcomer_is_let_in_without_waiting_for_a_timer() -> None:
    peers = Peers()
    node = peers.join(1, about=("sit",))
    peers.run(4 * DELAY / SECOND)
    assert node.value == peers.nodes[0].value
    assert node.has_lease()
    assert node.value[4][1] == (1,)  # its seat came with it, in one version
    assert node.at == 2


def test_a_newcomer_is_let_in_by_a_contact_that_does_not_lead() -> None:
    peers = trio()
    node = peers.join(4, contact=3)
    peers.run(8 * DELAY / SECOND)
    assert node.has_lease()
    assert peers.members() == [0, 1, 2, 3, 4]


def test_a_refused_newcomer_is_told_why() -> None:
    peers = trio()
    peers.join(4, contact=3, about=("bad",))
    peers.run(0.05)
    assert peers.told[4].denials == [(0, "nobody wants it")]
    assert peers.nodes[0].newcomers == {}
    assert peers.members() == [0, 1, 2, 3]


def test_a_lease_counts_from_the_first_request_to_join() -> None:
    peers = Peers()
    peers.cut = {frozenset((0, 1))}
    node = peers.join(1)
    asked = peers.now
    peers.run(0.5)
    peers.cut = set()
    peers.holds = lambda src, dst, msg: src == 1 and msg.tag == "vw.beat"
    peers.run(0.2)
    assert node.joined
    assert node.until == asked + SECOND


def test_the_same_id_is_not_let_in_while_it_lingers() -> None:
    peers = trio()
    peers.kill(3, noticed=False)
    peers.run(PATIENCE + 0.2)
    assert peers.lingering() == [3]
    peers.do(0, "on_message", 3, Join((), True))
    peers.run(0.1)
    assert peers.members() == [0, 1, 2]


def test_a_peer_that_leaves_is_not_waited_for() -> None:
    peers = trio()
    peers.do(3, "on_leave")
    peers.run(0.3)
    assert peers.members() == [0, 1, 2]
    assert peers.lingering() == []
    assert peers.nodes[3].may_stop()
    assert peers.told[3].exclusions == []


def test_a_leader_that_leaves_hands_over_without_a_wait() -> None:
    peers = trio()
    peers.do(0, "on_leave")
    peers.run(0.15)
    assert peers.nodes[0].may_stop()
    assert [me for me in (1, 2, 3) if peers.nodes[me].phase == LEAD]
    assert peers.voters(1) == [1, 2, 3]


def test_a_voter_that_leaves_stays_until_a_majority_of_the_next_voters_has_answered() -> None:
    peers = trio()
    peers.holds = lambda src, dst, msg: dst == 1 and msg.tag == "vw.ack"
    peers.do(1, "on_leave")
    peers.run(0.3)
    assert peers.members(1) == [0, 2, 3]
    assert not peers.nodes[1].may_stop()
    peers.holds = lambda src, dst, msg: False
    peers.run(0.2)
    assert peers.nodes[1].may_stop()


def test_a_sole_member_may_stop() -> None:
    peers = Peers()
    peers.do(0, "on_leave")
    assert peers.nodes[0].may_stop()


# Exclusion.


def test_a_killed_peer_is_excluded_at_once_and_forgotten_when_its_lease_is_over() -> None:
    peers = trio()
    peers.kill(3)
    peers.run(0.02)
    assert peers.lingering() == [3]
    peers.run(0.7)
    assert peers.lingering() == [3]
    peers.run(0.4)
    assert peers.lingering() == []


def test_a_silent_peer_is_excluded_after_the_patience() -> None:
    peers = trio()
    peers.kill(3, noticed=False)
    peers.run(PATIENCE - 0.11)
    assert 3 in peers.members()
    peers.run(0.25)
    assert 3 not in peers.members()


def test_a_killed_leader_is_replaced_before_the_patience_is_over() -> None:
    peers = trio()
    peers.kill(0)
    peers.run(0.15)
    assert peers.members(1) == [1, 2, 3]
    assert peers.nodes[1].has_lease()


def test_what_one_voter_suspects_is_not_enough() -> None:
    peers = trio()
    peers.do(1, "on_suspect", 3, "")
    peers.run(PATIENCE - 0.1)
    assert 3 in peers.members()
    peers.do(1, "on_trust", 3, "")
    peers.run(2)
    assert 3 in peers.members()


def test_what_a_majority_of_the_voters_suspects_is_enough() -> None:
    peers = trio()
    peers.do(1, "on_suspect", 3, "")
    peers.do(2, "on_suspect", 3, "")
    peers.run(0.01)
    assert 3 not in peers.members()


@pytest.mark.parametrize(("one", "other"), [(1, 3), (3, 1), (0, 3), (1, 2)])
def test_one_of_two_peers_that_cannot_reach_each_other_goes(one: int, other: int) -> None:
    """If both vote, or one of them leads: the one that is needed less."""
    peers = trio()
    peers.cut = {frozenset((one, other))}
    peers.do(one, "on_suspect", other, "")
    peers.run(PATIENCE + 0.3)
    left = {one, other}.intersection(peers.members())
    assert len(left) == 1
    assert 3 not in left


def test_a_peer_that_accuses_everybody_goes_itself() -> None:
    peers = trio()
    for other in (0, 1, 2):
        peers.do(3, "on_suspect", other, "")
    peers.run(PATIENCE + 0.3)
    assert peers.members() == [0, 1, 2]


def test_an_excluded_peer_is_told() -> None:
    peers = trio()
    for voter in (0, 1, 2):
        peers.do(voter, "on_suspect", 3, "")
    peers.run(0.3)
    assert len(peers.told[3].exclusions) == 1
    assert not peers.nodes[3].has_lease()


def test_a_minority_excludes_nobody_and_has_no_lease() -> None:
    peers = trio()
    peers.cut = {frozenset((0, other)) for other in (1, 2, 3)}
    for other in (1, 2, 3):
        peers.do(0, "on_suspect", other, "")
    peers.run(1.1)
    assert peers.members(0) == [0, 1, 2, 3]
    assert not peers.nodes[0].has_lease()
    assert not peers.nodes[0].gone  # a lapsed lease does not cost the id
    assert peers.members(1) == [1, 2, 3]


def test_an_id_that_is_let_in_again_gives_its_first_member_no_lease() -> None:
    """A late copy of a request to join arrives when the member is excluded and forgotten."""
    peers = trio()
    node = peers.join(4, standing=False)
    peers.run(0.3)
    peers.holds = lambda src, dst, msg: 4 in (src, dst)
    peers.run(2)
    assert 4 not in peers.members()
    assert peers.lingering() == []
    peers.do(0, "on_message", 4, Join((), True))
    peers.run(0.1)
    assert 4 in peers.members()
    peers.holds = lambda src, dst, msg: msg.tag == "vw.chosen"
    peers.run(0.3)
    assert not node.has_lease()
    peers.holds = lambda src, dst, msg: False
    peers.run(0.3)
    assert len(peers.told[4].exclusions) == 1


def test_only_a_leader_that_votes_keeps_others_from_taking_over() -> None:
    peers = trio()
    node = peers.nodes[1]
    for leader, restarts in ((3, False), (0, True)):
        node.promised = (node.promised[0], leader)
        due = dict(node.timers or {})["watch"]
        peers.now += 1
        peers.do(1, "on_message", leader, Beat(1, 99, 1, 1, (), ()))
        assert (dict(node.timers or {})["watch"] > due) == restarts


def test_a_leader_that_hears_nobody_proposes_nothing() -> None:
    """Most of the voters must have been heard lately: otherwise a late copy of the proposal might still be accepted."""
    peers = Peers(5, 5)
    peers.do(0, "on_timer", "watch")
    peers.run(0.3)
    for me in range(1, 5):
        peers.kill(me, noticed=False)
    peers.run(1)
    assert peers.nodes[0].phase == LEAD
    assert peers.nodes[0].proposal == NO_VALUE


def test_a_new_leader_has_patience_anew() -> None:
    peers = trio()
    peers.run(1)
    peers.nodes[1].heard = {}
    peers.do(1, "on_timer", "watch")
    peers.run(0.01)
    assert peers.nodes[1].phase == LEAD
    assert peers.members(1) == [0, 1, 2, 3]


# Voters.


def test_voters_are_an_odd_number() -> None:
    peers = Peers()
    expected = {1: [0], 2: [0, 1, 2], 3: [0, 1, 2], 4: [0, 1, 2, 3, 4]}
    for me, voters in expected.items():
        peers.join(me)
        peers.run(0.3)
        assert peers.voters() == voters


def test_there_are_at_most_seven_voters() -> None:
    peers = Peers()
    for me in range(1, 12):
        peers.join(me)
    peers.run(0.5)
    assert len(peers.voters()) == 7


def test_only_standing_members_vote() -> None:
    peers = Peers()
    for me in range(1, 5):
        peers.join(me, standing=me > 2)
    peers.run(0.5)
    assert peers.voters() == [0, 3, 4]


def test_of_three_voters_one_is_left() -> None:
    peers = Peers(3, 3)
    peers.do(0, "on_timer", "watch")
    peers.run(0.3)
    peers.kill(1)
    peers.run(0.3)
    assert peers.voters() == [0]


def test_the_last_standing_member_stays_while_others_need_it() -> None:
    peers = Peers()
    peers.join(1, standing=False)
    peers.run(0.3)
    peers.do(0, "on_leave")
    peers.run(1)
    assert peers.voters() == [0]
    assert not peers.nodes[0].may_stop()


# Changes.


def test_changes_that_arrive_together_become_one_version() -> None:
    peers = trio()
    before = peers.nodes[0].at
    peers.holds = lambda src, dst, msg: src == 0 and msg.tag == "vw.accept"
    for me in range(4):
        peers.do(me, "change", ("note", 10 * me))
    peers.run(0.01)
    peers.holds = lambda src, dst, msg: False
    peers.run(0.3)
    assert peers.nodes[0].at == before + 2  # the first change went alone
    assert [peers.told[me].applied_numbers for me in range(4)] == [[1]] * 4


def test_a_refused_change_refuses_itself_alone() -> None:
    peers = trio()
    for token in (2, 4, 6, 7, 8):  # the fourth token must be even
        peers.do(3, "change", ("note", token))
    peers.run(0.3)
    assert peers.nodes[0].value[4][0] == (2, 4, 6, 8)
    assert peers.told[3].applied_numbers == [1, 2, 3, 5]
    assert peers.told[3].denials == [(4, "7 is odd")]


def test_a_late_copy_of_a_change_does_nothing() -> None:
    peers = trio()
    old = Ask(1, 1, ((1, ("note", 2)),))
    peers.do(3, "change", ("note", 2))
    peers.run(0.1)
    peers.do(0, "on_message", 3, old)
    peers.run(0.2)
    assert peers.nodes[0].value[4][0] == (2,)


def test_a_late_copy_of_a_refused_change_does_nothing() -> None:
    peers = trio()
    for token in (2, 4, 6, 7):
        peers.do(3, "change", ("note", token))
    peers.run(0.1)
    assert peers.told[3].denials == [(4, "7 is odd")]
    peers.do(1, "change", ("note", 8))
    peers.run(0.1)
    peers.do(0, "on_message", 3, Ask(peers.nodes[0].at, 1, ((4, ("note", 7)),)))
    peers.run(0.1)
    assert 7 not in peers.nodes[0].value[4][0]


def test_a_refusal_stays_in_the_roster_until_the_asker_knows_it() -> None:
    peers = trio()
    for token in (2, 4, 6):
        peers.do(3, "change", ("note", token))
    peers.run(0.1)
    peers.holds = lambda src, dst, msg: dst == 3
    peers.do(3, "change", ("note", 7))
    peers.run(0.05)
    peers.do(3, "change", ("note", 8))
    peers.run(0.05)
    peers.holds = lambda src, dst, msg: False
    peers.run(0.3)
    assert peers.told[3].applied_numbers == [1, 2, 3, 5]
    assert peers.told[3].denials == [(4, "7 is odd")]


def test_a_change_survives_the_leader_that_was_asked() -> None:
    peers = trio()
    peers.holds = lambda src, dst, msg: src == 0
    peers.do(3, "change", ("note", 2))
    peers.run(0.05)
    peers.kill(0)
    peers.run(0.5)
    assert peers.told[3].applied_numbers == [1]
    assert peers.nodes[1].value[4][0] == (2,)


def test_a_change_out_of_order_waits() -> None:
    peers = trio()
    peers.do(0, "on_message", 3, Ask(1, 1, ((2, ("note", 2)),)))
    peers.run(0.1)
    assert peers.nodes[0].value[4][0] == ()


# Censuses.


def test_a_change_waits_until_the_census_is_over() -> None:
    peers = trio(hosts=(3,))
    peers.do(3, "busy", ("g",))
    peers.run(0.01)
    peers.do(1, "change", ("sit", 1))
    peers.do(2, "change", ("note", 2))
    peers.run(0.5)
    assert peers.told[2].applied_numbers == [1]
    assert peers.told[1].applied_numbers == []
    peers.do(3, "busy", ())
    peers.run(0.02)
    assert peers.told[1].applied_numbers == [1]


def test_an_exclusion_does_not_wait_for_a_census() -> None:
    peers = trio(hosts=(2, 3))
    peers.do(2, "busy", ("g",))
    peers.run(0.01)
    peers.kill(3)
    peers.run(0.05)
    assert 3 not in peers.members()


def test_a_departure_waits_until_the_census_is_over() -> None:
    peers = trio(hosts=(2, 3))
    peers.do(2, "busy", ("g",))
    peers.run(0.01)
    peers.do(3, "on_leave")
    peers.run(0.3)
    assert 3 in peers.members()
    peers.do(2, "busy", ())
    peers.run(0.2)
    assert 3 not in peers.members()


# Who is believed.


@pytest.mark.parametrize(
    ("src", "msg"),
    [
        (3, Prepare(1, (9, 3))),  # a member without a vote
        (7, Prepare(1, (9, 7))),  # a stranger
        (1, Prepare(1, (9, 2))),  # in the name of another
        (3, Accept(1, (9, 3), (1, (3,), ((3, 1, True, 0, ()),), (), ()))),
        (3, Nack(1, (99, 3))),
        (3, Promise(1, (1, 0), (0, -1), (0, (), (), (), ()))),
        (1, Accept(1, (9, 1), (2, (), (ME,), (), ()))),  # no voters
        (1, Accept(1, (9, 1), (2, (5,), (ME,), (), ()))),  # a voter that is no member
        (1, Accept(1, (9, 1), (2, (0,), (ME, ME), (), ()))),
        (1, Accept(1, (9, 1), (7, (0,), (ME,), (), ()))),  # gen of the future
        (1, Accept(1, (9, 1), (2, (0,), ((0, 8, True, 0, ()),), (), ()))),
        (1, Accept(1, (9, 1), (2, (0,), ((0, 1, True, -1, ()),), (), ()))),
        (1, Chosen(0, (0, (), (), (), ()))),
        (1, Chosen(-5, EVIL)),
        (7, Ask(1, 1, ((1, ("note", 1)),))),
        (3, Ask(1, 2, ((1, ("note", 1)),))),  # another life of this id
        (3, Ask(1, 1, ())),
        (3, Ask(1, 1, ((2, ()), (1, ())))),
        (7, Leave(1, 1)),
        (7, Introduce(1, 8, (), True)),
        (3, Beat(-1, 1, 1, 1, (), ())),
    ],
)
def test_what_must_not_be_said_is_refused_and_changes_nothing(src: int, msg: Message) -> None:
    peers = trio()
    node = peers.nodes[0]
    before = node.key()
    with pytest.raises(ValueError, match=r"."):
        node.on_message(src, msg)
    assert node.key() == before
    assert peers.outboxes[0].drain() == []


@pytest.mark.parametrize("src", [3, 7])
def test_a_roster_is_taken_from_voters_only(src: int) -> None:
    peers = trio()
    peers.do(1, "on_message", src, Chosen(9, EVIL))
    assert peers.nodes[1].at == 1
    peers.do(1, "on_message", 0, Chosen(9, EVIL))
    assert peers.nodes[1].at == 9


def test_a_peer_that_hears_no_voter_believes_other_members() -> None:
    """Else it could never learn that all the voters which it knows have left."""
    peers = Peers(5, 3)
    peers.run(0.3)
    peers.cut = {frozenset((3, other)) for other in (0, 1, 2, 4)}
    peers.run(PATIENCE - 0.1)
    peers.do(3, "on_message", 4, Chosen(9, EVIL))
    assert peers.nodes[3].at == 1
    peers.run(0.3)
    peers.do(3, "on_message", 7, Chosen(9, EVIL))
    assert peers.nodes[3].at == 1
    peers.do(3, "on_message", 4, Chosen(9, EVIL))
    assert peers.nodes[3].at == 9


def test_a_leader_that_was_told_of_a_version_takes_over_again() -> None:
    """It leads no more, but the others still follow its beats. So must not it itself."""
    peers = trio()
    told = Chosen(2, peers.nodes[0].value)
    for me in range(4):
        peers.do(me, "on_message", (me + 1) % 3, told)
    assert peers.nodes[0].phase != LEAD
    peers.run(3 * PATIENCE)
    assert peers.nodes[0].phase == LEAD


def test_a_voter_that_hears_no_majority_believes_other_members() -> None:
    """Else voters that are left behind, and answer each other, could never learn of the others' successors."""
    peers = Peers(6, 5)
    peers.run(0.3)
    for dead in (0, 1, 2):
        peers.kill(dead)
    peers.run(PATIENCE + 0.2)
    peers.do(3, "on_message", 5, Chosen(9, EVIL))
    assert peers.nodes[3].at == 9


def test_a_newcomer_believes_its_contact_only() -> None:
    peers = Peers()
    node = peers.new(1)
    peers.cut = {frozenset((0, 1))}
    peers.do(1, "on_join", 0)
    peers.do(1, "on_message", 2, Chosen(9, EVIL))
    assert node.at == 0
    peers.do(1, "on_message", 2, TurnedAway(1, "go away"))
    assert peers.told[1].denials == []


@pytest.mark.parametrize(
    "key",
    [
        ("vw.beat", 1, 1, 1, 1, ("g",), ("x",)),
        ("vw.beat", 1, 1, 1, 1, (1,), ()),
        ("vw.ack", 1, 1, 1, 0),
        ("vw.prepare", 1, (1,)),
        ("vw.prepare", "1", (1, 1)),
        ("vw.accept", 1, (1, 1), (1, (0,), ((0, 1, True, 0),), (), ())),
        ("vw.accept", 1, (1, 1), ()),
        ("vw.chosen", 1, (1, (0,), ((0, 1, 1, 0, ()),), (), ())),
        ("vw.chosen", 1, (1, (0,), ((0, 1, True, 0, ((1, 1),)),), (), ())),
        ("vw.ask", 1, 1, ((1, 2),)),
        ("vw.ask", 1, 1, ((1, (None,)),)),
        ("vw.ask", 1, 1 << 64, ()),
        ("vw.join", (), 1),
        ("vw.introduce", 1, 1.5, (), True),
        ("vw.behind",),
        ("vw.leave", 1, 1, 1),
    ],
)
def test_a_malformed_message_is_not_decoded(key: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(key)
