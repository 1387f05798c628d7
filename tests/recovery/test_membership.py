"""Agreed rosters: who is a member, who votes and who leads, rule by rule (docs/rosters.md)."""

from __future__ import annotations

from fairgate.recovery.agreed import NO_VALUE, Beat, Chosen, Introduce, Join
from fairgate.recovery.ballots import LEAD
from tests.recovery.peers import DELAY, PATIENCE, SECOND, Peers, trio


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


def test_a_late_introduction_does_not_let_a_peer_in_again_that_leaves() -> None:
    """Its contact repeats the request until it knows the outcome."""
    peers = trio()
    peers.join(4, contact=3)
    peers.run(0.1)
    peers.do(0, "on_message", 3, Introduce(peers.nodes[3].at, 4, (), True))
    peers.do(4, "on_leave")
    peers.run(0.1)
    assert peers.members() == [0, 1, 2, 3]
    assert peers.nodes[4].may_stop()


def test_a_leader_that_leaves_hands_over_without_a_wait() -> None:
    peers = trio()
    peers.do(0, "on_leave")
    peers.run(0.15)
    assert peers.nodes[0].may_stop()
    assert [me for me in (1, 2, 3) if peers.nodes[me].phase == LEAD]
    assert peers.voters(1) == [1, 2, 3]


def test_a_voter_that_leaves_stays_until_a_majority_of_the_next_voters_has_answered() -> None:
    peers = trio()
    peers.holds = lambda src, dst, msg: dst == 1 and (src != 0 or msg.tag == "vw.ack")
    peers.do(1, "on_leave")
    peers.run(0.3)
    assert peers.members(1) == [0, 2, 3]
    assert not peers.nodes[1].may_stop()
    peers.holds = lambda src, dst, msg: False
    peers.run(0.2)
    assert peers.nodes[1].may_stop()


def test_peers_that_leave_at_once_wait_for_nobody() -> None:
    """Each of them stops as soon as it may. Those that are still there get no answer from it any more."""
    for hosts in ((), (0, 1, 2)):
        peers = Peers(5, 5, hosts)
        peers.do(0, "on_timer", "watch")
        peers.run(0.3)
        for me in range(5):
            peers.do(me, "on_leave")
        for _ in range(100):
            peers.run(0.002)
            for me in [me for me in range(5) if me not in peers.dead and peers.nodes[me].may_stop()]:
                peers.kill(me, noticed=False)
        assert peers.dead == set(range(5))


def test_a_version_after_one_without_it_proves_that_a_peer_is_not_needed() -> None:
    """Whoever voted on the later one knew the earlier one. The two may arrive in any order."""
    for late in (False, True):
        peers = trio()
        peers.holds = lambda src, dst, msg: dst == 1 and msg.tag in ("vw.chosen", "vw.ack")
        peers.do(1, "on_leave")
        peers.run(0.3)
        without = Chosen(peers.nodes[0].at, peers.nodes[0].value)
        after = Chosen(without.at + 1, without.value)
        first, second = (after, without) if late else (without, after)
        peers.do(1, "on_message", 0, first)
        peers.do(1, "on_message", 5, second)
        assert not peers.nodes[1].may_stop()  # a stranger told it
        peers.do(1, "on_message", 0, second)
        assert peers.nodes[1].may_stop()


def test_a_sole_member_may_stop() -> None:
    peers = Peers()
    peers.do(0, "on_leave")
    assert peers.nodes[0].may_stop()


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


# Who leads.


def test_a_leader_that_was_told_of_a_version_takes_over_again() -> None:
    """It leads no more, but the others still follow its beats. So must not it itself."""
    peers = trio()
    told = Chosen(2, peers.nodes[0].value)
    for me in range(4):
        peers.do(me, "on_message", (me + 1) % 3, told)
    assert peers.nodes[0].phase != LEAD
    peers.run(3 * PATIENCE)
    assert peers.nodes[0].phase == LEAD


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
