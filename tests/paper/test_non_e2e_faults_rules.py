"""Non End-to-End under failures: rules that other rules hide in random runs.

Requesters ask again, and votes, copies and entries expire. So a mistake in one rule often costs no more than time, or
is repaired before anybody notices. Here each rule has to do its part alone. Routes are drawn by hand as in
test_non_e2e_faults.py.
"""

from __future__ import annotations

from fairgate.protocols.non_e2e.fault_tolerant import VOTE, WAIT
from fairgate.protocols.non_e2e.mending import ROUNDS, TRIES
from fairgate.protocols.non_e2e.messages import Ack, GrantReq, HandOver, Ping, Release, Request
from fairgate.scenario.manual import ManualNetwork
from tests.paper.test_non_e2e import entry_at, entry_shown, sent, take
from tests.paper.test_non_e2e_faults import HOLD, KEYS, LEASE, at, crash, drawn, path, three
from tests.support.dht_walk import SECOND

AGAIN = "upper/0/again"
ENTRY = "upper/0/entry:0"

# The requester.


def voted() -> ManualNetwork:
    """Node 7 has voted for node 1, whose Ping is in flight."""
    network = drawn({1: 7, 2: 7}, lease=LEASE)
    network.acquire(1)
    take(network, 1, 7)
    take(network, 7, 1)
    assert len(sent(network, Ping)) == 1
    return network


