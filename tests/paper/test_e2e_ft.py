"""EE section V.A, on ways drawn by hand as in test_e2e.py, and in random runs under all its failures."""

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


def drawn(straight: tuple[int, ...] = (0, 1, 2), copies: int = 2) -> ManualNetwork:
    routes = [{me: 6 + i if me in straight else 3 + i for me in range(3)} | {3 + i: 6 + i} for i in range(3)]
    setup = Setup(
        tuple(range(9)), options={"routes": routes, "copies": copies, "lease": LEASE, "ping": PING, "drift": 0}
    )
    setup.options["keys"] = replica_keys(setup)
    return ManualNetwork(over(Drawn, over(Gates, E2EFT)), setup, slots=False, chooser=from_floats(lambda: 0.5))


def waiting(network: ManualNetwork, *nodes: int) -> None:
    for me in nodes:
        node(network, me).clock = 10 * me
        network.acquire(me)
        network.deliver_all()


def pass_time(network: ManualNetwork, seconds: int) -> None:
    """Every message arrives before anything else happens."""
    for _ in range(seconds):
        network.advance(SECOND)
        network.deliver_all()


def test_the_queue_is_kept_at_the_first_n_waiters_too() -> None:
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


def test_when_the_holder_fails_a_waiter_takes_over_with_the_queue() -> None:
    network = drawn(copies=1)
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    network.crash(REQ1)
    pass_time(network, 80)
    assert {"the owner was silent", "a waiter took the queue over"} <= network.marks
    assert list(network.inside) == [REQ2]
    assert node(network, REQ2).queue == [(21, REQ3)]
    assert [node(network, 6 + i).replicas[i].holder for i in range(3)] == [REQ2] * 3  # it told all replicas
    network.release(REQ2)
    pass_time(network, 2)
    assert list(network.inside) == [REQ3]


def test_the_one_with_the_newest_copy_goes_first_whatever_the_timestamps() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    copy = node(network, REQ2)
    waiting(network, REQ3)
    copy.copy, copy.copy_sequence = ((11, REQ2),), 1  # the last update is still on its way to Req2
    network.crash(REQ1)
    pass_time(network, 80)
    assert list(network.inside) == [REQ3]


def test_it_stands_the_failure_of_the_waiters_with_copies_too() -> None:
    network = drawn(copies=1)
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    network.crash(REQ1)
    network.crash(REQ2)
    pass_time(network, 400)  # without a copy Req3 asks seldom
    assert list(network.inside) == [REQ3]


def test_a_holder_that_was_suspected_without_cause_has_lost_before_another_is_in() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    for _ in range(80):  # nothing from or to Req1 arrives any more
        network.advance(SECOND)
        while network.flight:
            cut = REQ1 in (network.flight[0].src, network.flight[0].dst)
            network.drop() if cut else network.deliver()
    assert [(me, why) for me, _, why in network.lost] == [(REQ1, "lease over")]
    assert list(network.inside) == [REQ2]


def test_a_token_lets_nobody_in_before_a_majority_has_confirmed() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    network.release(REQ1)
    deliver(network, Token)
    assert not network.inside
    deliver(network, IAmWinner)
    network.deliver(network.flight.index(of(network, Confirm)[0]))
    assert not network.inside
    network.deliver(network.flight.index(of(network, Confirm)[0]))
    assert list(network.inside) == [REQ2]


@pytest.mark.parametrize("lineage", [True, False])
def test_a_replica_under_a_promise_takes_no_owner_of_another_lineage(lineage: bool) -> None:
    """Only who got the token from its holder, whose words begin with the same random number."""
    network = drawn()
    inside(network, REQ1)
    given = node(network, REQ1).lineage + (0 if lineage else 1)
    key = network.setup.options["keys"][0]
    network.step(6, "on_message", REQ3, IAmWinner(0, key, 0, REQ3, 99, 99, given, 1))
    assert [flight.dst for flight in of(network, Confirm)] == ([REQ3] if lineage else [])
    assert node(network, 6).replicas[0].holder == (REQ3 if lineage else REQ1)


