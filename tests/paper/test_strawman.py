"""SG section III, sentence by sentence: the strawman. The replicas are nodes 0, 1, 2, the clients 3, 4, 5."""

from __future__ import annotations

from fairgate.core.units import SECOND
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.protocols.sigma.votes import Release
from tests.support.sigma_manual import ask, hand_of, node, reach, replica, sent


def test_all_clients_that_want_in_send_requests_to_each_of_the_replicas() -> None:
    hand = hand_of(protocol=Strawman)
    hand.acquire(3)
    assert sent(hand) == ["3>0 request", "3>1 request", "3>2 request"]


def test_a_replica_grants_a_lease_if_it_is_not_owned_by_anyone() -> None:
    hand = hand_of(protocol=Strawman, lease=SECOND, drift=0)
    ask(hand, 3, 0)
    assert replica(hand, 0)[0] == 3
    hand.crash(3)
    hand.advance(SECOND)
    assert replica(hand, 0)[0] == -1


def test_otherwise_it_rejects_the_request_but_informs_of_the_owner() -> None:
    hand = hand_of(protocol=Strawman)
    ask(hand, 3, 0)
    ask(hand, 4, 0)
    assert replica(hand, 0) == (3, [])
    assert node(hand, 4).resp[0].owner == 3


def test_the_one_who_obtains_m_of_n_is_the_winner() -> None:
    hand = hand_of(protocol=Strawman)
    ask(hand, 3, 0)
    assert not hand.inside
    reach(hand, 3, 1)
    assert list(hand.inside) == [3]


def test_losers_release_acquired_votes_back_off_and_retry_after_a_random_period() -> None:
    hand = hand_of(protocol=Strawman)
    ask(hand, 3, 0, 1)
    ask(hand, 4, 2, 0, 1)
    assert ("4>2 release") in sent(hand)
    assert node(hand, 4).ts == -1
    hand.release(3)
    hand.deliver_all()
    hand.advance(SECOND)
    hand.deliver_all()
    assert list(hand.inside) == [4]


def test_deadlock_does_not_occur() -> None:
    hand = hand_of(protocol=Strawman)
    for client in (3, 4, 5):
        hand.acquire(client)
        reach(hand, client, client - 3)
    for _ in range(30):
        hand.deliver_all()
        for client in list(hand.inside):
            hand.release(client)
        hand.advance(SECOND)
    assert sorted(hand.grants) == [3, 4, 5]


def test_a_round_is_lost_to_a_replica_that_stays_silent() -> None:
    """Replica 2 is dead, and said no to nobody: 4 would keep its vote, and ask for no other, until it answers."""
    hand = hand_of(protocol=Strawman, resend=SECOND, backoff=SECOND)
    hand.crash(2)
    ask(hand, 3, 0)
    ask(hand, 4, 0, 1)
    for _ in range(30):
        hand.deliver_all()
        for client in list(hand.inside):
            hand.release(client)
        hand.advance(SECOND)
    assert sorted(hand.grants) == [3, 4]


def test_a_reset_replica_forgets_its_decision_and_is_open_to_new_requests() -> None:
    """2m - n of them break the exclusion: here one of three."""
    hand = hand_of(protocol=Strawman)
    ask(hand, 3, 0)
    node(hand, 0).replicas.clear()
    ask(hand, 4, 0)
    assert replica(hand, 0)[0] == 4


def test_a_release_of_an_earlier_round_frees_nothing() -> None:
    hand = hand_of(protocol=Strawman)
    ask(hand, 3, 0, 1)
    hand.release(3)
    late = [f for f in hand.flight if isinstance(f.msg, Release)]
    hand.flight.clear()
    ask(hand, 3, 0, 1)
    hand.flight += late
    hand.deliver_all()
    assert replica(hand, 0)[0] == 3
