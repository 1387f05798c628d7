"""SG section III, sentence by sentence: the strawman. The replicas are nodes 0, 1, 2, the clients 3, 4, 5."""

from __future__ import annotations

from fairgate.core.units import SECOND
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.protocols.sigma.votes import Release
from tests.support.sigma_manual import ask, network_of, node, reach, replica, sent


def test_all_clients_that_want_in_send_requests_to_each_of_the_replicas() -> None:
    network = network_of(protocol=Strawman)
    network.acquire(3)
    assert sent(network) == ["3>0 request", "3>1 request", "3>2 request"]


def test_a_replica_grants_a_lease_if_it_is_not_owned_by_anyone() -> None:
    network = network_of(protocol=Strawman, lease=SECOND, drift=0)
    ask(network, 3, 0)
    assert replica(network, 0)[0] == 3
    network.crash(3)
    network.advance(SECOND)
    assert replica(network, 0)[0] == -1


def test_otherwise_it_rejects_the_request_but_informs_of_the_owner() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0)
    ask(network, 4, 0)
    assert replica(network, 0) == (3, [])
    assert node(network, 4).resp[0].owner == 3


def test_the_one_who_obtains_m_of_n_is_the_winner() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0)
    assert not network.inside
    reach(network, 3, 1)
    assert list(network.inside) == [3]


def test_losers_release_acquired_votes_back_off_and_retry_after_a_random_period() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0, 1)
    ask(network, 4, 2, 0, 1)
    assert ("4>2 release") in sent(network)
    assert node(network, 4).ts == -1
    network.release(3)
    network.deliver_all()
    network.advance(SECOND)
    network.deliver_all()
    assert list(network.inside) == [4]


def test_deadlock_does_not_occur() -> None:
    network = network_of(protocol=Strawman)
    for client in (3, 4, 5):
        network.acquire(client)
        reach(network, client, client - 3)
    for _ in range(30):
        network.deliver_all()
        for client in list(network.inside):
            network.release(client)
        network.advance(SECOND)
    assert sorted(network.grants) == [3, 4, 5]


def test_a_round_is_lost_to_a_replica_that_stays_silent() -> None:
    """Replica 2 is dead, and said no to nobody: 4 would keep its vote, and ask for no other, until it answers."""
    network = network_of(protocol=Strawman, resend=SECOND, backoff=SECOND)
    network.crash(2)
    ask(network, 3, 0)
    ask(network, 4, 0, 1)
    for _ in range(30):
        network.deliver_all()
        for client in list(network.inside):
            network.release(client)
        network.advance(SECOND)
    assert sorted(network.grants) == [3, 4]


def test_a_reset_replica_forgets_its_decision_and_is_open_to_new_requests() -> None:
    """2m - n of them break the exclusion: here one of three."""
    network = network_of(protocol=Strawman)
    ask(network, 3, 0)
    node(network, 0).replicas.clear()
    ask(network, 4, 0)
    assert replica(network, 0)[0] == 4


def test_a_release_of_an_earlier_round_frees_nothing() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0, 1)
    network.release(3)
    late = [f for f in network.flight if isinstance(f.msg, Release)]
    network.flight.clear()
    ask(network, 3, 0, 1)
    network.flight += late
    network.deliver_all()
    assert replica(network, 0)[0] == 3
