"""A gate on the `regenerate` layer survives crashes, whatever its protocol (recovery/regenerate.py)."""

from __future__ import annotations

import random

import pytest

from fairgate.core.ids import NIL
from fairgate.core.kbr import Routed
from fairgate.core.layers import over
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.live.live_protocols import options_of
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.fair_k_bounded import FairKBounded
from fairgate.protocols.naimi_trehel import NaimiTrehel
from fairgate.recovery.census import Answer
from fairgate.recovery.regenerate import Regenerate
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


def mortal_network(n: int, k: int, protocol: str = "fair_k") -> Mortal:
    setup = Setup(tuple(range(n)), k, options=options_of(protocol))
    found = find_protocol(protocol)
    network = Mortal(over(Regenerate, found), setup, found.about.slots, census=False)
    network.begin(random.Random(1))
    return network


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
def test_several_crashes_in_quick_succession_including_the_leaders(name: str) -> None:
    """The next view arrives before the census of the previous one is complete."""
    for seed in range(1, 16):
        result = simulate(config(name, seed, "crash:0@5,crash:1@5.5,crash:2@6,crash:3@6.1,detect:1"))
        assert result.broken == (), seed
        assert result.entries >= 3 * 20


@pytest.mark.parametrize("name", UNTIMED)
def test_without_regenerate_the_same_crashes_stop_the_gate(name: str) -> None:
    """A control: otherwise the tests above would prove nothing."""
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
def test_walks_in_which_idle_holders_must_request(reentry: int) -> None:
    """In the leader's simulation too: each placeholder is a turn, and each holder must get its own slot."""
    for seed in range(150):
        mortal_walk(FairKBounded, seed, options={"reentry": reentry})
    for seed in range(30):
        mortal_walk(FairKBounded, seed, kind=LawfulMortal, options={"reentry": reentry})


@pytest.mark.parametrize("protocol", [name for name in UNTIMED if name != "raymond_tree"])  # it keeps no such order
def test_the_queue_keeps_its_order(protocol: str) -> None:
    """In the new epoch, those who have waited longest enter first."""
    network = mortal_network(5, 1, protocol)
    network.acquire(1)
    network.deliver_all()
    for me in (3, 2, 4):
        network.now += 10
        network.acquire(me)
    network.die(0)  # the root; all messages in flight are lost too
    network.flight.clear()
    while network.tell_one():
        pass
    network.deliver_all()
    for me in (1, 3, 2, 4):
        assert set(network.inside) == {me}
        network.release(me)
        network.deliver_all()


def test_a_holder_keeps_its_slot_and_later_fences_are_higher() -> None:
    network = mortal_network(5, k=2)
    for me in (1, 2):
        network.acquire(me)
        network.deliver_all()
    before = dict(network.inside)
    network.die(0)
    while network.tell_one():
        pass
    network.deliver_all()
    assert network.inside == before
    for old, new in ((1, 3), (2, 4)):
        network.release(old)
        network.acquire(new)
        network.deliver_all()
    network.deliver_all()
    fences = {permit.slot: permit.fence for permit in before.values()}
    assert {permit.slot for permit in network.inside.values()} == {0, 1}
    assert all(permit.fence > fences[permit.slot] for permit in network.inside.values())


def test_an_excluded_peer_is_told_that_its_permit_is_lost() -> None:
    network = mortal_network(3, k=1)
    network.acquire(2)
    network.deliver_all()
    network.step(2, "on_view", 1, (0, 1), ())
    assert network.lost == [(2, 1, "this peer was excluded from the membership")]
    assert network.inside == {}


def test_an_answer_to_the_next_view_is_kept_during_the_census_of_this_one() -> None:
    """A newcomer may learn of its view before the leader does, and sends its answer only once."""
    out = Collected()
    leader = Regenerate(1, Setup((1,)), out, NaimiTrehel)
    leader.wait_for_view()
    leader.on_message(2, Answer(6, NIL, False, NIL, NIL, 0, 0, NIL, True, ()))
    leader.on_view(5, (1,), ())
    assert leader.epoch == 5
    leader.on_view(6, (1, 2), ())
    assert leader.epoch == 6
    assert [effect[:2] for effect in out.drain() if effect[0] == "send"] == [("send", 2)]
