"""SG section IV, sentence by sentence: Sigma. The replicas are nodes 0, 1, 2, the clients 3, 4, 5."""

from __future__ import annotations

import pytest

from fairgate.core.setup import Setup
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.votes import Release, Request, Response, Yield, ballot_of
from fairgate.scenario.manual import ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.support.dht_walk import MS, Spec, make_stack, run
from tests.support.sigma_manual import ask, move, network_of, node, reach, replica, sent


def test_client_starts_by_firing_request_messages_to_all_replicas() -> None:
    network = network_of()
    network.acquire(3)
    assert sent(network) == ["3>0 request", "3>1 request", "3>2 request"]


def test_a_replica_grants_its_vote_outright_or_queues_the_request_up() -> None:
    network = network_of()
    ask(network, 3, 0)
    ask(network, 4, 0)
    assert replica(network, 0) == (3, [4])


def test_regardless_id_and_timestamp_of_the_current_owner_are_returned() -> None:
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


def test_case_2_someone_does_win_and_the_client_does_nothing() -> None:
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


def test_case_3_nobody_has_won_and_the_client_yields_what_it_acquired() -> None:
    """j_same + n - j < m."""
    network = split()
    reach(network, 5, 0)
    assert not [f for f in network.flight if isinstance(f.msg, Yield)]
    reach(network, 5, 1)
    assert [(f.src, f.dst) for f in network.flight if isinstance(f.msg, Yield)] == [(5, 2)]


def test_yield_is_release_and_request_the_replica_chooses_the_earliest_one() -> None:
    network = split()
    reach(network, 3, 2)  # with an earlier timestamp than 5's
    reach(network, 5, 0, 1)
    move(network, 5, 2, Yield)
    assert replica(network, 2) == (3, [5])


def test_it_goes_on_until_a_winner_is_settled() -> None:
    network = split()
    for _ in range(3):
        network.deliver_all()
        for client in list(network.inside):
            network.release(client)
    network.deliver_all()
    assert sorted(network.grants) == [3, 4, 5]
    assert all(replica(network, i) == (-1, []) for i in range(3))


def test_the_owner_relinquishes_and_the_next_client_is_notified() -> None:
    network = network_of()
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    network.release(3)
    move(network, 3, 0, Release)
    assert replica(network, 0) == (4, [])
    assert "0>4 response" in sent(network)


def test_who_is_not_the_owner_is_removed_from_the_queue() -> None:
    network = network_of()
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    node(network, 4).release_votes()
    network.nodes[4].finish_step()
    network.step(4, "on_start")
    move(network, 4, 0, Release)
    assert replica(network, 0) == (3, [])


def test_when_the_lease_expires_the_replica_grants_to_the_next() -> None:
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


def test_a_renewal_that_got_lost_is_said_again_before_the_lease_is_over() -> None:
    """However long other questions may wait for their answers."""
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


def test_a_vote_that_is_nearly_over_is_renewed_before_it_counts() -> None:
    """A lease is counted from asking, and who has been long in the queues would lose its permit before the answer."""
    network = network_of(lease=3 * SECOND)
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    network.advance(2900 * MS)
    network.flight.clear()
    network.release(3)
    network.deliver_all()
    assert not network.inside
    network.advance(200 * MS)  # on their way
    network.deliver_all()
    assert list(network.inside) == [4]
    assert not [me for me, _, _ in network.lost if me == 4]


def test_a_permit_is_lost_before_the_votes_are_given_away() -> None:
    network = network_of(lease=3 * SECOND)
    ask(network, 3, 0, 1)
    ask(network, 4, 0)
    network.advance(3 * SECOND)  # and nothing is delivered
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
    network.nodes[0].finish_step()
    network.step(0, "on_start")
    waits = [f.msg.wait for f in network.flight if isinstance(f.msg, Response) and f.dst == 5]
    assert waits[-1] == 400 * MS * 3 // 2


def test_a_restarted_replica_gets_its_queue_back_by_retries_in_a_similar_order() -> None:
    network = network_of(retry=100, resend=SECOND)
    ask(network, 3, 0, 1, 2)
    for client in (4, 5):
        ask(network, client, 0, 1, 2)
    node(network, 0).replicas.clear()
    network.advance(5 * SECOND)
    while network.flight:
        network.deliver(0)
    assert replica(network, 0) == (4, [5])


def test_k_winners() -> None:
    """m with n // m = k, and no other."""
    network = network_of(replicas=5, k=2, quorum=2)
    for client in (5, 6):
        ask(network, client)
    network.deliver_all()
    assert sorted(network.inside) == [5, 6]
    assert [node(network, client).votes for client in (5, 6)] == [2, 2]  # what is more is given back
    with pytest.raises(ValueError, match="3 of 5 votes let 1 in"):
        ballot_of(Setup((0, 1), 2, options={"replicas": 5, "quorum": 3}))


def test_a_vote_whose_lease_is_over_is_no_reason_to_give_back_one_that_lasts() -> None:
    """k = 2, m = 2 of 5: behind a partition a winner had one vote that was over, and two that were not.

    It gave back one of the two as too many, and a third one came in by it.
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


def test_nor_is_one_whose_lease_is_about_to_be_over() -> None:
    """It came in by three votes, gave back one that would last, and kept one that was over 20 ms later."""
    result = simulate(
        Config(
            protocol="sigma",
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
                "voting": "zones",
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


def test_section_vii_each_member_votes_with_its_share_of_the_space() -> None:
    ballot = ballot_of(Setup(tuple(range(10)), options={"voting": "zones", "replicas": 4, "quorum": 3}))
    assert len(ballot.keys) == 10
    assert abs(ballot.whole - 2**40) < 20
    assert ballot.needed == -(-ballot.whole * 3 // 4)
    outcome = run(make_stack("sigma"), Spec(nodes=10, options={"voting": "zones"}), seed=1)
    assert (outcome.broken, outcome.entries) == ("", 20)


def test_later_messages_are_sent_straight_to_the_node_that_answered() -> None:
    network = network_of()
    ask(network, 3, 0)
    assert node(network, 3).resp[0].node == 0
    assert node(network, 3).resp[1].node == -1


# What the paper leaves out.


def test_a_late_response_is_no_vote_after_it_was_yielded() -> None:
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


def test_an_owner_hears_that_an_earlier_request_waits() -> None:
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


def test_if_that_replica_is_silent_the_next_one_is_asked() -> None:
    network = network_of(prime=True, retry=100, resend=SECOND)
    network.crash(0)
    network.acquire(3)
    assert sent(network) == ["3>0 request"]
    for _ in range(3):
        network.deliver_all()
        network.advance(SECOND)
    assert list(network.inside) == [3]


def test_who_comes_to_its_turn_asks_again_where_an_owner_before_it_was() -> None:
    """Replica 2 forgets both; 4, whose turn comes at replica 0, asks it long before Tw is over."""
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
    network.advance(1_000)
    assert "4>2 request" in sent(network)
