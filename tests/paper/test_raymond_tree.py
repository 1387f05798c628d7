"""Raymond's tree algorithm step by step: one test per rule of HOLDER, ASKED and REQUEST_Q."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.raymond_tree import Privilege, RaymondTree, Request
from fairgate.scenario.manual import Flight, ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate


def gate(n: int = 5, **options: Any) -> ManualNetwork:
    """Node 0 is the root; in a binary tree, 1 and 2 are below it, and 3 and 4 below 1."""
    return ManualNetwork(RaymondTree, Setup(tuple(range(n)), options=options), slots=True)


def holders(network: ManualNetwork) -> list[int]:
    return [node.show()["holder"] for node in network.nodes.values()]


def test_the_shape_of_the_tree() -> None:
    assert holders(gate(7)) == [0, 0, 0, 1, 1, 2, 2]
    assert holders(gate(4, tree="line")) == [0, 0, 1, 2]
    assert holders(gate(4, tree="star")) == [0, 0, 0, 0]


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    network = gate()
    network.acquire(0)
    assert network.grants == [0]
    assert network.flight == []


def test_a_request_goes_to_the_neighbour_towards_the_token_and_the_token_comes_back() -> None:
    network = gate()
    network.acquire(3)
    assert network.flight == [Flight(3, 1, Request())]
    network.deliver()
    assert network.flight == [Flight(1, 0, Request())]
    network.deliver()
    assert network.flight == [Flight(0, 1, Privilege(0))]
    network.deliver()
    assert network.flight == [Flight(1, 3, Privilege(0))]
    network.deliver()
    assert network.grants == [3]
    assert holders(network) == [1, 3, 0, 3, 1]  # every pointer leads to node 3


def test_a_node_asks_once_for_all_behind_it() -> None:
    network = gate()
    for me in (3, 4, 1):
        network.acquire(me)
    network.deliver()
    network.deliver()
    assert network.flight == [Flight(1, 0, Request())]
    assert network.nodes[1].show()["request_q"] == (1, 3, 4)


def test_a_node_that_sends_the_token_on_asks_for_it_back_if_others_wait() -> None:
    network = gate()
    for me in (3, 4):
        network.acquire(me)
    network.deliver_all()
    assert list(network.inside) == [3]
    assert network.nodes[3].show()["request_q"] == (1,)
    network.release(3)
    assert network.flight == [Flight(3, 1, Privilege(1))]
    network.deliver_all()
    assert network.grants == [3, 4]


def test_a_request_may_overtake_the_token() -> None:
    """Node 1 sends the token to 3 and asks for it back; 3 hears the second first."""
    network = gate()
    for me in (3, 4):
        network.acquire(me)
    while Flight(1, 3, Request()) not in network.flight:
        network.deliver()
    assert [flight.msg for flight in network.flight] == [Privilege(0), Request()]
    network.deliver(1)
    network.deliver_all()
    network.release(3)
    network.deliver_all()
    assert network.grants == [3, 4]


def test_the_fence_travels_with_the_token() -> None:
    network = gate()
    for me in (2, 3, 0):
        network.acquire(me)
        network.deliver_all()
        network.release(me)
    assert network.grants == [2, 3, 0]
    network.acquire(4)
    network.deliver_all()
    assert network.inside[4].fence == 4


def test_the_queue_of_a_node_is_served_in_order() -> None:
    network = gate(4, tree="star")
    network.acquire(0)
    for me in (3, 1, 2):
        network.acquire(me)
        network.deliver_all()
    for me in (0, 3, 1, 2):
        assert list(network.inside) == [me]
        network.release(me)
        network.deliver_all()


@pytest.mark.parametrize("tree", ["binary", "line", "star"])
def test_an_entry_under_load_costs_about_four_messages(tree: str) -> None:
    result = simulate(Config("raymond_tree", nodes=25, k=1, requests=50, warmup=5, options={"tree": tree}))
    assert result.violations == 0
    assert 3.5 < result.messages_per_entry < 4
    assert result.messages["rt.request"] == result.messages["rt.privilege"]


def test_without_load_an_entry_costs_as_many_messages_as_the_tree_is_wide() -> None:
    """At most two per edge of the longest path: 2 x 6 in a binary tree of 15 nodes, 2 x 14 in a line."""
    tree, line = (
        simulate(Config("raymond_tree", nodes=15, k=1, rate=1e-5, requests=20, options={"tree": tree}))
        for tree in ("binary", "line")
    )
    assert tree.messages_per_entry < 12
    assert line.messages_per_entry < 28
    assert line.messages_per_entry > 1.3 * tree.messages_per_entry
