"""Sigma: SG section IV sentence by sentence, then what the paper leaves out.

SG is "A Practical Distributed Mutual Exclusion Protocol in Dynamic Peer-to-Peer Systems". Nodes 0, 1 and 2 play the
replicas; nodes 3, 4 and 5 are the clients.
"""

from __future__ import annotations

import pytest

from fairgate.core.layers import Layer
from fairgate.core.setup import Setup
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.votes import Release, Request, Response, Yield, ballot_of
from fairgate.scenario.manual import ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.support.dht_walk import MS
from tests.support.sigma_manual import ask, move, network_of, node, reach, replica, sent


def finish_step(network: ManualNetwork, me: int) -> None:
    """Carry out the effects of methods that were called directly on the protocol's node."""
    layer = network.nodes[me]
    assert isinstance(layer, Layer)
    layer.finish_step()
    network.step(me, "on_start")


def test_a_client_starts_by_sending_a_request_to_every_replica() -> None:
    network = network_of()
    network.acquire(3)
    assert sent(network) == ["3>0 request", "3>1 request", "3>2 request"]


def test_a_replica_grants_its_vote_at_once_or_queues_the_request() -> None:
    network = network_of()
    ask(network, 3, 0)
    ask(network, 4, 0)
    assert replica(network, 0) == (3, [4])


def test_either_way_the_response_carries_the_owners_id_and_timestamp() -> None:
    network = network_of()
    ask(network, 3, 0)
    ask(network, 4, 0)
    r = node(network, 4).resp[0]
    assert (r.owner, r.owner_ts) == (3, 1)


def test_case_1_the_client_is_the_winner_by_quorum_consensus() -> None:
    network = network_of()
    ask(network, 3, 0)
    assert not network.inside
    reach(network, 3, 1)
    assert list(network.inside) == [3]


def test_case_2_another_client_has_won_and_this_one_does_nothing() -> None:
    network = network_of()
    ask(network, 3, 0, 1)
    ask(network, 4, 0, 1, 2)
    assert not [f for f in network.flight if f.src == 4]


def split() -> ManualNetwork:
    """Clients 3, 4 and 5 have one vote each."""
    network = network_of()
    for client in (3, 4, 5):
        network.acquire(client)
        reach(network, client, client - 3)
    return network


def test_case_3_nobody_can_win_and_the_client_yields_the_votes_it_has() -> None:
    """The paper's condition is j_same + n - j < m."""
    network = split()
    reach(network, 5, 0)
    assert not [f for f in network.flight if isinstance(f.msg, Yield)]
    reach(network, 5, 1)
    assert [(f.src, f.dst) for f in network.flight if isinstance(f.msg, Yield)] == [(5, 2)]


def test_a_yield_is_release_plus_request_and_the_replica_votes_for_the_earliest() -> None:
    network = split()
    reach(network, 3, 2)  # node 3's timestamp is earlier than node 5's
    reach(network, 5, 0, 1)
    move(network, 5, 2, Yield)
    assert replica(network, 2) == (3, [5])


def test_clients_keep_yielding_until_there_is_a_winner() -> None:
    network = split()
    for _ in range(3):
        network.deliver_all()
        for client in list(network.inside):
            network.release(client)
    network.deliver_all()
    assert sorted(network.grants) == [3, 4, 5]
    assert all(replica(network, i) == (-1, []) for i in range(3))


def test_when_the_owner_releases_the_next_client_is_notified() -> None:
    network = network_of()
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    network.release(3)
    move(network, 3, 0, Release)
    assert replica(network, 0) == (4, [])
    assert "0>4 response" in sent(network)


def test_a_release_removes_a_client_that_is_not_the_owner_from_the_queue() -> None:
    network = network_of()
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    node(network, 4).release_votes()
    finish_step(network, 4)
    move(network, 4, 0, Release)
    assert replica(network, 0) == (3, [])


def test_when_the_lease_expires_the_replica_votes_for_the_next_client() -> None:
    network = network_of(lease=3 * SECOND, drift=0)
    ask(network, 3, 0)
    ask(network, 4, 0)
    network.crash(3)
    network.advance(4 * SECOND)
    assert replica(network, 0) == (4, [])


