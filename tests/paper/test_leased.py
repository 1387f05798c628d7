"""The lock service with leases: one test per rule. Node 0 is the root, and k is 1 unless a test says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.clock import Clock
from fairgate.core.setup import Setup
from fairgate.protocols.leased import Gone, Grant, Leased, Release, Renew, Renewed, Request
from fairgate.walks.lossy import LossyNetwork
from fairgate.walks.stacks import over_channel

S = 1_000_000_000
LEASE = 10 * S
HOLD = LEASE * 101 // 100  # how long the root reserves a slot, with the default drift of 1 %
TICK = S // 1000


def system(n: int = 3, k: int = 1, **named: Any) -> LossyNetwork:
    return LossyNetwork(Leased, Setup(tuple(range(n)), k), slots=True, **named)


def messages(network: LossyNetwork) -> list[Any]:
    return [flight.msg for flight in network.flight]


def enter(network: LossyNetwork, me: int) -> None:
    network.acquire(me)
    network.deliver_all()
    assert me in network.inside


def to_or_from(network: LossyNetwork, me: int) -> list[int]:
    """Indexes of the messages in flight to or from node me, last first."""
    return [index for index, flight in reversed(list(enumerate(network.flight))) if me in (flight.src, flight.dst)]


def partition(network: LossyNetwork, me: int, delay: int) -> None:
    """Let time pass, and lose every message to or from node me. All others are delivered at once."""
    end = network.now + delay
    while network.now < end:
        for index in to_or_from(network, me):
            network.drop(index)
        network.deliver_all()
        network.advance(min(10 * TICK, end - network.now))


def test_a_client_enters_after_request_grant_renew_and_renewed() -> None:
    network = system()
    network.acquire(1)
    seen = []
    while network.flight:
        seen += messages(network)
        assert 1 not in network.inside
        network.deliver()
    assert seen == [Request(), Grant(0, 1), Renew(0, 1, 1), Renewed(0, 1, 1)]
    assert network.inside[1].fence == 1


def test_the_root_enters_without_messages_and_without_a_lease() -> None:
    network = system()
    network.acquire(0)
    assert network.inside[0].slot == 0
    assert not network.flight
    assert not network.timers
    network.release(0)
    enter(network, 1)


def test_first_come_first_served() -> None:
    network = system(4)
    enter(network, 2)
    for me in (3, 0, 1):
        network.acquire(me)
        network.deliver_all()
    for me in (2, 3, 0, 1):
        network.release(me)
        network.deliver_all()
    assert network.grants == [2, 3, 0, 1]


def test_a_client_renews_every_third_of_its_lease_and_stays_inside() -> None:
    network = system()
    enter(network, 1)
    for n in range(2, 12):
        network.advance(LEASE // 3 + TICK)
        assert messages(network) == [Renew(0, 1, n)]
        network.deliver_all()
    assert 1 in network.inside
    assert not network.lost


def test_a_lease_counts_from_the_question_not_from_the_answer() -> None:
    network = system()
    network.acquire(1)
    network.deliver()  # Request
    network.deliver()  # Grant: node 1 asks for its lease now
    network.advance(9 * S)
    network.deliver_all()
    assert 1 in network.inside
    network.advance(S - 1)
    assert 1 in network.inside
    network.advance(1)
    assert network.lost == [(1, 1, "lease over")]


def test_an_answer_that_arrives_after_the_lease_grants_no_entry() -> None:
    network = system()
    network.acquire(1)
    network.deliver()
    network.deliver()
    network.deliver()  # Renew
    network.advance(LEASE)
    network.deliver()  # Renewed
    assert 1 not in network.inside
    network.deliver_all()  # it has asked again, and this time the answer arrives in time
    assert 1 in network.inside


def test_in_a_partition_the_client_loses_its_permit_before_the_next_one_enters() -> None:
    network = system()
    enter(network, 1)
    network.acquire(2)
    network.deliver_all()
    partition(network, 1, LEASE)
    assert network.lost == [(1, 1, "lease over")]
    assert 2 not in network.inside
    partition(network, 1, HOLD - LEASE + S // 5)
    assert 2 in network.inside


def test_after_the_partition_the_loser_can_ask_again() -> None:
    network = system()
    enter(network, 1)
    partition(network, 1, LEASE)
    network.acquire(1)
    network.deliver_all()
    assert 1 not in network.inside  # the root's own timer is still running
    network.advance(HOLD)
    network.deliver_all()
    assert network.inside[1].fence == 2


def test_the_slot_of_a_crashed_client_goes_to_the_next_one() -> None:
    network = system()
    enter(network, 1)
    network.crash(1)
    network.acquire(2)
    network.deliver_all()
    network.advance(HOLD - TICK)
    assert 2 in network.waiting
    network.advance(2 * TICK)
    network.deliver_all()
    assert 2 in network.inside


def test_a_renewal_with_an_old_fence_is_answered_gone_and_the_client_asks_again() -> None:
    network = system()
    network.acquire(1)
    network.deliver()
    network.advance(HOLD + TICK)  # the offer is still in flight when the root takes the slot back
    network.deliver()
    network.deliver()
    assert messages(network) == [Gone(0, 1)]
    network.deliver()
    assert messages(network) == [Request()]
    network.deliver_all()
    assert network.inside[1].fence == 2


def test_an_offer_for_a_cancelled_request_is_returned_at_once() -> None:
    network = system()
    network.acquire(1)
    network.cancel(1)
    network.deliver()
    network.deliver()
    assert messages(network) == [Release(0, 1)]
    network.deliver_all()
    assert not network.timers
    enter(network, 2)


def test_a_cancel_before_the_lease_is_confirmed_leaks_nothing() -> None:
    network = system()
    network.acquire(1)
    network.deliver()
    network.deliver()
    network.cancel(1)
    network.deliver_all()
    assert not network.timers
    enter(network, 2)


def test_the_next_request_uses_the_turn_of_a_cancelled_one() -> None:
    network = system()
    network.acquire(1)
    network.deliver()
    network.cancel(1)
    network.acquire(1)
    network.deliver_all()
    assert network.inside[1].request == 2


def test_a_duplicated_offer_is_used_once() -> None:
    network = system()
    network.acquire(1)
    network.deliver()
    network.duplicate()
    network.deliver()
    copy = network.flight.pop(0)
    network.deliver_all()
    network.advance(LEASE)
    network.flight.clear()  # its renewals are lost
    assert network.lost
    network.acquire(1)
    network.flight.insert(0, copy)
    network.deliver()
    assert messages(network) == [Request()]  # no Renew for fence 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_k_clients_get_k_different_slots(k: int) -> None:
    network = system(5, k)
    for me in (1, 2, 3, 4):
        network.acquire(me)
    network.deliver_all()
    assert [(permit.slot, permit.fence) for permit in network.inside.values()] == [
        (slot, slot + 1) for slot in range(k)
    ]


@pytest.mark.parametrize("fast", [{0}, {1}, {2}, {0, 2}])
def test_clocks_at_the_drift_bound_never_let_two_in(fast: set[int]) -> None:
    """The worst case is the first: the root's clock runs 1 % faster than that of the client inside."""
    clocks = {me: Clock(me * 1000 * S, 10_000 if me in fast else 0) for me in range(3)}
    network = system(clocks=clocks)
    enter(network, 1)
    network.acquire(2)
    network.deliver_all()
    partition(network, 1, HOLD + S)  # raises if two are ever inside
    assert network.lost == [(1, 1, "lease over")]
    assert 2 in network.inside


def test_over_a_channel_a_short_loss_costs_only_time() -> None:
    stack = over_channel(Leased)
    network = LossyNetwork(stack.make, Setup((0, 1, 2)), slots=True)
    network.acquire(1)
    while 1 not in network.inside:
        network.flight.clear()  # the first transmission of every message is lost
        while not network.flight:
            network.advance(S // 10)
        for _ in range(len(network.flight)):
            network.deliver()
    assert network.now < LEASE
    assert not network.lost
