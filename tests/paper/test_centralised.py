"""The centralised gate by hand: one rule of the server a test."""

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.centralised import Centralised, Grant, Release, Request
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(n: int = 4, k: int = 2) -> ManualNetwork:
    return ManualNetwork(Centralised, Setup(tuple(range(n)), k), slots=True)


def test_an_entry_is_request_grant_and_release() -> None:
    hand = gate()
    hand.acquire(1)
    assert hand.flight == [Flight(1, 0, Request(1))]
    hand.deliver()
    assert hand.flight == [Flight(0, 1, Grant(0, 1))]
    hand.deliver()
    hand.release(1)
    assert hand.flight == [Flight(1, 0, Release(0))]


def test_the_root_is_a_client_without_messages() -> None:
    hand = gate()
    hand.acquire(0)
    hand.release(0)
    assert hand.grants == [0]
    assert hand.flight == []


def test_the_queue_is_first_come_first_served() -> None:
    hand = gate(n=5, k=1)
    for me in (3, 0, 4, 1):
        hand.acquire(me)
        hand.deliver_all()
    for me in (3, 0, 4, 1):
        hand.release(me)
        hand.deliver_all()
    assert hand.grants == [3, 0, 4, 1]


def test_k_are_inside_each_in_a_slot_of_its_own() -> None:
    hand = gate(k=2)
    for me in (1, 2, 3):
        hand.acquire(me)
    hand.deliver_all()
    assert {me: permit.slot for me, permit in hand.inside.items()} == {1: 0, 2: 1}
    assert hand.nodes[0].show()["queue"] == (3,)


def test_a_request_may_overtake_the_release_before_it() -> None:
    hand = gate(k=2)
    hand.acquire(1)
    hand.acquire(2)
    hand.deliver_all()
    hand.release(2)
    hand.acquire(2)
    hand.deliver(1)  # the request, before the release of slot 1
    assert hand.nodes[0].show()["queue"] == (2,)
    hand.deliver_all()
    assert (hand.inside[2].slot, hand.inside[2].fence) == (1, 2)


@pytest.mark.parametrize("root", [0, 2])
def test_any_member_can_be_the_server(root: int) -> None:
    hand = ManualNetwork(Centralised, Setup((0, 1, 2), 2, root=root), slots=True)
    assert [node.tokens() for node in hand.nodes.values()] == [2 * (me == root) for me in hand.nodes]
    hand.acquire(1)
    assert hand.flight[0].dst == root


def test_the_slot_of_a_cancelled_turn_of_the_root_goes_to_the_next() -> None:
    hand = gate(k=1)
    for me in (1, 0, 2):
        hand.acquire(me)
        hand.deliver_all()
    hand.cancel(0)
    hand.release(1)
    hand.deliver_all()
    assert hand.grants == [1, 2]


def test_who_came_again_before_the_server_moved_away_changes_no_fence() -> None:
    """A census may make a server a client while somebody is inside there (live/gate.py, recovery/regenerate.py)."""
    hand = ManualNetwork(Centralised, Setup((1, 2), 2), slots=True)
    hand.acquire(2)
    hand.deliver_all()
    client, server = hand.nodes[2], hand.nodes[1]
    assert isinstance(client, Centralised)
    assert isinstance(server, Centralised)
    before = client.key(), server.key()
    client.retaken(3)
    assert (client.key(), server.key()) == before
    hand.acquire(1)
    server.retaken(3)
    assert server.fences == [1, 4]
