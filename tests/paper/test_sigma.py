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
from tests.support.sigma_manual import ask, hand_of, move, node, reach, replica, sent


def test_client_starts_by_firing_request_messages_to_all_replicas() -> None:
    hand = hand_of()
    hand.acquire(3)
    assert sent(hand) == ["3>0 request", "3>1 request", "3>2 request"]


def test_a_replica_grants_its_vote_outright_or_queues_the_request_up() -> None:
    hand = hand_of()
    ask(hand, 3, 0)
    ask(hand, 4, 0)
    assert replica(hand, 0) == (3, [4])


def test_regardless_id_and_timestamp_of_the_current_owner_are_returned() -> None:
    hand = hand_of()
    ask(hand, 3, 0)
    ask(hand, 4, 0)
    r = node(hand, 4).resp[0]
    assert (r.owner, r.owner_ts) == (3, 1)


def test_case_1_the_client_is_the_winner_by_quorum_consensus() -> None:
    hand = hand_of()
    ask(hand, 3, 0)
    assert not hand.inside
    reach(hand, 3, 1)
    assert list(hand.inside) == [3]


def test_case_2_someone_does_win_and_the_client_does_nothing() -> None:
    hand = hand_of()
    ask(hand, 3, 0, 1)
    ask(hand, 4, 0, 1, 2)
    assert not [f for f in hand.flight if f.src == 4]


def split() -> ManualNetwork:
    """Clients 3, 4 and 5 have one vote each."""
    hand = hand_of()
    for client in (3, 4, 5):
        hand.acquire(client)
        reach(hand, client, client - 3)
    return hand


def test_case_3_nobody_has_won_and_the_client_yields_what_it_acquired() -> None:
    """j_same + n - j < m."""
    hand = split()
    reach(hand, 5, 0)
    assert not [f for f in hand.flight if isinstance(f.msg, Yield)]
    reach(hand, 5, 1)
    assert [(f.src, f.dst) for f in hand.flight if isinstance(f.msg, Yield)] == [(5, 2)]


def test_yield_is_release_and_request_the_replica_chooses_the_earliest_one() -> None:
    hand = split()
    reach(hand, 3, 2)  # with an earlier timestamp than 5's
    reach(hand, 5, 0, 1)
    move(hand, 5, 2, Yield)
    assert replica(hand, 2) == (3, [5])


def test_it_goes_on_until_a_winner_is_settled() -> None:
    hand = split()
    for _ in range(3):
        hand.deliver_all()
        for client in list(hand.inside):
            hand.release(client)
    hand.deliver_all()
    assert sorted(hand.grants) == [3, 4, 5]
    assert all(replica(hand, i) == (-1, []) for i in range(3))


def test_the_owner_relinquishes_and_the_next_client_is_notified() -> None:
    hand = hand_of()
    ask(hand, 3, 0, 1, 2)
    ask(hand, 4, 0, 1, 2)
    hand.release(3)
    move(hand, 3, 0, Release)
    assert replica(hand, 0) == (4, [])
    assert "0>4 response" in sent(hand)


def test_who_is_not_the_owner_is_removed_from_the_queue() -> None:
    hand = hand_of()
    ask(hand, 3, 0, 1, 2)
    ask(hand, 4, 0, 1, 2)
    node(hand, 4).release_votes()
    hand.nodes[4].settle()
    hand.step(4, "on_start")
    move(hand, 4, 0, Release)
    assert replica(hand, 0) == (3, [])


def test_when_the_lease_expires_the_replica_grants_to_the_next() -> None:
    hand = hand_of(lease=3 * SECOND, drift=0)
    ask(hand, 3, 0)
    ask(hand, 4, 0)
    hand.crash(3)
    hand.advance(4 * SECOND)
    assert replica(hand, 0) == (4, [])


