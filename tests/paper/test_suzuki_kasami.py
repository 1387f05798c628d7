"""Suzuki and Kasami's algorithm step by step: one test per rule of RN, LN and Q."""

from fairgate.core.setup import Setup
from fairgate.protocols.suzuki_kasami import Request, SuzukiKasami, Token
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(n: int = 3) -> ManualNetwork:
    return ManualNetwork(SuzukiKasami, Setup(tuple(range(n))), slots=True)


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    network = gate()
    network.acquire(0)
    assert network.grants == [0]
    assert network.flight == []


def test_a_numbered_request_goes_to_every_other_node() -> None:
    network = gate()
    network.acquire(1)
    assert network.flight == [Flight(1, 0, Request(1, 1)), Flight(1, 2, Request(1, 1))]


def test_an_idle_holder_sends_the_token_to_the_requester() -> None:
    network = gate()
    network.acquire(1)
    network.deliver()
    assert network.flight[1:] == [Flight(0, 1, Token(0, (), (0, 0, 0)))]


def test_a_leaving_node_appends_all_waiting_nodes_and_serves_the_head() -> None:
    network = gate(4)
    network.acquire(0)
    for me in (3, 1):
        network.acquire(me)
    network.deliver_all()
    network.release(0)
    assert network.flight == [Flight(0, 1, Token(1, (3,), (0, 0, 0, 0)))]  # new requests in the order of members


def test_the_queue_is_first_come_first_served_between_releases() -> None:
    network = gate(4)
    network.acquire(0)
    network.acquire(3)
    network.deliver_all()
    network.release(0)
    network.deliver_all()
    network.acquire(2)
    network.deliver_all()
    network.release(3)
    network.deliver_all()
    network.acquire(3)
    network.acquire(1)
    network.deliver_all()
    network.release(2)
    network.deliver_all()
    assert network.grants == [0, 3, 2, 1]
    assert network.nodes[1].show()["Q"] == (3,)


def test_a_late_request_that_was_already_served_is_ignored() -> None:
    network = gate()
    network.acquire(1)
    network.deliver(0)  # to 0; the one to 2 is slow
    network.deliver(1)  # the token
    network.release(1)
    network.acquire(2)
    network.deliver(2)  # node 2's request reaches node 1
    network.deliver(2)  # node 2 gets the token
    network.release(2)
    assert network.flight[0] == Flight(1, 2, Request(1, 1))  # node 2 holds the idle token when 1's old request arrives
    network.deliver(0)
    assert network.nodes[2].show()["token"]
    network.acquire(1)
    network.deliver_all()
    assert network.grants == [1, 2, 1]


def test_a_request_that_overtook_an_older_one_is_served_once() -> None:
    network = gate()
    network.acquire(1)
    slow = network.flight.pop(1)  # to 2
    network.deliver_all()
    network.release(1)
    network.acquire(2)
    network.deliver_all()
    network.acquire(1)
    network.deliver_all()  # node 2 has node 1's second request, but not its first
    network.flight.append(slow)
    network.deliver_all()
    assert "an old request came late" in network.marks
    network.release(2)
    network.deliver_all()
    network.release(1)
    network.deliver_all()
    assert network.grants == [1, 2, 1]
    served = {0: 0, 1: 2, 2: 1}
    assert network.nodes[1].show() == {"RN": served, "token": True, "inside": False, "Q": (), "LN": served}


def test_an_entry_without_the_token_costs_n_messages() -> None:
    network = gate(5)
    sent = 0
    network.acquire(3)
    while network.flight:
        sent += 1
        network.deliver()
    assert sent == 5
