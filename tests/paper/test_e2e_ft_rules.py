"""End-to-End under failures: rules that other rules hide in random runs.

Nearly every message of `e2e_ft` is repeated, and every promise expires. So a mistake in one rule often costs no more
than time, or is repaired before anybody notices. Here each rule has to do its part alone. Routes are drawn by hand as
in test_e2e_ft.py.
"""

from __future__ import annotations

from fairgate.core.ids import NIL
from fairgate.protocols.e2e.messages import (
    Copy,
    Enqueue,
    HandOver,
    IAmWinner,
    Pong,
    Recall,
    Release,
    Request,
    Response,
    SentBack,
    Token,
    Yield,
)
from fairgate.scenario.manual import ManualNetwork
from tests.paper.test_e2e import REQ1, REQ2, REQ3, deliver, inside, node, of
from tests.paper.test_e2e_ft import LEASE, drawn, pass_time, split, waiting
from tests.support.dht_walk import SECOND

# The client.


def test_a_vote_that_comes_late_is_renewed_at_once() -> None:
    """Its promise counts from the question, so it would expire before the client asks again."""
    network = drawn()
    network.acquire(REQ1)
    network.advance(LEASE - SECOND)
    deliver(network, Request, 6)
    deliver(network, Response)
    assert [flight.dst for flight in of(network, Request) if flight.msg.round > 0] == [6]  # type: ignore[attr-defined]


def test_a_vote_from_before_a_reset_is_regained_with_one_more_question() -> None:
    """The client continues from the round that the replica knows, instead of catching up round by round."""
    network = drawn()
    for i, key in enumerate(network.setup.options["keys"]):
        network.step(6 + i, "on_message", REQ1, Request(0, key, i, REQ1, 1, 50, 0, 0))
    network.flight.clear()
    network.acquire(REQ1)
    for _ in range(4):  # REQUEST and RESPONSE, twice
        for _ in list(network.flight):
            network.deliver()
    assert list(network.inside) == [REQ1]


def test_the_promise_of_a_vote_that_comes_back_counts_from_the_yield() -> None:
    network = drawn()
    network.acquire(REQ1)
    deliver(network, Request, 6)
    deliver(network, Response)
    network.advance(SECOND)
    client = node(network, REQ1)
    network.step(REQ1, "on_message", 6, Recall(0, 0, client.stamp, client.rounds[0], True))
    deliver(network, Yield)
    deliver(network, Response)
    assert client.ends[0] == SECOND + LEASE


def test_a_request_that_is_sent_back_is_made_again_at_once() -> None:
    network = drawn()
    network.acquire(REQ1)
    network.flight.clear()
    network.step(REQ1, "on_message", REQ2, SentBack(0, 1, node(network, REQ1).stamp, 1))
    assert [(flight.dst, flight.msg.round) for flight in of(network, Request)] == [(7, 1)]  # type: ignore[attr-defined]


