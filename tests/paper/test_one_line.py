"""One line, k windows: each rule of papers/one_line.md, then the bounds, then the figures."""

from __future__ import annotations

import random

import pytest

from fairgate.core.ids import NIL
from fairgate.core.numbers import COMPILED
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.protocols.one_line.line import Ask, Free, Gone, Head, Moved, Token
from fairgate.protocols.one_line.protocol import OneLine
from fairgate.scenario.manual import Flight, ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.walks.walk import walks
from tests.support.chase import entries_while_chasing
from tests.support.line_order import WITHOUT_PROMISES, most_overtakes

PAPER = Config("one_line", nodes=100, k=3, requests=60, warmup=5)


def gate(n: int = 5, k: int = 2, **options: int) -> ManualNetwork:
    return ManualNetwork(OneLine, Setup(tuple(range(n)), k, options={"reign": 100, **options}), slots=True)


def deliver(network: ManualNetwork, dst: int, kind: type) -> None:
    """Deliver the oldest message of that kind to that node."""
    (index, *_) = [at for at, flight in enumerate(network.flight) if flight.dst == dst and isinstance(flight.msg, kind)]
    network.deliver(index)


def kinds(network: ManualNetwork) -> list[type]:
    return [type(flight.msg) for flight in network.flight]


def fill(network: ManualNetwork, *nodes: int) -> None:
    for me in nodes:
        network.acquire(me)
        network.deliver_all()


# The rules.


def test_an_idle_token_costs_three_messages() -> None:
    network = gate()
    network.acquire(1)
    assert network.flight == [Flight(1, 0, Ask(0, 0, 1, 1))]
    network.deliver()
    assert kinds(network) == [Token]
    network.deliver()
    network.release(1)
    assert network.flight == [Flight(1, 0, Free(0, 0, 1, 1, 1))]
    assert network.grants == [1]


def test_the_coordinator_enters_without_a_message() -> None:
    network = gate()
    network.acquire(0)
    network.release(0)
    assert (network.grants, network.flight) == ([0], [])


def test_the_holder_that_was_lent_its_token_first_is_told_who_comes_next() -> None:
    network = gate()
    fill(network, 1, 2)
    network.acquire(3)
    network.deliver()
    assert network.flight == [Flight(0, 1, Head(1, 0, 0, 2, 3, 1, ()))]
    network.deliver()
    network.release(1)
    assert network.flight == [Flight(1, 3, Token(0, 1, 1, 0, 0, 2, NIL, 0, ())), Flight(1, 0, Gone(0, 0, 1, 3, 1, 2))]
    network.deliver()
    assert network.grants == [1, 2, 3]  # one hop after the exit


def test_a_freed_token_goes_to_a_request_that_another_holder_keeps_waiting() -> None:
    """Node 3 is promised the token of node 1, but node 2 leaves first. The promise to node 3 is taken back."""
    network = gate()
    fill(network, 1, 2, 3)
    network.release(2)
    deliver(network, 0, Free)
    assert sorted(kind.__name__ for kind in kinds(network)) == ["Head", "Token"]
    network.deliver_all()
    assert network.grants == [1, 2, 3]
    network.release(1)
    assert kinds(network) == [Free]


def test_a_token_that_comes_too_late_goes_back() -> None:
    network = gate()
    fill(network, 1, 2, 3)
    network.release(2)
    deliver(network, 0, Free)
    deliver(network, 3, Token)
    network.release(1)  # before it hears that node 3 has been served
    deliver(network, 3, Token)
    assert Flight(3, 0, Free(0, 0, 1, 3, 1)) in network.flight
    network.deliver_all()
    fill(network, 4, 1)
    assert network.grants == [1, 2, 3, 4]
    network.release(3)
    network.deliver_all()
    assert network.grants == [1, 2, 3, 4, 1]


def test_a_long_stay_delays_nobody_for_long() -> None:
    """Node 1 stays forever. Node 3 is promised its token first, and after patience * k more grants another one."""
    network = gate(n=6, patience=1)
    fill(network, 1, 2, 3, 4, 5)
    entered = []
    for _ in range(4):
        inside = [me for me in network.inside if me != 1]
        network.release(inside[0])
        network.deliver_all()
        network.acquire(inside[0])
        network.deliver_all()
        entered.append(network.grants[-1])
    assert 3 in entered
    assert 1 in network.inside


def test_after_its_reign_the_coordinator_hands_the_line_to_a_node_that_enters() -> None:
    network = gate(k=1, reign=1)
    network.acquire(1)
    network.deliver()
    assert kinds(network) == [Moved]  # with the token
    network.deliver()
    assert network.nodes[1].coordinators() == 1
    network.acquire(2)
    assert network.flight == [Flight(2, 0, Ask(0, 0, 2, 1))]
    network.deliver()
    assert network.flight == [Flight(0, 1, Ask(1, 1, 2, 1))]  # forwarded to the later reign


