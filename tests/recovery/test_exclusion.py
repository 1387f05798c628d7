"""Agreed rosters: who is excluded, and when it is forgotten, rule by rule (docs/rosters.md)."""

from __future__ import annotations

import pytest

from fairgate.recovery.agreed import Join
from tests.recovery.peers import PATIENCE, trio


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


def test_complaints_that_were_not_repeated_lately_do_not_count() -> None:
    """A voter that acknowledged no beats for a while, and leads next, knows only what was said before."""
    peers = trio()
    peers.do(3, "on_suspect", 1, "")
    peers.run(PATIENCE)
    leader = peers.nodes[0]
    leader.heard[3, 1].suspects = {1: leader.now - 2 * leader.patience}
    assert leader.complaints() == [((3, 1), (1, 1))]
    leader.heard[3, 1].when = leader.now - leader.patience - 1
    assert leader.complaints() == []


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