def test_a_recalled_vote_is_yielded_at_the_next_question() -> None:
    """Without the YIELD, the earlier request would wait until the promise expires."""
    network = split(REQ1, REQ2)
    pass_time(network, LEASE // 2 // SECOND)
    assert list(network.inside) == [REQ1]


# The owner and the waiters.


def test_the_winner_continues_with_the_copy_of_the_queue() -> None:
    """Nobody but the crashed owner and the waiter with the copy knows the other request."""
    network = drawn(copies=1)
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    for i in range(3):
        node(network, 6 + i).handed.clear()
    network.timers.pop((REQ3, "upper/0/ask"))
    network.crash(REQ1)
    pass_time(network, 80)
    assert list(network.inside) == [REQ2]
    assert node(network, REQ2).queue == [(21, REQ3)]


def lose_lease(network: ManualNetwork, me: int) -> None:
    """Every message is lost until the lease of the node ends."""
    network.flight.clear()
    while (me, "upper/0/lease") in network.timers:
        network.advance(SECOND)
        network.flight.clear()


def test_an_owner_whose_lease_is_over_asks_for_nothing() -> None:
    network = drawn()
    inside(network, REQ1)
    lose_lease(network, REQ1)
    assert [me for me, _, _ in network.lost] == [REQ1]
    network.advance(LEASE)
    assert [flight for flight in network.flight if flight.src == REQ1] == []


def test_an_owner_whose_lease_is_over_sends_requests_back() -> None:
    """It passed the token on to nobody: a node that it once passed it on to is not its heir."""
    network = drawn()
    inside(network, REQ1)
    node(network, REQ1).heir = REQ2  # of an earlier tenure
    late = Enqueue(0, 0, node(network, REQ1).generation, NIL, ((21, REQ3),))
    lose_lease(network, REQ1)
    network.step(REQ1, "on_message", 6, late)
    assert [(type(flight.msg), flight.dst) for flight in network.flight] == [(SentBack, REQ3)]


def with_a_token() -> tuple[ManualNetwork, Token]:
    """Req1 has passed the token on to Req2, whose questions to the replicas are all lost."""
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    network.release(REQ1)
    token = of(network, Token)[0].msg
    assert isinstance(token, Token)
    deliver(network, Token)
    return network, token


def test_a_token_that_comes_again_after_its_lease_is_ignored() -> None:
    network, token = with_a_token()
    lose_lease(network, REQ2)
    network.step(REQ2, "on_message", REQ1, token)
    assert "a TOKEN came again" in network.marks
    assert not node(network, REQ2).holding


def test_a_node_whose_token_was_not_confirmed_asks_for_votes_at_once() -> None:
    network, _ = with_a_token()
    network.flight.clear()
    due = network.timers[REQ2, "upper/0/lease"] - network.now
    network.advance(due - 1)
    network.flight.clear()
    network.advance(1)
    assert [(flight.src, flight.dst) for flight in of(network, Request)] == [(REQ2, 6), (REQ2, 7), (REQ2, 8)]


def test_an_enqueue_is_passed_on_again_after_a_third_of_a_lease() -> None:
    """The first one may be lost."""
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    network.release(REQ1)
    late = Enqueue(0, 0, node(network, REQ1).tenure, NIL, ((21, REQ3),))
    for delay in (0, SECOND, LEASE // 3):
        network.advance(delay)
        network.step(REQ1, "on_message", 6, late)
    assert len(of(network, Enqueue)) == 2


def test_an_owner_has_a_copy_of_nothing() -> None:
    """Otherwise it would go first with its next request as well, and pass the token on to requests that are over."""
    network, _ = with_a_token()
    waiter = node(network, REQ2)
    assert (waiter.copy, waiter.rank(), (REQ2, "upper/0/ping") in network.timers) == ((), 0, False)


def test_a_new_copy_of_the_queue_gives_the_owner_its_pings_back() -> None:
    """It shows that the owner is alive, as an answer to a ping does."""
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    waiter = node(network, REQ2)
    for news in (Pong(0, waiter.copy_generation), Copy(0, waiter.copy_generation, waiter.copy_sequence + 1, ())):
        network.fire(REQ2, "upper/0/ping")
        assert waiter.unanswered == 1
        network.step(REQ2, "on_message", REQ1, news)
        assert waiter.unanswered == 0


# The replicas.


def test_when_a_promise_ends_the_next_request_gets_the_vote() -> None:
    network = drawn()
    for me in (REQ1, REQ2):
        network.acquire(me)
        deliver(network, Request, 6)
    network.crash(REQ1)
    network.flight.clear()
    network.timers.pop((REQ2, "upper/0/ask"))
    network.advance(LEASE)
    assert [(flight.dst, flight.msg.vote) for flight in of(network, Response)] == [(REQ2, True)]  # type: ignore[attr-defined]


def test_when_a_wait_ends_the_first_request_gets_the_vote() -> None:
    network = drawn(wait=True)
    network.acquire(REQ1)
    network.timers.pop((REQ1, "upper/0/ask"))
    network.deliver_all()
    assert not network.inside
    network.advance(LEASE)
    network.deliver_all()
    assert list(network.inside) == [REQ1]


def test_a_request_that_never_reached_the_owner_gets_votes_when_the_owner_leaves() -> None:
    network = drawn()
    inside(network, REQ1)
    network.acquire(REQ2)
    deliver(network, Request)
    network.flight.clear()  # the ENQUEUEs are lost
    network.timers.pop((REQ2, "upper/0/ask"))
    network.release(REQ1)
    network.deliver_all()
    assert list(network.inside) == [REQ2]


def test_requests_that_travel_with_the_token_are_not_taken_back_from_the_heir() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    assert [request[2] for request in node(network, 6).handed[0]] == [REQ2]
    network.release(REQ1)
    network.deliver_all()
    assert list(network.inside) == [REQ2]
    assert not node(network, 6).handed.get(0)


def test_a_replica_asks_for_its_vote_back_if_another_node_has_won() -> None:
    network = drawn()
    network.acquire(REQ2)
    deliver(network, Request, 8)
    network.flight.clear()
    network.acquire(REQ1)
    deliver(network, Request)
    deliver(network, Response)
    network.flight[:] = of(network, IAmWinner)
    deliver(network, IAmWinner)
    assert [(flight.dst, flight.msg.won) for flight in of(network, Recall)] == [(REQ2, True)]  # type: ignore[attr-defined]


def test_a_vote_that_is_returned_goes_to_the_next_request() -> None:
    """RELEASE says that the request is over, although its generation is no news."""
    network = drawn()
    for me in (REQ1, REQ2):
        network.acquire(me)
        deliver(network, Request, 6)
    replica, client = node(network, 6).replicas[0], node(network, REQ1)
    replica.generation = 1  # it has had an owner before
    network.step(6, "on_message", REQ1, Release(0, client.keys[0], 0, REQ1, client.stamp, 0, 0, NIL, 0))
    assert replica.vote == REQ2


def test_release_names_the_heir() -> None:
    """So a replica knows the new owner before its IAMWINNER, and is bound to it."""
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    network.release(REQ1)
    network.flight[:] = of(network, Release)
    network.deliver_all()
    assert [node(network, 6 + i).replicas[i].holder for i in range(3)] == [REQ2] * 3


def test_a_replica_that_waits_keeps_the_vote_it_was_handed() -> None:
    """The winner counts on the promise of this vote, and the replica cannot confirm it as the owner yet."""
    taker = node(drawn(wait=True), 8)
    taker.on_handover(HandOver(0, taker.keys[0], 0, REQ1, 5, 0, 0, False, NIL, 0, 4, 7, ((0, 9, REQ2, 0),)))
    assert taker.is_waiting(0)
    taker.on_winner(IAmWinner(0, taker.keys[0], 0, REQ1, 5, 5, 7, 1))
    assert (taker.replicas[0].vote, taker.is_promised(0)) == (REQ1, True)
    taker.on_release_message(Release(0, taker.keys[0], 0, REQ1, 5, 5, 7, NIL, 0))
    assert taker.replicas[0].vote == NIL


# Nodes on the path.


def intercepted(network: ManualNetwork, me: int) -> int:
    """How many of the node's REQUESTs are replaced by an ENQUEUE on their way."""
    network.acquire(me)
    deliver(network, Request, 3, 4, 5)
    return len(of(network, Enqueue))


def test_an_entry_is_trusted_for_one_lease() -> None:
    network = drawn(straight=())
    inside(network, REQ1)
    assert intercepted(network, REQ2) == 3
    network.crash(REQ1)
    network.flight.clear()
    network.advance(LEASE)
    network.flight.clear()
    assert intercepted(network, REQ3) == 0