def test_an_answer_counts_from_its_own_question() -> None:
    network = voted()
    take(network, 1, 7)
    late = network.flight.pop()
    network.advance(LEASE // 3)
    network.flight[:] = [late]
    network.deliver_all()
    assert at(network, 1).leases[0].until == LEASE


def test_a_requester_gives_up_a_vote_that_has_expired() -> None:
    """Otherwise it would not ask for this vote again."""
    network = three()
    network.deliver_all()
    requester = at(network, 1)
    assert [ask.vote for ask in requester.asks] == [True, False, False]
    requester.leases[0].until = network.now
    network.fire(1, AGAIN)
    assert requester.leases == {}
    assert [ask.vote for ask in requester.asks] == [False, False, False]


def test_a_vote_that_was_given_back_is_no_longer_leased() -> None:
    network = three()
    network.deliver_all()
    requester = at(network, 1)
    requester.give_vote_back(0, requester.asks[0])
    assert (requester.leases, requester.votes()) == ({}, 0)


def test_a_holder_loses_its_permit_when_its_vote_is_gone() -> None:
    """It does not wait until its lease is over: the replica may have lost its memory."""
    network = voted()
    network.deliver_all()
    assert list(network.inside) == [1]
    network.fire(1, "upper/0/ping")
    at(network, 7).replicas[0].owner = ()
    network.deliver_all()
    assert [(me, why) for me, _, why in network.lost] == [(1, "votes were gone")]


def test_pings_go_to_the_node_that_serves_the_replica_now() -> None:
    """That is the node from which the last vote or answer came."""
    network = voted()
    requester = at(network, 1)
    vote = GrantReq(0, 0, requester.ts, requester.asks[0].attempt, 1, False, True, False, 0)
    network.step(1, "on_message", 8, vote)
    assert requester.leases[0].at == 8
    network.step(1, "on_message", 9, Ack(0, 0, requester.ts, requester.asks[0].attempt, requester.pings, True))
    assert requester.leases[0].at == 9


def test_without_leases_a_requester_asks_again_a_few_times_after_a_crash() -> None:
    network = drawn({1: 7, 2: 7})
    network.acquire(1)
    network.deliver_all()
    network.acquire(2)
    network.deliver_all()
    crash(network, 9, 2)
    asked = 0
    for _ in range(2 * ROUNDS):
        network.advance(20 * SECOND)
        asked += len(sent(network, Request))
        network.deliver_all()
    assert asked == ROUNDS


# The replica.


def test_a_later_attempt_of_the_owner_replaces_the_earlier_one() -> None:
    """Its YIELD was lost."""
    network = drawn({1: 7})
    network.acquire(1)
    network.deliver_all()
    network.step(7, "on_message", 1, Request(0, KEYS[0], 0, (1, 1, 1), False))
    assert at(network, 7).replicas[0].owner == (1, 1, 1)


def test_the_vote_of_a_crashed_owner_goes_to_the_next_request() -> None:
    network = drawn({1: 7, 2: 7})
    for me in (1, 2):
        network.acquire(me)
        network.deliver_all()
    network.timers.clear()
    crash(network, 1, 7)
    network.deliver_all()
    assert list(network.inside) == [2]


def test_a_replica_that_moves_takes_its_lease_and_its_wait_along() -> None:
    network = voted()
    giver, taker = at(network, 7), at(network, 8)
    giver.set_timer(f"{WAIT}0", HOLD)
    taker.take_replica(0, giver.give_replica(0))
    assert [taker.is_armed(f"{kind}0") for kind in (VOTE, WAIT)] == [True, True]
    assert [giver.is_armed(f"{kind}0") for kind in (VOTE, WAIT)] == [False, False]


def test_a_vote_that_is_handed_over_expires_as_well() -> None:
    taker = at(drawn({}, lease=LEASE), 8)
    taker.on_handover(HandOver(0, KEYS[0], 0, (1, 1, 0), ()))
    assert (taker.replicas[0].owner, taker.is_armed(f"{VOTE}0")) == ((1, 1, 0), True)


# Nodes on the path.


def kept_at_4() -> ManualNetwork:
    """Node 1 is inside, and node 4 on its path keeps node 3's request. Node 3 does not ask again."""
    network = drawn({1: 4, 3: 4, 4: 7}, lease=LEASE)
    for me in (1, 3):
        network.acquire(me)
        network.deliver_all()
    assert [asked[1] for asked in entry_at(network, 4, 0).queue] == [3]
    network.timers.pop((3, AGAIN))
    return network


def test_an_entry_expires_and_its_requests_are_routed_on() -> None:
    network = kept_at_4()
    network.crash(1)
    assert network.timers[4, ENTRY] == network.now + 2 * HOLD
    network.fire(4, ENTRY)
    assert entry_at(network, 4, 0).node == 3  # a new entry
    assert [(src, dst, m.node) for src, dst, m in sent(network, Request)] == [(4, 7, 3)]


def test_an_entry_stays_if_its_request_comes_by_again() -> None:
    network = drawn({1: 4, 4: 7}, lease=LEASE)
    network.acquire(1)
    take(network, 1, 4)
    network.flight.clear()
    network.fire(1, AGAIN)
    take(network, 1, 4)
    assert network.timers[4, ENTRY] == network.now + 2 * HOLD > 2 * HOLD


def released() -> ManualNetwork:
    """Node 1 has left, and node 4 has passed its RELEASE on, with node 3's request. The message is lost."""
    network = kept_at_4()
    network.release(1)
    take(network, 1, 4)
    network.flight.clear()
    assert len(at(network, 4).kept) == 1
    return network


def test_f3_a_copy_is_sent_a_few_times() -> None:
    """After that, the requesters themselves ask again."""
    network = released()
    times = 0
    for _ in range(2 * TRIES):
        network.advance(LEASE // 3)
        times += len(sent(network, Release))
        network.flight.clear()
    assert times == TRIES
    assert at(network, 4).kept == {}


def test_f3_a_copy_is_sent_at_once_if_the_next_node_falls_silent() -> None:
    network = released()
    network.step(4, "on_suspect", 8, "pings")
    assert sent(network, Release) == []
    network.step(4, "on_suspect", 7, "pings")
    assert [(src, dst) for src, dst, _ in sent(network, Release)] == [(4, 7)]


def test_f3_every_keeper_on_the_path_drops_its_copy() -> None:
    """The replica tells the last keeper, and each keeper the one before it."""
    network = drawn({1: 4, 3: 4, 4: 5, 2: 5, 5: 7}, lease=LEASE)
    for me in (1, 3, 2):
        network.acquire(me)
        network.deliver_all()
    network.release(1)
    take(network, 1, 4)
    take(network, 4, 5)
    assert [len(at(network, me).kept) for me in (4, 5)] == [1, 1]
    network.deliver_all()
    assert [len(at(network, me).kept) for me in (4, 5)] == [0, 0]


def test_f1_a_silent_neighbour_on_a_path_is_bypassed() -> None:
    network, routes = path()
    routes.update({4: 8, 8: 7})
    network.step(4, "on_suspect", 5, "pings")
    network.deliver_all()
    assert entry_shown(network, 4, 0) == ((1, 1, 0), (), 1, 8)


def test_the_requests_of_a_crashed_node_are_dropped_from_queues_on_paths() -> None:
    network, _ = path()
    crash(network, 2, 6)
    assert entry_at(network, 6, 0).queue == []


def test_a_node_that_has_returned_gets_votes_again() -> None:
    network = drawn({1: 7, 2: 7})
    network.acquire(2)
    network.deliver_all()
    network.step(7, "on_crash", 1)
    network.step(7, "on_trust", 1, "pings")
    network.acquire(1)
    network.deliver_all()
    network.release(2)
    network.deliver_all()
    assert list(network.inside) == [1]
