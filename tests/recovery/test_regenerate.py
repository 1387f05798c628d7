"""A gate above `regenerate` goes on when peers die, whatever its protocol (recovery/regenerate.py)."""

from __future__ import annotations

import random

import pytest

from fairgate.core.ids import NIL
from fairgate.core.kbr import Routed
from fairgate.core.layers import over
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.live.live_protocols import MANY, ONE, options_of
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.fair_k_bounded import FairKBounded
from fairgate.protocols.naimi_trehel import NaimiTrehel
from fairgate.recovery.regenerate import Answer, Regenerate
from fairgate.registry import PROTOCOLS, find_protocol
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.support.regenerate_walk import LawfulMortal, Mortal, mortal_walk

UNTIMED = [
    name
    for name, protocol in PROTOCOLS.items()
    if not protocol.timed and not protocol.about.detectors and not issubclass(protocol, Routed)
]
MORTAL = Config(
    nodes=7, rate=0.3, cs=1.0, latency="uniform:0.01,0.6", requests=20, stack=("regenerate",), census_every=0
)


def mortal_hand(n: int, k: int, protocol: str = "fair_k") -> Mortal:
    setup = Setup(tuple(range(n)), k, options=options_of(protocol))
    hand = Mortal(over(Regenerate, find_protocol(protocol)), setup, True, census=False)
    hand.begin(random.Random(1))
    return hand


def config(name: str, seed: int, faults: str) -> Config:
    k = 2 if find_protocol(name).about.many else 1
    return Config(**{**MORTAL.describe(), "protocol": name, "k": k, "seed": seed, "faults": faults})


@pytest.mark.parametrize("name", UNTIMED)
def test_the_living_are_all_served_when_others_die(name: str) -> None:
    for seed in range(1, 16):
        result = simulate(config(name, seed, "crash:*4@5+7,detect:3"))
        assert result.broken == (), seed
        assert result.entries >= 3 * 20


@pytest.mark.parametrize("name", UNTIMED)
def test_crashes_at_once_and_of_the_leader(name: str) -> None:
    """Views that follow each other before the first census is over."""
    for seed in range(1, 16):
        result = simulate(config(name, seed, "crash:0@5,crash:1@5.5,crash:2@6,crash:3@6.1,detect:1"))
        assert result.broken == (), seed
        assert result.entries >= 3 * 20


@pytest.mark.parametrize("name", UNTIMED)
def test_without_it_the_same_crashes_stop_the_gate(name: str) -> None:
    """Else the tests above would show nothing."""
    stopped = 0
    for seed in range(1, 6):
        plain = config(name, seed, "crash:*4@5+7")
        result = simulate(Config(**{**plain.describe(), "stack": ()}))
        stopped += result.violations > 0
    assert stopped >= 3


@pytest.mark.parametrize("name", UNTIMED)
def test_walks_with_deaths_at_any_moment(name: str) -> None:
    marks: set[str] = set()
    for seed in range(150):
        marks |= mortal_walk(find_protocol(name), seed).marks
    assert "a message of an old epoch was refused" in marks


def test_a_node_loaded_from_its_key_goes_on_as_the_original() -> None:
    for seed in range(60):
        mortal_walk(FairK, seed, kind=LawfulMortal)


@pytest.mark.parametrize("reentry", [0, 1])
def test_walks_in_which_idle_holders_have_to_ask(reentry: int) -> None:
    """Also in the game: its places are turns, and each must be in the slot of who is inside."""
    for seed in range(150):
        mortal_walk(FairKBounded, seed, options={"reentry": reentry})
    for seed in range(30):
        mortal_walk(FairKBounded, seed, kind=LawfulMortal, options={"reentry": reentry})


@pytest.mark.parametrize("protocol", ["fair_k", "fair_k_bounded", "naimi_trehel", ONE, MANY])
def test_the_queue_keeps_its_order(protocol: str) -> None:
    """Those who waited longest come in first in the new epoch."""
    hand = mortal_hand(5, 1, protocol)
    hand.acquire(1)
    hand.deliver_all()
    for me in (3, 2, 4):
        hand.now += 10
        hand.acquire(me)
    hand.die(0)  # the root, and with it all that was under way
    hand.flight.clear()
    while hand.tell_one():
        pass
    hand.deliver_all()
    for me in (1, 3, 2, 4):
        assert set(hand.inside) == {me}
        hand.release(me)
        hand.deliver_all()


def test_whoever_is_inside_stays_in_its_slot_and_later_fences_are_past_it() -> None:
    hand = mortal_hand(5, k=2)
    for me in (1, 2):
        hand.acquire(me)
        hand.deliver_all()
    before = dict(hand.inside)
    hand.die(0)
    while hand.tell_one():
        pass
    hand.deliver_all()
    assert hand.inside == before
    for old, new in ((1, 3), (2, 4)):
        hand.release(old)
        hand.acquire(new)
        hand.deliver_all()
    hand.deliver_all()
    fences = {permit.slot: permit.fence for permit in before.values()}
    assert {permit.slot for permit in hand.inside.values()} == {0, 1}
    assert all(permit.fence > fences[permit.slot] for permit in hand.inside.values())


def test_a_peer_that_is_left_out_is_told_that_its_permit_is_over() -> None:
    hand = mortal_hand(3, k=1)
    hand.acquire(2)
    hand.deliver_all()
    hand.step(2, "on_view", 1, (0, 1))
    assert hand.lost == [(2, 1, "this peer was left out of the membership")]
    assert hand.inside == {}


def test_an_answer_to_the_next_view_outlasts_the_census_of_this_one() -> None:
    """A newcomer knows its view before the leader does, and answers once."""
    out = Collected()
    leader = Regenerate(1, Setup((1,)), out, NaimiTrehel)
    leader.wait_for_view()
    leader.on_message(2, Answer(6, NIL, False, NIL, 0))
    leader.on_view(5, (1,))
    assert leader.epoch == 5
    leader.on_view(6, (1, 2))
    assert leader.epoch == 6
    assert [effect[:2] for effect in out.drain() if effect[0] == "send"] == [("send", 2)]
