"""Ricart and Agrawala's algorithm (1981): one test per claim."""

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.ricart_agrawala import Reply, Request, RicartAgrawala
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.walk import walks


def network_of(n: int) -> ManualNetwork:
    return ManualNetwork(RicartAgrawala, Setup(tuple(range(1, n + 1))), slots=False)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_an_entry_costs_two_messages_per_other_node(n: int) -> None:
    network = network_of(n)
    network.acquire(1)
    sent = 0
    while network.flight:
        network.deliver()
        sent += 1
    assert list(network.inside) == [1]
    assert sent == 2 * (n - 1)


def test_a_node_enters_only_when_all_have_replied() -> None:
    network = network_of(3)
    network.acquire(1)
    network.deliver(0)  # REQUEST to 2
    network.deliver(1)  # REPLY of 2
    assert not network.inside
    network.deliver_all()
    assert list(network.inside) == [1]


def test_a_node_that_is_inside_defers_its_reply() -> None:
    network = network_of(2)
    network.acquire(1)
    network.deliver_all()
    network.acquire(2)
    network.deliver_all()
    assert network.nodes[1].show()["reply_deferred"] == [2]
    network.release(1)
    assert [flight.msg for flight in network.flight] == [Reply()]
    network.deliver_all()
    assert list(network.inside) == [2]


def test_ids_break_the_tie_of_equal_sequence_numbers() -> None:
    network = network_of(2)
    network.acquire(2)
    network.acquire(1)
    assert [flight.msg for flight in network.flight] == [Request(1), Request(1)]
    network.deliver_all()
    assert list(network.inside) == [1]


def test_a_new_sequence_number_exceeds_the_highest_seen() -> None:
    network = network_of(2)
    network.step(2, "on_message", 1, Request(41))
    network.acquire(2)
    assert network.flight[-1].msg == Request(42)


def test_a_request_may_overtake_the_reply_to_the_one_before() -> None:
    network = network_of(2)
    network.acquire(2)
    network.acquire(1)  # same number, smaller id: node 1 goes first
    network.deliver(0)  # node 2's REQUEST, deferred by node 1
    network.deliver(0)
    network.deliver(0)
    network.release(1)
    network.acquire(1)
    assert [type(flight.msg) for flight in network.flight] == [Reply, Request]
    network.deliver(1)  # node 1's new REQUEST arrives before its REPLY; node 2 asked earlier, so it defers
    assert not network.inside
    network.deliver_all()
    assert list(network.inside) == [2]
    network.release(2)
    network.deliver_all()
    assert list(network.inside) == [1]


def test_random_walks_reach_every_branch() -> None:
    assert walks(RicartAgrawala, range(100)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
    }
