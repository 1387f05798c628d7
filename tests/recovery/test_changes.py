"""Agreed rosters: changes, and how they wait for a census, rule by rule (docs/rosters.md)."""

from __future__ import annotations

from fairgate.recovery.agreed import Ask
from tests.recovery.peers import trio


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
