"""Naimi-Trehel by hand: one rule of the path-reversal tree a test."""

from fairgate.core.setup import Setup
from fairgate.protocols.naimi_trehel import NaimiTrehel, Request, Token
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(n: int = 4) -> ManualNetwork:
    return ManualNetwork(NaimiTrehel, Setup(tuple(range(n))), slots=True)


def parents(hand: ManualNetwork) -> list[int]:
    return [node.show()["parent"] for node in hand.nodes.values()]


def test_everybody_starts_below_the_holder_of_the_token() -> None:
    assert parents(gate()) == [-1, 0, 0, 0]


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    hand = gate()
    hand.acquire(0)
    assert hand.grants == [0]
    assert hand.flight == []


def test_an_idle_root_sends_the_token_at_once() -> None:
    hand = gate()
    hand.acquire(2)
    assert hand.flight == [Flight(2, 0, Request(2))]
    hand.deliver()
    assert hand.flight == [Flight(0, 2, Token(0))]
    hand.deliver()
    assert hand.grants == [2]
    assert parents(hand) == [2, 0, -1, 0]


def test_who_forwards_a_request_takes_the_requester_as_parent() -> None:
    hand = gate()
    for me in (1, 2):
        hand.acquire(me)
        hand.deliver_all()
    assert parents(hand) == [2, 2, -1, 0]  # 0 forwarded the request of 2 to 1, then root
    hand.acquire(3)
    hand.deliver()
    assert hand.flight == [Flight(0, 2, Request(3))]
    assert parents(hand) == [3, 2, -1, -1]


def test_next_pointers_are_the_queue() -> None:
    hand = gate()
    hand.acquire(0)
    for me in (3, 1, 2):
        hand.acquire(me)
        hand.deliver_all()
    assert [node.show()["next"] for node in hand.nodes.values()] == [3, 2, -1, 1]
    for me in (0, 3, 1, 2):
        hand.release(me)
        hand.deliver_all()
    assert hand.grants == [0, 3, 1, 2]


def test_a_request_may_overtake_the_token_that_runs_before_it() -> None:
    hand = gate()
    hand.acquire(1)
    hand.deliver()
    hand.acquire(2)
    hand.deliver(1)  # the request of 2 to 0, forwarded to 1
    hand.deliver(1)  # 1 has not seen its token yet
    assert hand.nodes[1].show()["next"] == 2
    hand.deliver()
    hand.release(1)
    hand.deliver()
    assert hand.grants == [1, 2]


def test_the_fence_travels_with_the_token() -> None:
    hand = gate()
    fences = []
    for me in (0, 2, 0):
        hand.acquire(me)
        hand.deliver_all()
        fences.append((hand.inside[me].slot, hand.inside[me].fence))
        hand.release(me)
    assert fences == [(0, 1), (0, 2), (0, 3)]


def test_the_token_of_a_cancelled_turn_goes_on_to_next() -> None:
    hand = gate()
    hand.acquire(0)
    for me in (1, 2):
        hand.acquire(me)
        hand.deliver_all()
    hand.cancel(1)
    hand.release(0)
    hand.deliver_all()
    assert hand.grants == [0, 2]
