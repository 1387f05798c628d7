"""k tokens by broadcast, step by step: what Suzuki and Kasami's rules become with several tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.srimani_reddy import Request, SrimaniReddy, Token
from fairgate.scenario.manual import Flight, ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate


def gate(n: int = 4, k: int = 2) -> ManualNetwork:
    return ManualNetwork(SrimaniReddy, Setup(tuple(range(n)), k), slots=True)


def test_each_of_the_first_k_nodes_enters_with_a_token_of_its_own() -> None:
    network = gate()
    network.acquire(0)
    network.acquire(1)
    assert {me: permit.slot for me, permit in network.inside.items()} == {0: 0, 1: 1}
    assert network.flight == []


def test_a_numbered_request_goes_to_every_other_node() -> None:
    network = gate()
    network.acquire(2)
    assert network.flight == [Flight(2, dst, Request(2, 1)) for dst in (0, 1, 3)]


def surplus() -> ManualNetwork:
    """Both holders have sent their idle tokens to node 2; the token in slot 0 has let it in."""
    network = gate()
    network.acquire(2)
    network.deliver()
    network.deliver()
    assert network.flight == [
        Flight(2, 3, Request(2, 1)),
        Flight(0, 2, Token(0, 0, (), (0, 0, 0, 0))),
        Flight(1, 2, Token(1, 0, (), (0, 0, 0, 0))),
    ]
    network.deliver(1)
    assert network.inside[2].slot == 0
    return network


def test_a_surplus_token_that_nobody_wants_is_kept() -> None:
    network = surplus()
    network.deliver_all()
    assert "a surplus token came" in network.marks
    assert network.nodes[2].show()["idle"] == ((1, 0),)
    network.release(2)
    assert network.nodes[2].show()["idle"] == ((0, 1), (1, 0))
    network.acquire(2)
    assert network.inside[2].slot == 0
    assert network.flight == []


def test_a_surplus_token_is_passed_on() -> None:
    network = surplus()
    network.acquire(3)
    network.deliver(0)  # 2's request reaches 3
    network.deliver(3)  # 3's request reaches 2, which waits for nothing and has no idle token yet
    network.deliver(0)  # the surplus token
    assert network.flight[-1] == Flight(2, 3, Token(1, 0, (), (0, 0, 1, 0)))
    network.deliver_all()
    assert sorted(network.inside) == [2, 3]


def test_an_idle_token_goes_to_the_first_that_asks() -> None:
    network = surplus()
    network.deliver_all()
    network.acquire(0)
    network.deliver_all()
    assert {me: permit.slot for me, permit in network.inside.items()} == {2: 0, 0: 1}


def test_a_leaving_node_appends_all_waiting_nodes_and_serves_the_head() -> None:
    network = gate(5, k=1)
    network.acquire(0)
    for me in (4, 1):
        network.acquire(me)
    network.deliver_all()
    network.release(0)
    assert network.flight == [Flight(0, 1, Token(0, 1, (4,), (0, 0, 0, 0, 0)))]


def test_a_request_that_another_token_served_leaves_the_queue() -> None:
    """Nodes 3 and 4 wait in the queues of both tokens. When 3 leaves with the first, the other learns of it."""
    network = gate(5, k=2)
    for me in (0, 1):
        network.acquire(me)
    for me in (3, 4):
        network.acquire(me)
    network.deliver_all()
    network.release(0)
    network.deliver_all()
    assert network.nodes[3].show()["Q"] == (4,)
    network.release(3)
    network.deliver_all()
    assert sorted(network.inside) == [1, 4]
    network.release(1)  # its token still goes to 3, which has been served and sends it on
    sent = 0
    while network.flight:
        network.deliver()
        sent += 1
    assert network.grants == [0, 1, 3, 4]
    assert sent == 2  # to 3, and from there to 4, which keeps it: 0, 1 and 3 do not wait
    assert network.nodes[4].show()["idle"] == ((1, 1),)


def test_a_token_that_missed_several_requests_of_a_node_still_comes_to_it() -> None:
    """Node 1 hears of 2's second request before the first, which the other token has served."""
    network = gate(3, k=2)
    network.acquire(2)
    network.deliver(0)  # to 0; the one to 1 is slow
    slow = network.flight.pop(0)
    network.deliver_all()
    network.release(2)
    network.acquire(0)
    also_slow = network.flight.pop(0)  # to 1
    network.deliver_all()
    assert sorted(network.inside) == [0]
    network.acquire(2)
    network.deliver(1)
    assert network.flight[-1] == Flight(1, 2, Token(1, 0, (), (0, 0, 0)))
    network.flight += [slow, also_slow]
    network.deliver_all()
    assert sorted(network.inside) == [0, 2]


def test_a_late_request_that_was_already_served_is_ignored() -> None:
    network = gate(3, k=1)
    network.acquire(1)
    late = network.flight.pop(1)  # to 2
    network.deliver_all()
    network.release(1)
    network.acquire(2)
    network.deliver_all()
    network.release(2)
    network.flight.append(late)
    network.deliver_all()
    assert network.nodes[2].show()["idle"] == ((0, 2),)


def test_fences_rise_in_each_slot() -> None:
    network = gate(3, k=2)
    for me in (2, 0, 1, 2, 1):
        network.acquire(me)
        network.deliver_all()
        network.release(me)
        network.deliver_all()
    fences = dict(token for node in network.nodes.values() for token in node.show()["idle"])
    assert sum(fences.values()) == 5


@pytest.mark.parametrize("latency", ["1", "uniform:0.1,5"])
def test_with_one_token_it_is_suzuki_and_kasamis_algorithm(latency: str) -> None:
    config = Config("suzuki_kasami", nodes=12, k=1, requests=40, latency=latency, waits=True)
    theirs, ours = simulate(config), simulate(replace(config, protocol="srimani_reddy"))
    assert ours.waits == theirs.waits
    assert list(ours.messages.values()) == list(theirs.messages.values())


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.5])
@pytest.mark.parametrize("latency", ["1", "uniform:0.1,5"])
def test_an_entry_costs_at_most_n_plus_k_minus_1_messages(rate: float, latency: str) -> None:
    result = simulate(Config("srimani_reddy", nodes=20, k=4, rate=rate, latency=latency, requests=50))
    assert result.violations == 0
    asked = result.messages["sr.request"] / 19  # the other entries found an idle token
    assert asked <= result.entries
    assert asked <= result.messages["sr.token"] <= 4 * asked


def test_it_is_less_fair_than_fair_k() -> None:
    ours, fair = (simulate(Config(name, requests=30, warmup=5)) for name in ("srimani_reddy", "fair_k"))
    assert ours.wait_mean == pytest.approx(fair.wait_mean, rel=0.05)
    assert ours.spread > 10 * fair.spread
