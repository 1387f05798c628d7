"""The strawman: SG section III sentence by sentence.

SG is "A Practical Distributed Mutual Exclusion Protocol in Dynamic Peer-to-Peer Systems". Nodes 0, 1 and 2 play the
replicas; nodes 3, 4 and 5 are the clients.
"""

from __future__ import annotations

from fairgate.core.ids import NIL
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.protocols.sigma.votes import Release, Request, Response
from fairgate.scenario.manual import Flight, ManualNetwork
from tests.support.dht_walk import MS
from tests.support.sigma_manual import ask, forget, move, network_of, node, reach, replica, sent


def test_a_client_sends_a_request_to_every_replica() -> None:
    network = network_of(protocol=Strawman)
    network.acquire(3)
    assert sent(network) == ["3>0 request", "3>1 request", "3>2 request"]


def test_a_replica_without_an_owner_grants_a_lease() -> None:
    network = network_of(protocol=Strawman, lease=SECOND, drift=0)
    ask(network, 3, 0)
    assert replica(network, 0)[0] == 3
    network.crash(3)
    network.advance(SECOND)
    assert replica(network, 0)[0] == -1


def test_an_owned_replica_rejects_the_request_and_names_its_owner() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0)
    ask(network, 4, 0)
    assert replica(network, 0) == (3, [])
    assert node(network, 4).resp[0].owner == 3


def test_a_client_with_m_of_n_votes_wins() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0)
    assert not network.inside
    reach(network, 3, 1)
    assert list(network.inside) == [3]


def test_a_losing_client_releases_its_votes_and_retries_after_a_random_time() -> None:
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


def test_a_replica_that_stays_silent_ends_the_round() -> None:
    """Replica 2 is dead and never says no. Without this rule client 4 would keep its vote and wait for the answer."""
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


def test_a_reset_replica_forgets_its_vote_and_votes_again() -> None:
    """2m - n such resets can break mutual exclusion: here one of three replicas is enough."""
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


def refused_and_accepted() -> ManualNetwork:
    """Client 4 asks replica 0 twice, which first refuses and then votes for it. Both answers are in flight."""
    network = network_of(protocol=Strawman, resend=SECOND)
    ask(network, 3, 0, 1)
    network.acquire(4)
    move(network, 4, 0)
    network.release(3)
    move(network, 3, 0, Release)
    network.advance(SECOND)
    move(network, 4, 0)
    return network


def test_a_late_answer_does_not_replace_a_newer_one() -> None:
    network = refused_and_accepted()
    refusal = next(flight for flight in network.flight if isinstance(flight.msg, Response))
    network.flight.remove(refusal)
    move(network, 0, 4)
    network.flight.insert(0, refusal)
    network.deliver()
    assert (node(network, 4).votes, node(network, 4).resp[0].owner) == (1, 4)


def test_a_refusal_no_longer_counts_when_the_replica_votes_for_the_client() -> None:
    network = refused_and_accepted()
    move(network, 0, 4)
    move(network, 0, 4)
    reach(network, 4, 1)  # which still refuses, but a second refusal does not lose the round
    reach(network, 4, 2)
    assert list(network.inside) == [4]


def test_a_client_inside_leaves_at_once_if_a_replica_has_voted_for_another() -> None:
    """It is told when it renews its lease. That of the other vote would still last."""
    network = network_of(protocol=Strawman, lease=3 * SECOND, resend=SECOND)
    ask(network, 3, 0, 1)
    forget(network, 0)
    ask(network, 4, 0)
    network.advance(1200 * MS)
    assert list(network.inside) == [3]
    reach(network, 3, 0)
    assert network.lost == [(3, 1, "votes lost")]


def test_without_leases_a_client_whose_votes_are_lost_releases_the_rest() -> None:
    network = network_of(protocol=Strawman, resend=SECOND)
    network.acquire(3)
    question = network.flight[0]
    reach(network, 3, 0, 1)
    ask(network, 4, 2)
    forget(network, 0)
    network.flight.insert(0, question)
    network.deliver()
    move(network, 0, 3, Response)  # the second answer to one question
    reach(network, 3, 2)
    assert network.lost == [(3, 1, "votes lost")]
    assert {"3>0 release", "3>1 release"} <= set(sent(network))


def test_if_two_incarnations_of_a_replica_answer_one_question_it_is_asked_again() -> None:
    network = network_of(protocol=Strawman, resend=SECOND)
    network.acquire(3)
    question = network.flight[0]
    reach(network, 3, 0)
    client = node(network, 3)
    assert client.votes == 1
    forget(network, 0)
    network.flight.insert(0, question)
    network.deliver()
    move(network, 0, 3, Response)
    assert (client.votes, client.resp[0].owner, client.resp[0].silent) == (0, NIL, True)
    network.flight.clear()
    network.advance(client.timeout())
    reach(network, 3, 0, 1)
    assert list(network.inside) == [3]


def test_a_replica_that_moves_takes_its_vote_and_its_lease_along() -> None:
    network = network_of(protocol=Strawman, lease=3 * SECOND, drift=0)
    network.acquire(4)
    ask(network, 3, 0)
    network.advance(SECOND)
    before, after = node(network, 0), node(network, 1)
    before.now = after.now = network.now
    after.take_replica(0, before.give_replica(0))
    moved = after.replicas[0]
    assert (moved.Cowner, moved.until, before.replicas) == (3, 3 * SECOND, {})
    assert after.life != NIL
    assert after.seq == moved.grant == 1  # the next vote of this node has a higher number
    move(network, 4, 1)
    network.advance(2 * SECOND)
    assert [after.replicas[i].Cowner for i in (0, 1)] == [NIL, 4]


def test_the_leases_of_replicas_at_one_node_end_in_turn() -> None:
    network = network_of(protocol=Strawman, lease=3 * SECOND, drift=0)
    ask(network, 3, 0)
    network.acquire(4)
    question = next(flight.msg for flight in network.flight if (flight.src, flight.dst) == (4, 0))
    fields = list(question.key()[1:])
    for i, pause in ((1, SECOND), (2, 2500 * MS)):  # replicas that node 0 serves as well
        network.advance(pause)
        fields[2] = i
        network.flight = [Flight(4, 0, Request(*fields))]
        network.deliver()
        assert node(network, 0).replicas[0].Cowner == (3 if i == 1 else NIL)
    network.advance(500 * MS)
    assert [node(network, 0).replicas[i].Cowner for i in (0, 1, 2)] == [NIL, NIL, 4]


def test_a_replica_whose_key_belongs_to_another_node_is_forgotten() -> None:
    network = network_of(protocol=Strawman)
    ask(network, 3, 0)
    server = node(network, 0)
    key = server.voters[0]
    server.on_range(key - 1, key)
    assert list(server.replicas) == [0]
    server.on_range(key, key - 1)
    assert not server.replicas
