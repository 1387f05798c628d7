"""Members that are excluded while they may live: which slots the census gives, and when (recovery/regenerate.py)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairgate.core.choose import from_floats
from fairgate.core.ids import NIL
from fairgate.core.layers import over
from fairgate.core.message import Message
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.live.live_protocols import live_protocols, options_of
from fairgate.protocols.centralised import Grant
from fairgate.protocols.naimi_trehel import NaimiTrehel, Token
from fairgate.recovery import regenerate
from fairgate.recovery.census import Answer, Dated, Install
from fairgate.recovery.regenerate import Regenerate
from fairgate.registry import find_protocol
from tests.support.regenerate_walk import Mortal

TOKENS = [name for name in live_protocols() if find_protocol(name).about.slots]
MANY = [name for name in live_protocols() if find_protocol(name).about.many]


def network(n: int, k: int, protocol: str) -> Mortal:
    setup = Setup(tuple(range(n)), k, options=options_of(protocol))
    found = find_protocol(protocol)
    rng = random.Random(1)
    made = Mortal(over(Regenerate, found), setup, found.about.slots, from_floats(rng.random), census=False)
    made.begin(rng)
    return made


def view(gate: Mortal, number: int, members: tuple[int, ...], ghosts: tuple[int, ...] = ()) -> None:
    for me in members:
        gate.step(me, "on_view", number, members, ghosts)
    gate.deliver_all()


def enter(gate: Mortal, *who: int) -> None:
    for me in who:
        gate.acquire(me)
        gate.deliver_all()


@pytest.mark.parametrize("protocol", TOKENS)
def test_the_exclusion_of_a_waiter_costs_no_wait(protocol: str) -> None:
    gate = network(4, 1, protocol)
    enter(gate, 0, 3, 1)
    view(gate, 1, (0, 1, 2), (3,))
    gate.release(0)
    gate.deliver_all()
    assert set(gate.inside) == {1}


@pytest.mark.parametrize("protocol", TOKENS)
def test_the_slot_of_an_excluded_holder_is_withheld_until_its_lease_is_over(protocol: str) -> None:
    gate = network(4, 1, protocol)
    enter(gate, 3, 1)
    view(gate, 1, (0, 1, 2), (3,))
    assert set(gate.inside) == {3}
    gate.crash(3)
    view(gate, 2, (0, 1, 2))
    assert set(gate.inside) == {1}


@pytest.mark.parametrize("protocol", TOKENS)
def test_a_seat_that_was_given_up_and_taken_again_says_nothing_about_tokens(protocol: str) -> None:
    """0 knows that the token went to 1, and not that 1 has passed it on to the ghost."""
    gate = network(3, 1, protocol)
    enter(gate, 1, 2)
    gate.release(1)
    gate.deliver_all()
    assert set(gate.inside) == {2}
    old = gate.nodes[1]
    fresh = Regenerate(1, old.setup, old.out, find_protocol(protocol))
    fresh.wait_for_view()
    gate.nodes[1] = fresh
    gate.step(0, "on_view", 1, (0, 2), ())  # 1 has given up its seat; 2 does not hear of it
    gate.step(0, "on_view", 2, (0,), (2,))
    view(gate, 3, (0, 1), (2,))
    enter(gate, 0, 1)
    assert set(gate.inside) == {2}
    gate.crash(2)
    view(gate, 4, (0, 1))
    assert len(gate.inside) == 1


@pytest.mark.parametrize("protocol", MANY)
def test_the_other_slots_go_on(protocol: str) -> None:
    """Two of three permits are held by survivors and one by a ghost: the survivors' permits pass on."""
    gate = network(6, 3, protocol)
    enter(gate, 5, 1, 2)
    view(gate, 1, (0, 1, 2, 3, 4), (5,))
    enter(gate, 3)
    assert set(gate.inside) == {1, 2, 5}
    gate.release(1)
    gate.release(2)
    gate.deliver_all()
    assert set(gate.inside) == {3, 5}
    gate.crash(5)
    view(gate, 2, (0, 1, 2, 3, 4))
    enter(gate, 0)
    assert set(gate.inside) == {0, 3}


@pytest.mark.parametrize("protocol", MANY)
def test_a_slot_that_was_withheld_is_free_when_its_ghost_is_gone_though_another_lingers(protocol: str) -> None:
    gate = network(5, 2, protocol)
    enter(gate, 4, 1)
    view(gate, 1, (0, 1, 2, 3), (4,))
    gate.release(1)
    gate.deliver_all()
    gate.crash(4)
    view(gate, 2, (0, 1, 2), (3,))  # 3 had nothing
    enter(gate, 0, 1)
    assert len(gate.inside) == (2 if find_protocol(protocol).about.slots else 1)


@pytest.mark.parametrize("protocol", MANY)
def test_a_gate_with_fewer_members_than_permits_has_fewer_slots(protocol: str) -> None:
    gate = network(3, 3, protocol)
    view(gate, 1, (0, 1))
    enter(gate, 0, 1)
    assert set(gate.inside) == {0, 1}
    view(gate, 2, (0,), (1,))
    gate.release(0)
    enter(gate, 0)
    assert set(gate.inside) == {0, 1}


