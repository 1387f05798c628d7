"""Agreed rosters: which messages are believed, and from whom, rule by rule (docs/rosters.md)."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.message import Message, decode
from fairgate.recovery.agreed import (
    Accept,
    Ask,
    Beat,
    Chosen,
    Introduce,
    Leave,
    Member,
    Nack,
    Prepare,
    Promise,
    TurnedAway,
    Value,
)
from tests.recovery.peers import PATIENCE, Peers, trio

ME: Member = (0, 1, True, 0, ())
EVIL: Value = (9, (7,), ((7, 9, True, 0, ()),), (), ())


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
