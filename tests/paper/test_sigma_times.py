"""Sigma and time: from when a lease counts, when a question is repeated, and which messages are saved.

Nodes 0, 1 and 2 play the replicas; nodes 3, 4 and 5 are the clients.
"""

from __future__ import annotations

from fairgate.core.ids import NIL
from fairgate.core.units import NEVER, SECOND
from fairgate.protocols.sigma.replica import DRIFT
from fairgate.protocols.sigma.votes import Request, Response
from tests.support.dht_walk import MS
from tests.support.sigma_manual import ask, move, network_of, node, reach, replica, sent


def test_a_vote_that_waited_long_in_a_queue_counts_at_once() -> None:
    """The replica says how long the question waited, so the client counts the lease from when it was lent."""
    network = network_of(lease=3 * SECOND)
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    network.advance(2900 * MS)
    network.flight.clear()
    network.release(3)
    network.deliver_all()
    assert list(network.inside) == [4]
    late = 2900 * MS - (2900 * MS // 1_000_000 + 1) * DRIFT
    assert [r.until for r in node(network, 4).resp] == [late + 3 * SECOND] * 3


def test_a_lease_is_counted_from_the_last_question_and_not_from_a_duplicate_of_an_earlier_one() -> None:
    network = network_of(lease=3 * SECOND, drift=0)
    ask(network, 3, 0, 1, 2)
    network.advance(900 * MS)
    network.acquire(4)
    first = [flight for flight in network.flight if flight.src == 4]
    reach(network, 4, 0, 1, 2)
    network.advance(100 * MS)
    rep = node(network, 0).replicas[0]
    asked = rep.Queue[0].asked
    network.flight.insert(0, first[0])
    network.deliver()
    assert rep.Queue[0].asked == asked == 900 * MS


def test_a_question_is_repeated_after_a_time_that_follows_the_round_trips() -> None:
    """Where answers take 2 s, no question is repeated before 2 s, although `resend` is 1 s."""
    network = network_of(retry=100, resend=SECOND)
    client = node(network, 3)
    assert client.timeout() == SECOND
    for _ in range(3):
        network.acquire(3)
        network.advance(2 * SECOND)
        network.deliver_all()
        network.release(3)
        network.deliver_all()
    assert 2 * SECOND < client.timeout() < 10 * SECOND
    for _ in range(60):
        client.measure(100 * MS)
    assert 200 * MS <= client.timeout() < 250 * MS


def test_a_vote_that_crosses_its_release_is_not_refused_by_another_message() -> None:
    network = network_of(retry=100, resend=SECOND)
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    network.release(3)
    for i in range(3):
        move(network, 3, i)
    for i in range(2):
        move(network, i, 4, Response)
    network.release(4)
    before = len(network.flight)
    move(network, 2, 4, Response)
    assert len(network.flight) == before - 1
    assert "a vote for a request that is over" not in network.marks


def test_a_vote_whose_release_was_lost_is_refused_when_the_replica_tells_of_it_again() -> None:
    network = network_of(retry=100, resend=SECOND)
    ask(network, 3, 0, 1, 2)
    network.release(3)
    network.flight.clear()
    network.advance(10 * SECOND)
    network.acquire(4)
    reach(network, 4, 0)
    network.advance(10 * SECOND)
    network.deliver_all()
    assert "a vote for a request that is over" in network.marks
    assert list(network.inside) == [4]


def test_the_clock_probe_of_a_fresh_client_takes_no_vote() -> None:
    network = network_of(retry=100, resend=SECOND, prime=True)
    node(network, 0).clock = 7
    node(network, 1).clock = 7
    network.acquire(3)
    move(network, 3, 0, Request)
    assert replica(network, 0) == (NIL, [])
    move(network, 0, 3, Response)
    assert sent(network) == ["3>0 request", "3>1 request", "3>2 request"]
    assert node(network, 3).ts == 8


def test_a_client_asks_again_early_if_its_wait_is_long() -> None:
    """It asks after 80 % of a long wait, but after the whole of a short one."""
    network = network_of(retry=80, resend=SECOND)
    ask(network, 3, 0)
    client = node(network, 3)
    r = client.resp[0]
    for wait, due in ((100 * SECOND, 80 * SECOND), (8 * SECOND, 8 * SECOND + client.timeout())):
        r.due = client.now + 1000 * SECOND
        client.retry_later(r, wait)
        assert r.due == due


def test_no_percentage_of_a_wait_is_later_than_any_moment() -> None:
    """Compiled, the product of a wait and a large `retry` would exceed 64 bits."""
    network = network_of(retry=5 * SECOND, resend=SECOND)
    ask(network, 3, 0)
    client = node(network, 3)
    client.resp[0].due = NEVER
    client.retry_later(client.resp[0], 500 * SECOND)
    assert client.now + 500 * SECOND < client.resp[0].due < NEVER


def test_if_replicas_forget_a_client_asks_again_early_after_shorter_waits_too() -> None:
    network = network_of(retry=80, resend=SECOND)
    ask(network, 3, 0)
    client = node(network, 3)
    client.forgetful = True
    client.resp[0].due = 1000 * SECOND
    client.retry_later(client.resp[0], 8 * SECOND)
    assert client.resp[0].due == 8 * SECOND * 80 // 100