def test_a_census_does_not_wait_for_a_newcomer() -> None:
    gate = network(3, 1, "naimi_trehel")
    gate.nodes[2].wait_for_view()  # type: ignore[attr-defined]
    view(gate, 1, (0, 1))
    gate.acquire(2)
    for me in (0, 1):
        gate.step(me, "on_view", 2, (0, 1, 2), ())
    gate.deliver_all()
    enter(gate, 0)
    assert set(gate.inside) == {0}
    gate.step(2, "on_view", 2, (0, 1, 2), ())
    gate.deliver_all()
    gate.release(0)
    gate.deliver_all()
    assert set(gate.inside) == {2}


def test_the_leader_knows_when_its_census_is_over() -> None:
    gate = network(3, 1, "naimi_trehel")
    enter(gate, 2)
    leader, other = gate.nodes[0], gate.nodes[1]
    assert isinstance(leader, Regenerate)
    assert isinstance(other, Regenerate)
    gate.step(0, "on_view", 1, (0, 1), (2,))
    assert not leader.census_over()
    gate.step(1, "on_view", 1, (0, 1), (2,))
    assert other.census_over()
    gate.deliver_all()
    assert leader.census_over()  # with nothing to give
    assert leader.epoch == 0


def test_of_two_that_claim_a_slot_the_lower_fence_loses() -> None:
    out = Collected()
    leader = Regenerate(0, Setup((0, 1)), out, NaimiTrehel)
    leader.on_acquire(1)
    leader.on_view(1, (0, 1), ())
    out.drain()
    leader.on_message(1, Answer(1, 1, True, 0, leader.fence + 5, 0, 0, 0, True, ()))
    assert [effect for effect in out.drain() if effect[0] == "lost"] == [("lost", 1, regenerate.NOT_COUNTED)]
    assert not leader.inside


# What members say is checked.


def member() -> Regenerate:
    made = Regenerate(1, Setup((0, 1, 2)), Collected(), NaimiTrehel)
    made.on_view(1, (0, 1, 2), ())
    return made


def leader() -> Regenerate:
    made = Regenerate(0, Setup((0, 1, 2)), Collected(), NaimiTrehel)
    made.on_view(1, (0, 1, 2), ())
    return made


def answer(**values: Any) -> Answer:
    fields = {"view": 1, "request": NIL, "inside": False, "slot": NIL, "fence": NIL, "waited": 0}
    more = {"seen": 0, "epoch": 0, "sure": True, "trail": ()}
    return Answer(**{**fields, **more, **values})


def install(**values: Any) -> Install:
    key = NaimiTrehel(1, Setup((0, 1, 2)), Collected()).key()
    fields = {"view": 1, "front": (0,), "epoch_slots": (0,), "node": key, "request": NIL, "granted": False}
    return Install(**{**fields, "slot": NIL, "fence": NIL, **values})


@pytest.mark.parametrize(
    ("node", "src", "said"),
    [
        (leader, 7, answer()),
        (member, 2, answer()),
        (leader, 1, answer(request=0)),
        (leader, 1, answer(request=-5)),
        (leader, 1, answer(inside=True)),
        (leader, 1, answer(request=1, inside=True, slot=1)),
        (leader, 1, answer(slot=-2)),
        (leader, 1, answer(waited=-1)),
        (member, 2, install()),
        (member, 0, install(view=2)),
        (member, 0, install(front=())),
        (member, 0, install(front=(7,))),
        (member, 0, install(front=(0, 0))),
        (member, 0, install(epoch_slots=())),
        (member, 0, install(epoch_slots=(1,))),
        (member, 0, install(epoch_slots=(0, 0), front=(0, 1))),
        (member, 0, install(granted=True, slot=5)),
        (member, 0, install(node=())),
        (member, 0, install(node=(1,) * 8)),
        (member, 0, install(node=("x",) * 7)),
    ],
)
def test_what_no_member_can_say_is_refused(node: Any, src: int, said: Message) -> None:
    made = node()
    before = made.key()
    with pytest.raises(ValueError, match=r"census|member|leader|epoch"):
        made.on_message(src, said)
    assert made.key() == before


@pytest.mark.parametrize(
    ("src", "said"),
    [
        (7, Dated(1, (1,), Token(5))),
        (2, Dated(1, (), Token(5))),
        (2, Dated(1, (1, 2), Token(5))),
        (2, Dated(1, (1,), Grant(3, 5))),
    ],
)
def test_a_message_of_a_stranger_or_with_a_wrong_token_is_refused(src: int, said: Message) -> None:
    made = member()
    made.on_message(0, install())
    assert made.epoch == 1
    before = made.key()
    with pytest.raises(ValueError, match=r"member|token"):
        made.on_message(src, said)
    assert made.key() == before


def test_memory_of_what_comes_early_is_bounded() -> None:
    made = leader()
    made.answers = {sender: answer(view=9) for sender in range(regenerate.MOST_EARLY)}
    made.early = [(1, Dated(9, (), Token(5)))] * regenerate.MOST_EARLY
    with pytest.raises(ValueError, match="answers"):
        made.on_message(regenerate.MOST_EARLY, answer(view=9))
    made.on_message(3, answer(view=9))
    with pytest.raises(ValueError, match="messages"):
        made.on_message(4, Dated(9, (), Token(5)))
    made.on_view(10, (0, 1), ())
    assert made.early == []
    assert set(made.answers) == {0}
