"""The lock service with leases, sentence by sentence. Node 0 is the root; k is 1 unless it is said."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.leased import Gone, Grant, Leased, Release, Renew, Renewed, Request
from fairgate.walks.lossy import MILLION, LossyNetwork
from fairgate.walks.stacks import over_channel

S = 1_000_000_000
LEASE = 10 * S
HOLD = LEASE * 101 // 100  # at the root, with the default drift of 1 %
TICK = S // 1000


def system(n: int = 3, k: int = 1, **named: Any) -> LossyNetwork:
    return LossyNetwork(Leased, Setup(tuple(range(n)), k), slots=True, **named)


def messages(hand: LossyNetwork) -> list[Any]:
    return [flight.msg for flight in hand.flight]


def enter(hand: LossyNetwork, me: int) -> None:
    hand.acquire(me)
    hand.deliver_all()
    assert me in hand.inside


def to_or_from(hand: LossyNetwork, me: int) -> list[int]:
    """Places in flight of what a partition around node me would swallow, last first."""
    return [index for index, flight in reversed(list(enumerate(hand.flight))) if me in (flight.src, flight.dst)]


def partition(hand: LossyNetwork, me: int, delay: int) -> None:
    """Time passes, and nothing gets to node me or away from it. Everybody else talks at once."""
    end = hand.now + delay
    while hand.now < end:
        for index in to_or_from(hand, me):
            hand.drop(index)
        hand.deliver_all()
        hand.advance(min(10 * TICK, end - hand.now))


def test_a_client_asks_is_offered_asks_for_the_lease_and_is_inside() -> None:
    hand = system()
    hand.acquire(1)
    seen = []
    while hand.flight:
        seen += messages(hand)
        assert 1 not in hand.inside
        hand.deliver()
    assert seen == [Request(), Grant(0, 1), Renew(0, 1, 1), Renewed(0, 1, 1)]
    assert hand.inside[1].fence == 1


def test_the_root_goes_in_without_a_message_and_without_a_lease() -> None:
    hand = system()
    hand.acquire(0)
    assert hand.inside[0].slot == 0
    assert not hand.flight
    assert not hand.timers
    hand.release(0)
    enter(hand, 1)


def test_first_come_first_served() -> None:
    hand = system(4)
    enter(hand, 2)
    for me in (3, 0, 1):
        hand.acquire(me)
        hand.deliver_all()
    for me in (2, 3, 0, 1):
        hand.release(me)
        hand.deliver_all()
    assert hand.grants == [2, 3, 0, 1]


def test_the_client_renews_at_a_third_of_its_lease_and_stays() -> None:
    hand = system()
    enter(hand, 1)
    for n in range(2, 12):
        hand.advance(LEASE // 3 + TICK)
        assert messages(hand) == [Renew(0, 1, n)]
        hand.deliver_all()
    assert 1 in hand.inside
    assert not hand.lost


def test_the_lease_counts_from_asking_not_from_the_answer() -> None:
    hand = system()
    hand.acquire(1)
    hand.deliver()  # Request
    hand.deliver()  # Grant: node 1 asks now
    hand.advance(9 * S)
    hand.deliver_all()
    assert 1 in hand.inside
    hand.advance(S - 1)
    assert 1 in hand.inside
    hand.advance(1)
    assert hand.lost == [(1, 1, "lease over")]


def test_an_answer_later_than_the_lease_lets_nobody_in() -> None:
    hand = system()
    hand.acquire(1)
    hand.deliver()
    hand.deliver()
    hand.deliver()  # Renew
    hand.advance(LEASE)
    hand.deliver()  # Renewed
    assert 1 not in hand.inside
    hand.deliver_all()  # it asked again, and now the answer is quick
    assert 1 in hand.inside


def test_in_a_partition_the_client_is_out_before_the_next_is_in() -> None:
    hand = system()
    enter(hand, 1)
    hand.acquire(2)
    hand.deliver_all()
    partition(hand, 1, LEASE)
    assert hand.lost == [(1, 1, "lease over")]
    assert 2 not in hand.inside
    partition(hand, 1, HOLD - LEASE + S // 5)
    assert 2 in hand.inside


def test_after_the_partition_the_loser_can_ask_again() -> None:
    hand = system()
    enter(hand, 1)
    partition(hand, 1, LEASE)
    hand.acquire(1)
    hand.deliver_all()
    assert 1 not in hand.inside  # the root still waits for its own timer
    hand.advance(HOLD)
    hand.deliver_all()
    assert hand.inside[1].fence == 2


def test_a_slot_whose_client_crashed_is_given_to_the_next() -> None:
    hand = system()
    enter(hand, 1)
    hand.crash(1)
    hand.acquire(2)
    hand.deliver_all()
    hand.advance(HOLD - TICK)
    assert 2 in hand.waiting
    hand.advance(2 * TICK)
    hand.deliver_all()
    assert 2 in hand.inside


def test_a_question_with_an_old_fence_is_answered_gone_and_the_client_asks_again() -> None:
    hand = system()
    hand.acquire(1)
    hand.deliver()
    hand.advance(HOLD + TICK)  # the offer is slow, and the root has taken the slot back
    hand.deliver()
    hand.deliver()
    assert messages(hand) == [Gone(0, 1)]
    hand.deliver()
    assert messages(hand) == [Request()]
    hand.deliver_all()
    assert hand.inside[1].fence == 2


def test_an_offer_for_a_cancelled_request_is_given_back_at_once() -> None:
    hand = system()
    hand.acquire(1)
    hand.cancel(1)
    hand.deliver()
    hand.deliver()
    assert messages(hand) == [Release(0, 1)]
    hand.deliver_all()
    assert not hand.timers
    enter(hand, 2)


def test_a_cancel_while_the_lease_is_asked_for_leaks_nothing() -> None:
    hand = system()
    hand.acquire(1)
    hand.deliver()
    hand.deliver()
    hand.cancel(1)
    hand.deliver_all()
    assert not hand.timers
    enter(hand, 2)


def test_the_next_request_uses_the_turn_of_a_cancelled_one() -> None:
    hand = system()
    hand.acquire(1)
    hand.deliver()
    hand.cancel(1)
    hand.acquire(1)
    hand.deliver_all()
    assert hand.inside[1].request == 2


def test_an_offer_that_comes_twice_is_taken_once() -> None:
    hand = system()
    hand.acquire(1)
    hand.deliver()
    hand.duplicate()
    hand.deliver()
    copy = hand.flight.pop(0)
    hand.deliver_all()
    hand.advance(LEASE)
    hand.flight.clear()  # its renewals were lost
    assert hand.lost
    hand.acquire(1)
    hand.flight.insert(0, copy)
    hand.deliver()
    assert messages(hand) == [Request()]  # no question about fence 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_slots_are_given_one_by_one(k: int) -> None:
    hand = system(5, k)
    for me in (1, 2, 3, 4):
        hand.acquire(me)
    hand.deliver_all()
    assert [(permit.slot, permit.fence) for permit in hand.inside.values()] == [(slot, slot + 1) for slot in range(k)]


@pytest.mark.parametrize("rates", [{0: 1_010_000}, {1: 1_010_000}, {2: 1_010_000}, {0: 1_010_000, 2: 1_010_000}])
def test_at_the_bound_of_drift_it_is_still_safe(rates: dict[int, int]) -> None:
    """The worst case is the first: the root's clock runs 1 % faster than that of the client inside."""
    clocks = {me: (me * 1000 * S, rates.get(me, MILLION)) for me in range(3)}
    hand = system(clocks=clocks)
    enter(hand, 1)
    hand.acquire(2)
    hand.deliver_all()
    partition(hand, 1, HOLD + S)  # two inside would have raised
    assert hand.lost == [(1, 1, "lease over")]
    assert 2 in hand.inside


def test_over_a_channel_a_short_loss_costs_only_time() -> None:
    stack = over_channel(Leased)
    hand = LossyNetwork(stack.make, Setup((0, 1, 2)), slots=True)
    hand.acquire(1)
    while 1 not in hand.inside:
        hand.flight.clear()  # all that is said for the first time is lost
        while not hand.flight:
            hand.advance(S // 10)
        for _ in range(len(hand.flight)):
            hand.deliver()
    assert hand.now < LEASE
    assert not hand.lost
