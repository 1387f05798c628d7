"""The centralised gate step by step: one test per rule of the server."""

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.centralised import Centralised, Grant, Release, Request
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(n: int = 4, k: int = 2) -> ManualNetwork:
    return ManualNetwork(Centralised, Setup(tuple(range(n)), k), slots=True)


def test_an_entry_costs_a_request_a_grant_and_a_release() -> None:
    network = gate()
    network.acquire(1)
    assert network.flight == [Flight(1, 0, Request(1))]
    network.deliver()
    assert network.flight == [Flight(0, 1, Grant(0, 1))]
    network.deliver()
    network.release(1)
    assert network.flight == [Flight(1, 0, Release(0))]


def test_the_root_enters_and_leaves_without_messages() -> None:
    network = gate()
    network.acquire(0)
    network.release(0)
    assert network.grants == [0]
    assert network.flight == []


def test_the_queue_is_first_come_first_served() -> None:
    network = gate(n=5, k=1)
    for me in (3, 0, 4, 1):
        network.acquire(me)
        network.deliver_all()
    for me in (3, 0, 4, 1):
        network.release(me)
        network.deliver_all()
    assert network.grants == [3, 0, 4, 1]


def test_k_nodes_are_inside_each_in_its_own_slot() -> None:
    network = gate(k=2)
    for me in (1, 2, 3):
        network.acquire(me)
    network.deliver_all()
    assert {me: permit.slot for me, permit in network.inside.items()} == {1: 0, 2: 1}
    assert network.nodes[0].show()["queue"] == (3,)


def test_a_request_may_overtake_the_release_before_it() -> None:
    network = gate(k=2)
    network.acquire(1)
    network.acquire(2)
    network.deliver_all()
    network.release(2)
    network.acquire(2)
    network.deliver(1)  # the request, before the release of slot 1
    assert network.nodes[0].show()["queue"] == (2,)
    network.deliver_all()
    assert (network.inside[2].slot, network.inside[2].fence) == (1, 2)


@pytest.mark.parametrize("root", [0, 2])
def test_any_member_can_be_the_server(root: int) -> None:
    network = ManualNetwork(Centralised, Setup((0, 1, 2), 2, root=root), slots=True)
    assert [node.tokens() for node in network.nodes.values()] == [2 * (me == root) for me in network.nodes]
    network.acquire(1)
    assert network.flight[0].dst == root


def test_the_slot_of_a_turn_that_the_root_cancelled_goes_to_the_next_node() -> None:
    network = gate(k=1)
    for me in (1, 0, 2):
        network.acquire(me)
        network.deliver_all()
    network.cancel(0)
    network.release(1)
    network.deliver_all()
    assert network.grants == [1, 2]


def test_reporting_re_entries_is_a_no_op_at_a_client() -> None:
    """A census may turn a server into a client while a local user is inside (live/gate.py, recovery/regenerate.py)."""
    network = ManualNetwork(Centralised, Setup((1, 2), 2), slots=True)
    network.acquire(2)
    network.deliver_all()
    client, server = network.nodes[2], network.nodes[1]
    assert isinstance(client, Centralised)
    assert isinstance(server, Centralised)
    before = client.key(), server.key()
    client.retaken(3)
    assert (client.key(), server.key()) == before
    network.acquire(1)
    server.retaken(3)
    assert server.fences == [1, 4]