def test_when_a_node_of_a_quorum_set_fails_another_way_is_taken() -> None:
    network = drawn(straight=())
    inside(network, REQ1)
    network.crash(3)
    network.setup.options["routes"][0].update({REQ1: 4, 4: 6})  # the overlay has mended its tables
    pass_time(network, 11)  # IAMWINNER goes round the dead node
    assert (node(network, REQ1).entries[0].next, node(network, 4).entries[0].owner) == (4, REQ1)
    network.release(REQ1)
    pass_time(network, 1)
    assert node(network, 4).entries[0].owner == NIL
    assert node(network, 6).replicas[0].holder == NIL


def test_release_goes_along_the_old_way_and_the_new_one() -> None:
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


def split(first: int, second: int) -> ManualNetwork:
    """Replica 6 has voted for the first of the two, 7 for the second, and 8 is dead: none has a majority."""
    network = drawn()
    network.crash(8)
    for me, replica in ((first, 6), (second, 7)):
        network.acquire(me)
        network.deliver(
            next(at for at, flight in enumerate(network.flight) if (flight.src, flight.dst) == (me, replica))
        )
    return network


def test_a_vote_that_an_earlier_request_waits_for_is_yielded_though_a_replica_is_silent() -> None:
    """Else each of the two keeps its vote, since not all replicas have answered, and never will."""
    network = split(REQ1, REQ2)
    network.deliver_all()
    assert [node(network, me).votes for me in (REQ1, REQ2)] == [1, 1]
    pass_time(network, 2 * LEASE // SECOND)
    assert list(network.inside) == [REQ1]


def test_who_has_a_vote_asks_again_before_it_ends() -> None:
    """However seldom it has asked while it had none."""
    network = drawn()
    network.acquire(REQ1)
    for _ in range(20):
        network.flight.clear()  # nothing gets through
        network.fire(REQ1, "upper/0/ask")
    deliver(network, Request)
    network.flight[:] = of(network, Response)[:1]
    network.deliver_all()
    network.advance(LEASE // 3)
    assert len(of(network, Request)) == 3


# A node that lost its memory begins anew, and replicas remember what it said before.


def test_a_request_from_before_does_not_hide_the_present_one() -> None:
    """Else replica 7 never asks its vote back for Req1, whose stamps have begun anew, and 6 never gives it to Req2."""
    network = split(REQ1, REQ2)
    node(network, 7).replicas[1].waiting = [(0, 99, REQ1, 0)]
    pass_time(network, 3 * LEASE // SECOND)
    assert list(network.inside) == [REQ1]


def test_a_rank_from_before_does_not_keep_a_vote() -> None:
    """Req2 had a copy of the queue when 7 voted for it, and has none now: it is not better than Req1 any more."""
    network = split(REQ1, REQ2)
    node(network, 7).replicas[1].vote_known = 5
    pass_time(network, 3 * LEASE // SECOND)
    assert list(network.inside) == [REQ1]


def test_a_vote_from_before_is_had_again_at_once() -> None:
    """Its round is far ahead of what the node counts now: it would be renewed, and not be counted, for 50 rounds."""
    network = drawn()
    for i, key in enumerate(network.setup.options["keys"]):
        network.step(6 + i, "on_message", REQ1, Request(0, key, i, REQ1, 1, 50, 0, 0))
    network.flight.clear()
    network.acquire(REQ1)
    pass_time(network, 1)
    assert list(network.inside) == [REQ1]


def test_an_enqueue_that_comes_twice_is_passed_on_once() -> None:
    """Else, where messages are doubled, what runs after a TOKEN becomes ever more."""
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
    """What broke beyond what quorums allow for, by name, and the marks."""
    spec, joins = FAULTS[name]
    marks: set[str] = set()
    for seed in seeds:
        outcome = one_run(protocol, seed, replace(spec, options=QUICK), joins=joins)
        assert not outcome.broken or outcome.excused, f"{name}, seed {seed}: {outcome.broken}: {outcome.why}"
        marks |= outcome.marks
    return marks


@pytest.mark.parametrize("name", FAULTS)
def test_under(name: str) -> None:
    marks = stress(name, range(30))
    if name == "long stays":
        assert "lease over" in marks


@pytest.mark.stress
@pytest.mark.parametrize("name", FAULTS)
def test_long_under(name: str) -> None:
    stress(name, range(30, 2_400 if name == "all" else 1_200))
