"""Naimi-Trehel step by step: one test per rule of the path-reversal tree (papers/naimi_trehel.md)."""

from fairgate.core.setup import Setup
from fairgate.protocols.naimi_trehel import NaimiTrehel, Request, Token
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(n: int = 4) -> ManualNetwork:
    return ManualNetwork(NaimiTrehel, Setup(tuple(range(n))), slots=True)


def parents(network: ManualNetwork) -> list[int]:
    return [node.show()["parent"] for node in network.nodes.values()]


def test_every_node_starts_as_a_child_of_the_token_holder() -> None:
    assert parents(gate()) == [-1, 0, 0, 0]


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    network = gate()
    network.acquire(0)
    assert network.grants == [0]
    assert network.flight == []


def test_an_idle_root_sends_the_token_at_once() -> None:
    network = gate()
    network.acquire(2)
    assert network.flight == [Flight(2, 0, Request(2))]
    network.deliver()
    assert network.flight == [Flight(0, 2, Token(0))]
    network.deliver()
    assert network.grants == [2]
    assert parents(network) == [2, 0, -1, 0]


def test_a_node_that_forwards_a_request_takes_the_requester_as_parent() -> None:
    network = gate()
    for me in (1, 2):
        network.acquire(me)
        network.deliver_all()
    assert parents(network) == [2, 2, -1, 0]  # node 0 forwarded node 2's request to node 1, the root at that time
    network.acquire(3)
    network.deliver()
    assert network.flight == [Flight(0, 2, Request(3))]
    assert parents(network) == [3, 2, -1, -1]


def test_next_pointers_form_the_queue() -> None:
    network = gate()
    network.acquire(0)
    for me in (3, 1, 2):
        network.acquire(me)
        network.deliver_all()
    assert [node.show()["next"] for node in network.nodes.values()] == [3, 2, -1, 1]
    for me in (0, 3, 1, 2):
        network.release(me)
        network.deliver_all()
    assert network.grants == [0, 3, 1, 2]


def test_a_request_may_overtake_the_token_sent_before_it() -> None:
    network = gate()
    network.acquire(1)
    network.deliver()
    network.acquire(2)
    network.deliver(1)  # the request of 2 to 0, forwarded to 1
    network.deliver(1)  # it reaches node 1 before the token does
    assert network.nodes[1].show()["next"] == 2
    network.deliver()
    network.release(1)
    network.deliver()
    assert network.grants == [1, 2]


def test_the_fence_travels_with_the_token() -> None:
    network = gate()
    fences = []
    for me in (0, 2, 0):
        network.acquire(me)
        network.deliver_all()
        fences.append((network.inside[me].slot, network.inside[me].fence))
        network.release(me)
    assert fences == [(0, 1), (0, 2), (0, 3)]


def test_the_token_of_a_cancelled_turn_goes_on_to_next() -> None:
    network = gate()
    network.acquire(0)
    for me in (1, 2):
        network.acquire(me)
        network.deliver_all()
    network.cancel(1)
    network.release(0)
    network.deliver_all()
    assert network.grants == [0, 2]