def test_the_lease_is_renewable() -> None:
    hand = hand_of(lease=3 * SECOND)
    ask(hand, 3, 0, 1)
    for _ in range(20):
        hand.advance(SECOND // 2)
        hand.deliver_all()
    assert list(hand.inside) == [3]
    assert not hand.lost


def test_a_renewal_that_got_lost_is_said_again_before_the_lease_is_over() -> None:
    """However long other questions may wait for their answers."""
    hand = hand_of(lease=3 * SECOND, retry=100, resend=60 * SECOND)
    ask(hand, 3, 0, 1)
    hand.advance(SECOND)
    assert sent(hand)[-2:] == ["3>0 request", "3>1 request"]
    hand.flight.clear()
    for _ in range(10):
        hand.advance(SECOND)
        hand.deliver_all()
    assert list(hand.inside) == [3]
    assert not hand.lost


def test_a_vote_that_is_nearly_over_is_renewed_before_it_counts() -> None:
    """A lease is counted from asking, and who has been long in the queues would lose its permit before the answer."""
    hand = hand_of(lease=3 * SECOND)
    ask(hand, 3, 0, 1, 2)
    ask(hand, 4, 0, 1, 2)
    hand.advance(2900 * MS)
    hand.flight.clear()
    hand.release(3)
    hand.deliver_all()
    assert not hand.inside
    hand.advance(200 * MS)  # on their way
    hand.deliver_all()
    assert list(hand.inside) == [4]
    assert not [me for me, _, _ in hand.lost if me == 4]


def test_a_permit_is_lost_before_the_votes_are_given_away() -> None:
    hand = hand_of(lease=3 * SECOND)
    ask(hand, 3, 0, 1)
    ask(hand, 4, 0)
    hand.advance(3 * SECOND)  # and nothing is delivered
    assert [(me, why) for me, _, why in hand.lost] == [(3, "lease over")]
    assert replica(hand, 0) == (3, [4])


def test_informed_backoff_tw_is_tcs_times_position_and_a_half() -> None:
    hand = hand_of(retry=100, resend=SECOND)
    hand.acquire(3)
    move(hand, 3, 0, Request)
    for client in (4, 5):
        hand.acquire(client)
        move(hand, client, 0, Request)
    rep = node(hand, 0).replicas[0]
    rep.Tcs = 400 * MS
    node(hand, 0).tell_waiter(rep, rep.Queue[1])
    hand.nodes[0].settle()
    hand.step(0, "on_start")
    waits = [f.msg.wait for f in hand.flight if isinstance(f.msg, Response) and f.dst == 5]
    assert waits[-1] == 400 * MS * 3 // 2


def test_a_restarted_replica_gets_its_queue_back_by_retries_in_a_similar_order() -> None:
    hand = hand_of(retry=100, resend=SECOND)
    ask(hand, 3, 0, 1, 2)
    for client in (4, 5):
        ask(hand, client, 0, 1, 2)
    node(hand, 0).replicas.clear()
    hand.advance(5 * SECOND)
    while hand.flight:
        hand.deliver(0)
    assert replica(hand, 0) == (4, [5])


def test_k_winners() -> None:
    """m with n // m = k, and no other."""
    hand = hand_of(replicas=5, k=2, quorum=2)
    for client in (5, 6):
        ask(hand, client)
    hand.deliver_all()
    assert sorted(hand.inside) == [5, 6]
    assert [node(hand, client).votes for client in (5, 6)] == [2, 2]  # what is more is given back
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
    hand = hand_of()
    ask(hand, 3, 0)
    assert node(hand, 3).resp[0].node == 0
    assert node(hand, 3).resp[1].node == -1


# What the paper leaves out.


def test_a_late_response_is_no_vote_after_it_was_yielded() -> None:
    hand = hand_of()
    for client in (3, 4):
        hand.acquire(client)
        reach(hand, client, client - 3)
    hand.acquire(5)
    move(hand, 5, 2)
    hand.duplicate(len(hand.flight) - 1)
    move(hand, 2, 5, Response)
    reach(hand, 5, 0, 1)
    assert node(hand, 5).resp[2].yielded
    move(hand, 2, 5, Response)  # the vote again
    assert node(hand, 5).mine == 0


def test_a_request_that_overtakes_the_release_before_it_gets_a_new_vote() -> None:
    hand = hand_of()
    ask(hand, 3, 0, 1)
    first = node(hand, 0).replicas[0].grant
    hand.release(3)
    hand.acquire(3)
    late = next(at for at, f in enumerate(hand.flight) if f.dst == 0 and isinstance(f.msg, Release))
    hand.flight.append(hand.flight.pop(late))
    move(hand, 3, 0, Request)
    assert node(hand, 0).replicas[0].grant > first
    move(hand, 3, 0, Release)  # of the request before
    assert replica(hand, 0)[0] == 3


def test_a_vote_for_a_request_that_is_over_is_released() -> None:
    hand = hand_of()
    ask(hand, 3, 0, 1)
    late = next(f for f in hand.flight if f.dst == 2)
    hand.flight.remove(late)
    hand.release(3)
    hand.deliver_all()
    hand.flight.append(late)
    hand.deliver_all()
    assert replica(hand, 2) == (-1, [])
    assert "a vote for a request that is over" in hand.marks


def test_an_owner_hears_that_an_earlier_request_waits() -> None:
    hand = hand_of()
    hand.acquire(3)
    ask(hand, 4, 0)
    move(hand, 3, 0, Request)
    assert [f.msg.wanted for f in hand.flight if f.dst == 4 and isinstance(f.msg, Response)] == [True]


def test_a_fresh_client_asks_one_replica_for_the_time_first() -> None:
    hand = hand_of(prime=True)
    hand.acquire(3)
    assert len(hand.flight) == 1
    hand.deliver_all()
    assert list(hand.inside) == [3]
    for _ in range(3):
        hand.release(3)
        hand.acquire(3)
        hand.deliver_all()
    hand.acquire(4)
    hand.deliver_all()
    assert node(hand, 4).ts > node(hand, 3).ts


def test_if_that_replica_is_silent_the_next_one_is_asked() -> None:
    hand = hand_of(prime=True, retry=100, resend=SECOND)
    hand.crash(0)
    hand.acquire(3)
    assert sent(hand) == ["3>0 request"]
    for _ in range(3):
        hand.deliver_all()
        hand.advance(SECOND)
    assert list(hand.inside) == [3]


def test_who_comes_to_its_turn_asks_again_where_an_owner_before_it_was() -> None:
    """Replica 2 forgets both; 4, whose turn comes at replica 0, asks it long before Tw is over."""
    hand = hand_of(retry=100, resend=1_000)
    ask(hand, 3, 0, 1, 2)
    ask(hand, 4, 0, 1, 2)
    assert list(hand.inside) == [3]
    node(hand, 2).replicas.clear()
    node(hand, 4).resp[2].due = 1_000_000  # Tw, by what replica 2 said before
    hand.release(3)
    move(hand, 3, 0)
    hand.flight = [flight for flight in hand.flight if flight.dst == 4]  # nothing else arrives
    move(hand, 0, 4, Response)
    hand.advance(1_000)
    assert "4>2 request" in sent(hand)