def test_the_lease_is_renewable() -> None:
    network = network_of(lease=3 * SECOND)
    ask(network, 3, 0, 1)
    for _ in range(20):
        network.advance(SECOND // 2)
        network.deliver_all()
    assert list(network.inside) == [3]
    assert not network.lost


def test_a_lost_renewal_is_sent_again_before_the_lease_expires() -> None:
    """However long `resend` is, which sets when other unanswered questions are sent again."""
    network = network_of(lease=3 * SECOND, retry=100, resend=60 * SECOND)
    ask(network, 3, 0, 1)
    network.advance(SECOND)
    assert sent(network)[-2:] == ["3>0 request", "3>1 request"]
    network.flight.clear()
    for _ in range(10):
        network.advance(SECOND)
        network.deliver_all()
    assert list(network.inside) == [3]
    assert not network.lost


def test_a_vote_that_is_about_to_expire_is_renewed_before_it_counts() -> None:
    """Leases count from before the answer was sent, so votes that were in flight for long are close to expiry."""
    network = network_of(lease=3 * SECOND)
    network.acquire(3)
    for i in range(3):
        move(network, 3, i)
    network.advance(2900 * MS)
    network.deliver_all()
    assert network.marks == {"votes that must be renewed before they count"}
    assert not network.inside
    network.advance(0)
    network.deliver_all()
    assert list(network.inside) == [3]
    network.advance(200 * MS)  # the first leases end
    assert not network.lost


def test_a_permit_is_lost_before_the_votes_are_given_away() -> None:
    network = network_of(lease=3 * SECOND)
    ask(network, 3, 0, 1)
    ask(network, 4, 0)
    network.advance(3 * SECOND)  # nothing is delivered meanwhile
    assert [(me, why) for me, _, why in network.lost] == [(3, "lease over")]
    assert replica(network, 0) == (3, [4])


def test_informed_backoff_tw_is_tcs_times_position_and_a_half() -> None:
    network = network_of(retry=100, resend=SECOND)
    network.acquire(3)
    move(network, 3, 0, Request)
    for client in (4, 5):
        network.acquire(client)
        move(network, client, 0, Request)
    rep = node(network, 0).replicas[0]
    rep.Tcs = 400 * MS
    node(network, 0).tell_waiter(rep, rep.Queue[1])
    finish_step(network, 0)
    waits = [f.msg.wait for f in network.flight if isinstance(f.msg, Response) and f.dst == 5]
    assert waits[-1] == 400 * MS * 3 // 2


def test_retries_rebuild_the_queue_of_a_restarted_replica_in_a_similar_order() -> None:
    network = network_of(retry=100, resend=SECOND)
    ask(network, 3, 0, 1, 2)
    for client in (4, 5):
        ask(network, client, 0, 1, 2)
    node(network, 0).replicas.clear()
    network.advance(5 * SECOND)
    while network.flight:
        network.deliver(0)
    assert replica(network, 0) == (4, [5])


def test_with_a_smaller_quorum_there_are_k_winners() -> None:
    """The quorum m must satisfy n // m = k; any other m is an error."""
    network = network_of(replicas=5, k=2, quorum=2)
    for client in (5, 6):
        ask(network, client)
    network.deliver_all()
    assert sorted(network.inside) == [5, 6]
    assert [node(network, client).votes for client in (5, 6)] == [2, 2]  # surplus votes are given back
    with pytest.raises(ValueError, match="3 of 5 votes let 1 in"):
        ballot_of(Setup((0, 1), 2, options={"replicas": 5, "quorum": 3}))


def test_an_expired_vote_is_no_reason_to_give_back_a_valid_one() -> None:
    """A run with k = 2 and m = 2 of 5 that let three in. Behind a partition, a winner had one expired vote and two
    valid ones. It gave back a valid vote as surplus, and a third client entered with it.
    """
    result = simulate(
        Config(
            protocol="sigma",
            nodes=8,
            k=2,
            rate=0.1,
            cs=5.0,
            exponential_cs=True,
            give_up=0.3,
            give_up_after=5.0,
            requests=4,
            latency="uniform:0,0.5",
            stack=("settled_pastry",),
            options={"replicas": 5, "responses": "routed", "lease": 16_501 * MS, "resend": 82_505 * MS},
            faults="partition:0-1/2-7@27.009+30",
            seed=501_365,
        )
    )
    assert result.max_inside == 2
    assert not [broken for broken in result.broken if not broken.startswith("liveness")]


def test_a_vote_about_to_expire_is_no_reason_to_give_back_a_lasting_one() -> None:
    """A run in which a client with three votes gave back a lasting one, and kept one that expired 20 ms later."""
    result = simulate(
        Config(
            protocol="sigma_zones",
            nodes=7,
            k=2,
            rate=100.0,
            cs=5.0,
            requests=2,
            askers=2,
            latency="0.3",
            stack=("settled_chord",),
            options={
                "replicas": 5,
                "lease": 19_801 * MS,
                "resend": 99_005 * MS,
                "retry": 10,
                "prime": False,
            },
            seed=731_036,
        )
    )
    assert not result.broken
    assert result.lost == 0


def test_a_client_remembers_the_node_that_answered_for_a_replica() -> None:
    network = network_of()
    ask(network, 3, 0)
    assert node(network, 3).resp[0].node == 0
    assert node(network, 3).resp[1].node == -1


# What the paper leaves out (papers/sigma.md lists the corrections).


def test_a_late_response_does_not_restore_a_yielded_vote() -> None:
    network = network_of()
    for client in (3, 4):
        network.acquire(client)
        reach(network, client, client - 3)
    network.acquire(5)
    move(network, 5, 2)
    network.duplicate(len(network.flight) - 1)
    move(network, 2, 5, Response)
    reach(network, 5, 0, 1)
    assert node(network, 5).resp[2].yielded
    move(network, 2, 5, Response)  # the vote again
    assert node(network, 5).mine == 0


def test_a_replica_that_has_not_heard_of_a_yield_does_not_restore_the_vote() -> None:
    network = network_of()
    for client in (3, 4):
        network.acquire(client)
        reach(network, client, client - 3)
    network.acquire(5)
    network.duplicate(next(at for at, f in enumerate(network.flight) if (f.src, f.dst) == (5, 2)))
    reach(network, 5, 2, 0, 1)
    assert node(network, 5).resp[2].yielded
    move(network, 5, 2, Request)  # before the YIELD, so the replica repeats its vote
    move(network, 2, 5, Response)
    assert node(network, 5).mine == 0
    assert "a replica has not heard of a yield" in network.marks


def test_a_request_that_overtakes_the_release_before_it_gets_a_new_vote() -> None:
    network = network_of()
    ask(network, 3, 0, 1)
    first = node(network, 0).replicas[0].grant
    network.release(3)
    network.acquire(3)
    late = next(at for at, f in enumerate(network.flight) if f.dst == 0 and isinstance(f.msg, Release))
    network.flight.append(network.flight.pop(late))
    move(network, 3, 0, Request)
    assert node(network, 0).replicas[0].grant > first
    move(network, 3, 0, Release)  # of the request before
    assert replica(network, 0)[0] == 3


def test_a_vote_for_a_request_that_is_over_is_released() -> None:
    network = network_of()
    ask(network, 3, 0, 1)
    late = next(f for f in network.flight if f.dst == 2)
    network.flight.remove(late)
    network.release(3)
    network.deliver_all()
    network.flight.append(late)
    network.deliver_all()
    assert replica(network, 2) == (-1, [])
    assert "a vote for a request that is over" in network.marks


def test_an_owner_is_told_that_an_earlier_request_waits() -> None:
    network = network_of()
    network.acquire(3)
    ask(network, 4, 0)
    move(network, 3, 0, Request)
    assert [f.msg.wanted for f in network.flight if f.dst == 4 and isinstance(f.msg, Response)] == [True]


def test_a_fresh_client_asks_one_replica_for_the_time_first() -> None:
    network = network_of(prime=True)
    network.acquire(3)
    assert len(network.flight) == 1
    network.deliver_all()
    assert list(network.inside) == [3]
    for _ in range(3):
        network.release(3)
        network.acquire(3)
        network.deliver_all()
    network.acquire(4)
    network.deliver_all()
    assert node(network, 4).ts > node(network, 3).ts


def test_if_the_first_replica_is_silent_a_fresh_client_asks_the_next_one() -> None:
    network = network_of(prime=True, retry=100, resend=SECOND)
    network.crash(0)
    network.acquire(3)
    assert sent(network) == ["3>0 request"]
    for _ in range(3):
        network.deliver_all()
        network.advance(SECOND)
    assert list(network.inside) == [3]


def test_a_promoted_client_asks_the_replicas_of_earlier_owners_again() -> None:
    """Replica 2 loses its memory. Client 4, promoted at replica 0, asks replica 2 again long before Tw has passed."""
    network = network_of(retry=100, resend=1_000)
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    assert list(network.inside) == [3]
    node(network, 2).replicas.clear()
    node(network, 4).resp[2].due = 1_000_000  # Tw, by what replica 2 said before
    network.release(3)
    move(network, 3, 0)
    network.flight = [flight for flight in network.flight if flight.dst == 4]  # nothing else arrives
    move(network, 0, 4, Response)
    network.advance(2_000)
    assert "4>2 request" in sent(network)
