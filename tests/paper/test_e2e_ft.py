"""End-to-End under failures: EE section V.A sentence by sentence, then in random runs with every kind of fault.

EE is "Efficient Mutual Exclusion in Peer-to-Peer Systems". Routes are drawn by hand as in test_e2e.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fairgate.core.choose import from_floats
from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_keys
from fairgate.core.layers import over
from fairgate.core.setup import Setup
from fairgate.overlay.gates import Gates
from fairgate.protocols.e2e.fault_tolerant import E2EFT
from fairgate.protocols.e2e.messages import (
    Confirm,
    Copy,
    Enqueue,
    HandOver,
    IAmWinner,
    Ping,
    Pong,
    Release,
    Request,
    Response,
    Token,
)
from fairgate.scenario.manual import ManualNetwork
from tests.paper.test_e2e import REQ1, REQ2, REQ3, deliver, inside, node, of
from tests.support.dht_walk import SECOND, Spec
from tests.support.e2e_walk import HARD, PLAIN, QUICK, one_run
from tests.support.routes import Drawn

LEASE = 30 * SECOND
PING = 10 * SECOND


def drawn(
    straight: tuple[int, ...] = (0, 1, 2), copies: int = 2, protocol: Any = E2EFT, **options: Any
) -> ManualNetwork:
    routes = [{me: 6 + i if me in straight else 3 + i for me in range(3)} | {3 + i: 6 + i} for i in range(3)]
    options = {"routes": routes, "copies": copies, "lease": LEASE, "ping": PING, "drift": 0, **options}
    setup = Setup(tuple(range(9)), options=options)
    setup.options["keys"] = replica_keys(setup)
    return ManualNetwork(over(Drawn, over(Gates, protocol)), setup, slots=False, chooser=from_floats(lambda: 0.5))


def waiting(network: ManualNetwork, *nodes: int) -> None:
    for me in nodes:
        node(network, me).ahead = 10 * me
        network.acquire(me)
        network.deliver_all()


def pass_time(network: ManualNetwork, seconds: int) -> None:
    """Let time pass second by second, and deliver every message at once."""
    for _ in range(seconds):
        network.advance(SECOND)
        network.deliver_all()


def test_the_queue_is_copied_to_the_first_n_waiters() -> None:
    network = drawn(copies=1)
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    assert node(network, REQ2).copy == ((11, REQ2), (21, REQ3))
    assert node(network, REQ3).copy == ()


def test_updates_are_ordered_by_sequence_numbers() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    old = Copy(0, node(network, REQ1).generation, 1, ())
    waiting(network, REQ3)
    assert node(network, REQ2).copy_sequence > 1
    network.step(REQ2, "on_message", REQ1, old)
    assert node(network, REQ2).copy == ((11, REQ2), (21, REQ3))


def test_waiters_ping_the_holder_of_the_token() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    network.advance(PING)
    assert [(flight.src, flight.dst) for flight in of(network, Ping)] == [(REQ2, REQ1)]
    deliver(network, Ping)
    assert [(flight.src, flight.dst) for flight in of(network, Pong)] == [(REQ1, REQ2)]
    pass_time(network, 200)
    assert list(network.inside) == [REQ1]
    assert "the owner was silent" not in network.marks


def test_when_the_holder_fails_a_waiter_takes_over_the_queue() -> None:
    network = drawn(copies=1)
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    network.crash(REQ1)
    pass_time(network, 80)
    assert {"the owner was silent", "a waiter took the queue over"} <= network.marks
    assert list(network.inside) == [REQ2]
    assert node(network, REQ2).queue == [(21, REQ3)]
    assert [node(network, 6 + i).replicas[i].holder for i in range(3)] == [REQ2] * 3  # all replicas know it
    network.release(REQ2)
    pass_time(network, 2)
    assert list(network.inside) == [REQ3]


def test_the_waiter_with_the_newest_copy_goes_first_whatever_the_timestamps() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    copy = node(network, REQ2)
    waiting(network, REQ3)
    copy.copy, copy.copy_sequence = ((11, REQ2),), 1  # as if the last update had not reached Req2
    network.crash(REQ1)
    pass_time(network, 80)
    assert list(network.inside) == [REQ3]


def test_a_gate_survives_the_failure_of_every_waiter_with_a_copy() -> None:
    network = drawn(copies=1)
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    network.crash(REQ1)
    network.crash(REQ2)
    pass_time(network, 400)  # without a copy, Req3 asks rarely
    assert list(network.inside) == [REQ3]


def test_a_falsely_suspected_holder_loses_its_permit_before_another_enters() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    for _ in range(80):  # every message from or to Req1 is lost
        network.advance(SECOND)
        while network.flight:
            cut = REQ1 in (network.flight[0].src, network.flight[0].dst)
            network.drop() if cut else network.deliver()
    assert [(me, why) for me, _, why in network.lost] == [(REQ1, "lease over")]
    assert list(network.inside) == [REQ2]


def test_a_token_grants_no_entry_before_a_majority_has_confirmed() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    node(network, REQ2).ends = [network.now + LEASE] * 3  # promises of votes that it has yielded since
    network.release(REQ1)
    deliver(network, Token)
    assert not network.inside
    deliver(network, IAmWinner)
    network.deliver(network.flight.index(of(network, Confirm)[0]))
    assert not network.inside
    network.deliver(network.flight.index(of(network, Confirm)[0]))
    assert list(network.inside) == [REQ2]


def test_the_promise_of_a_vote_that_was_yielded_does_not_extend_the_winners_lease() -> None:
    network = drawn()
    network.acquire(REQ1)
    deliver(network, Request, 6)
    deliver(network, Response)
    client = node(network, REQ1)
    client.ends[0], client.ends[2] = network.now + LEASE // 2, network.now + 2 * LEASE
    deliver(network, Request, 7)
    deliver(network, Response)
    assert list(network.inside) == [REQ1]
    assert network.timers[REQ1, "upper/0/lease"] == network.now + LEASE // 2


def test_a_late_confirmation_does_not_extend_the_lease_as_that_of_a_later_question_would() -> None:
    network = drawn()
    inside(network, REQ1)
    network.advance(LEASE // 3)
    deliver(network, IAmWinner)
    network.advance(LEASE // 3)
    before = list(node(network, REQ1).ends)
    deliver(network, Confirm)
    assert node(network, REQ1).ends == before


def test_a_replica_that_moves_takes_its_promises_along() -> None:
    network = drawn()
    inside(network, REQ1)
    giver, taker = node(network, 6), node(network, 8)
    giver.handed[0] = [(0, 11, REQ2, 1)]
    giver.set_timer("wait:0", LEASE)
    taker.take_replica(0, giver.give_replica(0))
    assert (taker.is_promised(0), taker.is_waiting(0), taker.handed[0]) == (True, True, [(0, 11, REQ2, 1)])
    assert (giver.is_promised(0), giver.is_waiting(0), giver.replicas) == (False, False, {})
    taker.forget_replica(0)
    assert (taker.is_promised(0), taker.is_waiting(0), 0 in taker.handed, 0 in taker.replicas) == (False,) * 4


def test_a_replica_that_is_handed_over_is_bound_by_its_promise() -> None:
    taker = node(drawn(), 8)
    taker.on_handover(HandOver(0, taker.keys[0], 0, NIL, 0, 0, 0, False, REQ1, 5, 4, 7, ()))
    assert (taker.replicas[0].holder, taker.is_promised(0)) == (REQ1, True)


@pytest.mark.parametrize("lineage", [True, False])
def test_a_replica_under_a_promise_accepts_no_owner_of_another_lineage(lineage: bool) -> None:
    """It accepts only a successor that got the token from its holder, and so has the same random lineage number."""
    network = drawn()
    inside(network, REQ1)
    given = node(network, REQ1).lineage + (0 if lineage else 1)
    key = network.setup.options["keys"][0]
    network.step(6, "on_message", REQ3, IAmWinner(0, key, 0, REQ3, 99, 99, given, 1))
    assert [flight.dst for flight in of(network, Confirm)] == ([REQ3] if lineage else [])
    assert node(network, 6).replicas[0].holder == (REQ3 if lineage else REQ1)


def test_when_a_node_of_a_quorum_set_fails_messages_take_another_route() -> None:
    network = drawn(straight=())
    inside(network, REQ1)
    network.crash(3)
    network.setup.options["routes"][0].update({REQ1: 4, 4: 6})  # the overlay has repaired its tables
    pass_time(network, 11)  # the next IAMWINNER bypasses the dead node
    assert (node(network, REQ1).entries[0].next, node(network, 4).entries[0].owner) == (4, REQ1)
    network.release(REQ1)
    pass_time(network, 1)
    assert node(network, 4).entries[0].owner == NIL
    assert node(network, 6).replicas[0].holder == NIL


def test_release_follows_both_the_old_route_and_the_new_one() -> None:
    network = drawn(straight=())
    inside(network, REQ1)
    network.setup.options["routes"][0].update({REQ1: 4, 4: 6})
    network.release(REQ1)
    assert sorted(flight.dst for flight in of(network, Release) if flight.msg.replica == 0) == [3, 4]  # type: ignore[attr-defined]


def test_a_replica_that_lost_its_memory_learns_the_owner_again() -> None:
    network = drawn()
    inside(network, REQ1)
    node(network, 6).replicas.clear()
    pass_time(network, 11)
    assert node(network, 6).replicas[0].holder == REQ1


def split(first: int, second: int, protocol: Any = E2EFT) -> ManualNetwork:
    """Node 6 has voted for the first client and node 7 for the second. Node 8 is dead, so neither has a majority."""
    network = drawn(protocol=protocol)
    network.crash(8)
    for me, replica in ((first, 6), (second, 7)):
        network.acquire(me)
        network.deliver(
            next(at for at, flight in enumerate(network.flight) if (flight.src, flight.dst) == (me, replica))
        )
    return network


def test_a_vote_wanted_by_an_earlier_request_is_yielded_even_if_a_replica_is_silent() -> None:
    """Otherwise each client would keep its vote forever: it would wait for an answer of the dead replica."""
    network = split(REQ1, REQ2)
    network.deliver_all()
    assert [node(network, me).votes for me in (REQ1, REQ2)] == [1, 1]
    pass_time(network, 2 * LEASE // SECOND)
    assert list(network.inside) == [REQ1]


def test_a_client_renews_a_vote_before_it_expires() -> None:
    """Even if its retries had become rare while it had no vote."""
    network = drawn()
    network.acquire(REQ1)
    for _ in range(20):
        network.flight.clear()  # every message is lost
        network.fire(REQ1, "upper/0/ask")
    deliver(network, Request)
    network.flight[:] = of(network, Response)[:1]
    network.deliver_all()
    network.advance(LEASE // 3)
    assert len(of(network, Request)) == 3


# A reset node starts from stamp 1 and round 0, but replicas remember what it said before the reset.


def with_a_later_stamp_of_before(protocol: Any) -> ManualNetwork:
    """Req1 has lost its memory, and its stamps restarted: node 7 knows a later one of it."""
    network = split(REQ1, REQ2, protocol)
    node(network, 7).replicas[1].waiting = [(0, 99, REQ1, 0)]
    pass_time(network, 3 * LEASE // SECOND)
    return network


def votes_after_a_lease(protocol: Any) -> int:
    """Req1 got a vote, and has heard nothing for a lease."""
    network = drawn(protocol=protocol)
    network.acquire(REQ1)
    deliver(network, Request, 6)
    deliver(network, Response)
    assert node(network, REQ1).votes == 1
    for _ in range(LEASE // SECOND):
        network.flight.clear()  # every message is lost
        network.advance(SECOND)
    left: int = node(network, REQ1).votes
    return left


def wins_with_an_expired_vote(protocol: Any) -> bool:
    """Req1 got the vote of node 6, which has expired when that of node 7 arrives. It asks again a second later."""
    network = drawn(protocol=protocol)
    network.acquire(REQ1)
    network.advance(SECOND)
    deliver(network, Request, 6)
    deliver(network, Response)
    for _ in range(LEASE // SECOND - 1):
        network.flight[:] = [flight for flight in network.flight if flight.dst == 7]  # the other messages are lost
        network.advance(SECOND)
    deliver(network, Request, 7)
    deliver(network, Response)
    assert node(network, REQ1).votes == 2
    won: bool = node(network, REQ1).holding
    return won


def test_a_vote_that_has_expired_does_not_win() -> None:
    """Otherwise the client would be the owner without a majority of promises: it would not enter, and ask no more."""
    assert not wins_with_an_expired_vote(E2EFT)


def test_a_vote_that_has_expired_is_given_up() -> None:
    """Otherwise the client would take every refusal for an outdated answer, and ask all replicas again forever."""
    assert votes_after_a_lease(E2EFT) == 0


def test_a_request_from_before_a_reset_does_not_hide_the_current_one() -> None:
    """Otherwise node 7 would never recall its vote from Req2 in favour of Req1, and each client would keep one vote
    forever (tests/mutants/test_e2e.py)."""
    assert list(with_a_later_stamp_of_before(E2EFT).inside) == [REQ1]


def test_a_rank_from_before_a_reset_does_not_keep_a_vote() -> None:
    """Req2 had a copy of the queue when node 7 voted for it. It has none now, so it no longer outranks Req1."""
    network = split(REQ1, REQ2)
    node(network, 7).replicas[1].vote_known = 5
    pass_time(network, 3 * LEASE // SECOND)
    assert list(network.inside) == [REQ1]


def test_a_vote_from_before_a_reset_is_regained_at_once() -> None:
    """The vote's round is far ahead of the node's own count. Otherwise the node would ignore the vote for 50 rounds."""
    network = drawn()
    for i, key in enumerate(network.setup.options["keys"]):
        network.step(6 + i, "on_message", REQ1, Request(0, key, i, REQ1, 1, 50, 0, 0))
    network.flight.clear()
    network.acquire(REQ1)
    pass_time(network, 1)
    assert list(network.inside) == [REQ1]


def test_a_duplicated_enqueue_is_passed_on_once() -> None:
    """Otherwise, where messages are duplicated, the ENQUEUEs that follow a TOKEN would multiply without end."""
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    network.release(REQ1)
    late = Enqueue(0, 0, node(network, REQ1).tenure, NIL, ((21, REQ3),))
    for _ in range(2):
        network.step(REQ1, "on_message", 6, late)
    assert [(flight.src, flight.dst) for flight in of(network, Enqueue)] == [(REQ1, REQ2)]


FAULTS: dict[str, tuple[Spec, int]] = {
    "none": (replace(PLAIN, most_events=60_000), 0),
    "loss and duplication": (replace(HARD, loss=0.1, dup=0.1), 0),
    "crashes": (replace(HARD, crashes=2), 0),
    "resets": (replace(HARD, resets=2), 0),
    "churn": (replace(HARD, crashes=2), 2),
    "all": (replace(HARD, crashes=2, resets=1, loss=0.1, dup=0.1), 2),
    "long stays": (replace(HARD, stay=5 * SECOND, loss=0.5, crashes=1, most_time=600 * SECOND), 0),
}


def stress(name: str, seeds: Iterable[int], protocol: Any = E2EFT) -> set[str]:
    """Fail if a run breaks a property that lost replica memory does not excuse. Returns the marks of all runs."""
    spec, joins = FAULTS[name]
    marks: set[str] = set()
    for seed in seeds:
        outcome = one_run(protocol, seed, replace(spec, options=QUICK), joins=joins)
        assert not outcome.broken or outcome.excused, f"{name}, seed {seed}: {outcome.broken}: {outcome.why}"
        marks |= outcome.marks
    return marks


@pytest.mark.parametrize("name", FAULTS)
def test_random_runs_under(name: str) -> None:
    marks = stress(name, range(30))
    if name == "long stays":
        assert "lease over" in marks


@pytest.mark.stress
@pytest.mark.parametrize("name", FAULTS)
def test_many_random_runs_under(name: str) -> None:
    stress(name, range(30, 2_400 if name == "all" else 1_200))