def test_a_lone_client_becomes_the_coordinator_and_needs_no_messages() -> None:
    network = gate()
    for _ in range(2):
        network.acquire(3)
        network.deliver_all()
        network.release(3)
        network.deliver_all()
    assert network.nodes[3].coordinators() == 1
    for _ in range(10):
        network.acquire(3)
        network.release(3)
    assert (len(network.grants), network.flight) == (12, [])


def test_a_request_that_comes_before_the_line_waits_for_it() -> None:
    network = gate(k=1, reign=1)
    network.acquire(1)
    deliver(network, 0, Ask)
    network.acquire(0)
    deliver(network, 1, Ask)
    assert kinds(network) == [Moved]
    deliver(network, 1, Moved)
    network.release(1)
    network.deliver_all()
    assert network.grants == [1, 0]


def test_a_message_waits_at_a_node_that_knows_that_the_line_is_on_its_way() -> None:
    """With longer promises a token may tell a node that it is the coordinator before the Line comes."""
    out = Collected()
    node = OneLine(1, Setup((0, 1), 1), out)
    node.on_acquire(1)
    node.on_message(0, Token(0, 5, 1, 3, 1, 0, NIL, 0, ()))
    out.drain()
    node.on_release(1)
    assert out.drain() == []
    assert (node.door, node.tokens()) == (1, 1)


def test_with_ahead_0_nobody_is_told_anything() -> None:
    result = simulate(Config("one_line", nodes=20, k=3, requests=20, options={"ahead": 0}))
    assert set(result.messages) == {"ol.ask", "ol.free", "ol.moved", "ol.token"}


@pytest.mark.parametrize("ahead", [2, 3, 5])
def test_no_walk_breaks_a_property_with_longer_promises(ahead: int) -> None:
    walks(OneLine, range(300), {"ahead": ahead, "reign": 1, "patience": 1})
    walks(OneLine, range(300), {"ahead": ahead, "patience": 0, "chase": 0})


# Requests that run after the Line.


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("chase", [0, 2, 8])
def test_a_chased_request_gets_into_the_line(n: int, k: int, chase: int) -> None:
    for seed in range(10):
        assert entries_while_chasing(OneLine, seed, n, k, chase) < 100


# The bound on overtakes.


def bound(k: int, ahead: int, patience: int) -> int:
    return (ahead + 1) * k * (patience * k + ahead + 1) if ahead else 0


@pytest.mark.parametrize("config", WITHOUT_PROMISES, ids=lambda config: f"k={config.k} {config.latency}")
def test_with_ahead_0_nobody_in_the_line_is_overtaken(config: Config) -> None:
    assert most_overtakes(config) == 0


def test_overtakes_in_line_stay_below_the_bound() -> None:
    rng = random.Random(1)
    for seed in range(60 if COMPILED else 15):
        n = rng.randint(3, 8)
        k, patience, ahead = rng.randint(1, 3), rng.randint(0, 3), rng.randint(0, 2)
        config = Config(
            "one_line",
            nodes=n,
            k=k,
            cs=rng.choice([0.0, 0.001, 0.01]),
            rate=rng.choice([1e3, 1e5]),
            latency=rng.choice(["0.001", "uniform:0,0.002"]),
            exponential_cs=rng.random() < 0.7,
            requests=60,
            seed=seed,
            faults=rng.choice(["", "reorder:0.3"]),
            options={"reign": rng.choice([1, 17]), "ahead": ahead, "patience": patience},
        )
        assert most_overtakes(config) <= bound(k, ahead, patience), config


# The figures. "Law": with one hop per hand-over the mean wait is N(cs + T)/k - cs - 1/rate = 354.7 s.


def test_equal_stays_take_one_hop_and_four_messages() -> None:
    result = simulate(PAPER)
    assert result.violations == 0
    assert result.wait_mean == pytest.approx(354.7, rel=0.002)
    assert result.messages_per_entry < 4.1
    assert result.spread < 15


def test_exponential_stays_take_little_more_than_one_hop() -> None:
    """Through the coordinator, a hand-over takes two hops, and the mean wait is N * T/k = 33 s longer."""
    told, through = (
        simulate(Config("one_line", requests=200, warmup=5, exponential_cs=True, options={"ahead": ahead}))
        for ahead in (1, 0)
    )
    assert told.messages_per_entry < 4.1
    assert through.messages_per_entry < 3.2
    assert 0.8 * 33 < through.wait_mean - told.wait_mean < 33


@pytest.mark.parametrize(("latency", "random"), [("1", True), ("uniform:0.5,1.5", False), ("wan", False)])
def test_fair_k_is_less_even_if_stays_or_latencies_vary(latency: str, random: bool) -> None:
    one, k = (
        simulate(Config(name, requests=200, warmup=5, latency=latency, exponential_cs=random))
        for name in ("one_line", "fair_k")
    )
    assert one.spread < 0.8 * k.spread


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_a_hundred_thousand_nodes() -> None:
    result = simulate(Config("one_line", nodes=100_000, k=1_000, requests=2, latency="0.001"))
    assert (result.entries, result.violations) == (200_000, 0)
    assert result.messages_per_entry < 4.6
