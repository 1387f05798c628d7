"""Suzuki-Kasami by hand: one rule of RN, LN and Q a test."""

from fairgate.core.setup import Setup
from fairgate.protocols.suzuki_kasami import Request, SuzukiKasami, Token
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(n: int = 3) -> ManualNetwork:
    return ManualNetwork(SuzukiKasami, Setup(tuple(range(n))), slots=True)


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    hand = gate()
    hand.acquire(0)
    assert hand.grants == [0]
    assert hand.flight == []


def test_a_request_goes_to_everybody_with_its_number() -> None:
    hand = gate()
    hand.acquire(1)
    assert hand.flight == [Flight(1, 0, Request(1, 1)), Flight(1, 2, Request(1, 1))]


def test_an_idle_holder_sends_the_token_to_who_asks() -> None:
    hand = gate()
    hand.acquire(1)
    hand.deliver()
    assert hand.flight[1:] == [Flight(0, 1, Token(0, (), (0, 0, 0)))]


def test_who_leaves_appends_all_who_wait_and_serves_the_head() -> None:
    hand = gate(4)
    hand.acquire(0)
    for me in (3, 1):
        hand.acquire(me)
    hand.deliver_all()
    hand.release(0)
    assert hand.flight == [Flight(0, 1, Token(1, (3,), (0, 0, 0, 0)))]  # newcomers in the order of members


def test_the_queue_is_first_come_first_served_between_releases() -> None:
    hand = gate(4)
    hand.acquire(0)
    hand.acquire(3)
    hand.deliver_all()
    hand.release(0)
    hand.deliver_all()
    hand.acquire(2)
    hand.deliver_all()
    hand.release(3)
    hand.deliver_all()
    hand.acquire(3)
    hand.acquire(1)
    hand.deliver_all()
    hand.release(2)
    hand.deliver_all()
    assert hand.grants == [0, 3, 2, 1]
    assert hand.nodes[1].show()["Q"] == (3,)


def test_an_old_request_that_was_overtaken_moves_nothing() -> None:
    hand = gate()
    hand.acquire(1)
    hand.deliver(0)  # to 0; the one to 2 is slow
    hand.deliver(1)  # the token
    hand.release(1)
    hand.acquire(2)
    hand.deliver(2)  # 1 hears of 2
    hand.deliver(2)  # 2 gets the token
    hand.release(2)
    assert hand.flight[0] == Flight(1, 2, Request(1, 1))  # 2 holds the idle token, and 1's old request comes
    hand.deliver(0)
    assert hand.nodes[2].show()["token"]
    hand.acquire(1)
    hand.deliver_all()
    assert hand.grants == [1, 2, 1]


def test_a_new_request_that_overtook_an_old_one_is_served_once() -> None:
    hand = gate()
    hand.acquire(1)
    slow = hand.flight.pop(1)  # to 2
    hand.deliver_all()
    hand.release(1)
    hand.acquire(2)
    hand.deliver_all()
    hand.acquire(1)
    hand.deliver_all()  # 2 knows of 1's second request, not of its first
    hand.flight.append(slow)
    hand.deliver_all()
    assert "an old request came late" in hand.marks
    hand.release(2)
    hand.deliver_all()
    hand.release(1)
    hand.deliver_all()
    assert hand.grants == [1, 2, 1]
    served = {0: 0, 1: 2, 2: 1}
    assert hand.nodes[1].show() == {"RN": served, "token": True, "inside": False, "Q": (), "LN": served}


def test_an_entry_costs_none_or_n_messages() -> None:
    hand = gate(5)
    sent = 0
    hand.acquire(3)
    while hand.flight:
        sent += 1
        hand.deliver()
    assert sent == 5
