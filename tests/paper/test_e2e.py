"""End-to-End: EE section IV.A sentence by sentence, then each correction to it.

EE is "Efficient Mutual Exclusion in Peer-to-Peer Systems". Step n is the paper's numbered step, which papers/e2e.md
labels An. A number alone, as in test_7, is the correction's number in that file. Routes are drawn by hand: requesters
0 to 2, intermediate nodes 3 to 5, replicas at nodes 6 to 8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_keys
from fairgate.core.layers import over
from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.mutation.deletions import load_mutant, source_of
from fairgate.overlay.gates import Gates
from fairgate.protocols.e2e.literal import E2ELiteral
from fairgate.protocols.e2e.messages import (
    Enqueue,
    IAmWinner,
    Recall,
    Release,
    Request,
    Response,
    SentBack,
    Token,
    Yield,
)
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.e2e.replica import Replica
from fairgate.scenario.manual import Flight, ManualNetwork, Violation
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.support.dht_walk import Outcome
from tests.support.e2e_walk import PLAIN, one_run
from tests.support.routes import Drawn

REQ1, REQ2, REQ3 = 0, 1, 2


def drawn(straight: tuple[int, ...] = (), replicas: int = 3, protocol: Any = E2E) -> ManualNetwork:
    """Requesters reach replica i through node 3+i; those in `straight` reach it directly."""
    routes = [{me: 6 + i if me in straight else 3 + i for me in range(3)} | {3 + i: 6 + i} for i in range(replicas)]
    setup = Setup(tuple(range(9)), options={"replicas": replicas, "routes": routes})
    setup.options["keys"] = replica_keys(setup)
    return ManualNetwork(over(Drawn, over(Gates, protocol)), setup, slots=False)


def node(network: ManualNetwork, me: int) -> Any:
    upper: Any = network.nodes[me]
    return upper.upper.at(0)


def of(network: ManualNetwork, kind: type[Message]) -> list[Flight]:
    return [flight for flight in network.flight if isinstance(flight.msg, kind)]


def deliver(network: ManualNetwork, kind: type[Message], *dst: int) -> None:
    """Deliver all messages of a kind, including those sent meanwhile; with `dst`, only those to these nodes."""
    while wanted := [flight for flight in of(network, kind) if not dst or flight.dst in dst]:
        network.deliver(network.flight.index(wanted[0]))


def inside(network: ManualNetwork, me: int) -> None:
    network.acquire(me)
    network.deliver_all()
    assert list(network.inside) == [me]


def test_step_1_a_requester_routes_a_request_to_every_replica() -> None:
    network = drawn()
    network.acquire(REQ1)
    assert [(flight.dst, flight.msg.replica) for flight in of(network, Request)] == [(3, 0), (4, 1), (5, 2)]  # type: ignore[attr-defined]
    deliver(network, Request, 3)
    assert [flight.dst for flight in of(network, Request)] == [4, 5, 6]  # node 3 has no entry, so it forwards


def test_step_3_a_response_goes_directly_to_the_requester_and_names_the_owner() -> None:
    network = drawn()
    network.acquire(REQ1)
    deliver(network, Request)
    assert [(f.src, f.dst) for f in of(network, Response)] == [(6, REQ1), (7, REQ1), (8, REQ1)]
    first: Any = of(network, Response)[0].msg
    assert (first.vote, first.owner, first.owner_stamp) == (True, REQ1, 1)
    network.acquire(REQ2)
    deliver(network, Request)
    second: Any = of(network, Response)[-1].msg
    assert (second.vote, second.owner, second.owner_stamp) == (False, REQ1, 1)


def test_step_4_a_majority_is_enough_and_iamwinner_goes_to_all_replicas() -> None:
    network = drawn()
    network.acquire(REQ1)
    deliver(network, Request)
    network.deliver()
    assert not network.inside
    network.deliver()  # the second of three
    assert list(network.inside) == [REQ1]
    assert [flight.dst for flight in of(network, IAmWinner)] == [3, 4, 5]


def test_step_4_next_and_previous_are_updated_on_the_way() -> None:
    network = drawn()
    inside(network, REQ1)
    for i in range(3):
        entry = node(network, 3 + i).entries[i]
        assert (entry.owner, entry.previous, entry.next) == (REQ1, REQ1, 6 + i)
        assert node(network, 6 + i).replicas[i].holder == REQ1


def test_step_4_when_nobody_has_a_majority_the_requesters_yield_and_the_earliest_wins() -> None:
    network = drawn(straight=(0, 1, 2))
    for me in (REQ1, REQ2, REQ3):
        network.acquire(me)
    for i, me in enumerate((REQ3, REQ2, REQ1)):  # each replica votes for a different requester
        for flight in of(network, Request):
            if flight.dst == 6 + i and flight.src == me:
                network.deliver(network.flight.index(flight))
    deliver(network, Request)
    deliver(network, Response)
    assert not network.inside
    deliver(network, Recall)
    assert {flight.src for flight in of(network, Yield)} == {REQ2, REQ3}  # votes that REQ1, the earliest, waits for
    deliver(network, Yield)
    deliver(network, Response)
    assert list(network.inside) == [REQ1]


def test_figure_1() -> None:
    """Req1 is inside and Req2 is in its queue. Req3's requests are intercepted in all three quorum sets and join it."""
    network = drawn(straight=(REQ2,))
    inside(network, REQ1)
    network.acquire(REQ2)
    network.deliver_all()
    assert node(network, REQ1).queue == [(1, REQ2)]
    network.acquire(REQ3)
    deliver(network, Request)
    assert [(f.src, f.dst) for f in of(network, Enqueue)] == [(3, REQ1), (4, REQ1), (5, REQ1)]
    assert not of(network, Response), "no replica has received Req3's request"
    network.deliver_all()
    assert node(network, REQ1).queue == [(1, REQ2), (1, REQ3)]
    for i in range(3):
        assert [me for me in (REQ1, 3 + i) if node(network, me).entries[i].owner == REQ1] == [REQ1, 3 + i]
    assert "a REQUEST was intercepted" in network.marks


def test_step_5_the_owner_keeps_its_queue_sorted_by_timestamps() -> None:
    network = drawn(straight=(0, 1, 2))
    inside(network, REQ1)
    node(network, REQ2).ahead = 7
    network.acquire(REQ2)
    network.deliver_all()
    network.acquire(REQ3)
    network.deliver_all()
    stamps = [stamp for stamp, _ in node(network, REQ1).queue]
    assert stamps == sorted(stamps)
    assert [member for _, member in node(network, REQ1).queue] == [REQ3, REQ2]


def test_step_6_release_goes_along_the_next_pointers_and_cleans_up() -> None:
    network = drawn()
    inside(network, REQ1)
    network.setup.options["routes"][0][REQ1] = 6  # the overlay has a shorter route now
    network.release(REQ1)
    # Along Next (3) and along the new route (6), since the node that Next names may have left.
    assert sorted(flight.dst for flight in of(network, Release)) == [3, 4, 5, 6]
    network.deliver_all()
    for i in range(3):
        assert node(network, 3 + i).entries[i].owner == NIL
        assert node(network, REQ1).entries[i].owner == NIL
        assert node(network, 6 + i).replicas[i].holder == NIL


def test_step_7_the_token_goes_to_the_head_of_the_queue_with_the_rest_of_it() -> None:
    network = drawn(straight=(0, 1, 2))
    inside(network, REQ1)
    network.acquire(REQ2)
    network.deliver_all()
    node(network, REQ3).ahead = 9
    network.acquire(REQ3)
    network.deliver_all()
    network.release(REQ1)
    (token,) = of(network, Token)
    assert token.dst == REQ2
    assert token.msg.requests == ((10, REQ3),)  # type: ignore[attr-defined]
    network.deliver_all()
    assert list(network.inside) == [REQ2]
    network.release(REQ2)
    network.deliver_all()
    assert list(network.inside) == [REQ3]


# The corrections, one by one.


def without(**methods: Any) -> type[E2E]:
    return type("Without", (E2E,), methods)


def no_unwanted(self: E2E, m: Token) -> None:
    self.take_queue(m.requests)


def no_late_vote(self: E2E, m: Response) -> None:
    pass


def recall_for_a_winner_only(self: E2E, i: int, r: Replica, won: bool) -> None:
    if won:
        E2E.recall(self, i, r, won)


# Loaded from source, so that the functions fit any E2E, compiled or not.
LITERAL = vars(load_mutant(source_of(E2ELiteral).read_text(), "literal").E2ELiteral)


def test_1_a_replica_stays_owned_while_the_token_travels() -> None:
    network = drawn(straight=(0, 1, 2))
    inside(network, REQ1)
    network.acquire(REQ2)
    network.deliver_all()
    network.release(REQ1)
    deliver(network, Release)
    assert [node(network, 6 + i).replicas[i].holder for i in range(3)] == [REQ2] * 3
    network.acquire(REQ3)
    deliver(network, Request)
    deliver(network, Response)
    assert not network.inside
    network.deliver_all()
    assert list(network.inside) == [REQ2]


def freed_by_an_old_release(protocol: type[E2E]) -> ManualNetwork:
    """Req1's RELEASEs are late. Req2's ENQUEUE is sent back, and it asks again and wins. Then the RELEASEs arrive, and
    Req3 asks."""
    network = drawn((0, 1, 2), 3, protocol)
    inside(network, REQ1)
    network.release(REQ1)
    late = of(network, Release)
    network.flight = []
    inside(network, REQ2)
    network.flight = late
    network.deliver_all()
    network.acquire(REQ3)
    network.deliver_all()
    return network


def test_2_generations_keep_an_old_release_from_freeing_a_new_owner() -> None:
    assert list(freed_by_an_old_release(E2E).inside) == [REQ2]
    with pytest.raises(Violation, match="k: 2 inside"):
        freed_by_an_old_release(without(is_news=LITERAL["is_news"]))


def test_2_an_iamwinner_that_arrives_after_its_release_is_ignored() -> None:
    network = drawn()
    network.acquire(REQ1)
    deliver(network, Request)
    deliver(network, Response)
    network.release(REQ1)
    deliver(network, Release)
    deliver(network, IAmWinner)
    assert [node(network, 6 + i).replicas[i].holder for i in range(3)] == [NIL] * 3
    assert [node(network, 3 + i).entries[i].owner for i in range(3)] == [NIL] * 3
    inside(network, REQ2)


@pytest.mark.parametrize(("protocol", "times"), [(E2E, 1), (without(put=LITERAL["put"]), 3)])
def test_7_a_request_is_queued_only_once(protocol: type[E2E], times: int) -> None:
    network = drawn((0, 1, 2), 3, protocol)
    inside(network, REQ1)
    network.acquire(REQ2)
    network.deliver_all()
    assert len(node(network, REQ1).queue) == times


def test_7_a_request_that_was_sent_back_is_not_intercepted_again() -> None:
    network = drawn()
    inside(network, REQ1)
    network.acquire(REQ3)
    deliver(network, Request)
    network.release(REQ1)
    deliver(network, Enqueue)
    deliver(network, SentBack)
    assert node(network, 3).entries[0].owner == REQ1, "RELEASE and STALE are still in flight"
    deliver(network, Request)
    deliver(network, Response)
    assert list(network.inside) == [REQ3]


@pytest.mark.parametrize(("protocol", "owner"), [(E2E, NIL), (without(return_vote=no_late_vote), REQ1)])
def test_8_a_vote_for_a_request_that_is_over_is_returned(protocol: type[E2E], owner: int) -> None:
    network = drawn((0, 1, 2), 3, protocol)
    network.acquire(REQ1)
    late = network.flight.pop()
    network.deliver_all()
    network.release(REQ1)
    network.deliver_all()
    network.flight.append(late)
    network.deliver_all()
    assert node(network, 8).replicas[2].vote == owner


def two_with_one_vote(protocol: type[E2E]) -> ManualNetwork:
    """Req2 has the vote of replica 0 when Req1 wins. Req1 leaves, Req3 asks replicas 0 and 2, and only then does Req2's
    request reach replica 1."""
    network = drawn((0, 1, 2), 3, protocol)
    network.acquire(REQ2)
    deliver(network, Request, 6)
    deliver(network, Response)
    late = of(network, Request)
    network.flight = [flight for flight in network.flight if flight not in late]
    network.acquire(REQ1)
    deliver(network, Request, 7, 8)
    deliver(network, Response)
    assert list(network.inside) == [REQ1]
    deliver(network, IAmWinner)
    network.release(REQ1)
    deliver(network, Release)
    network.flight = []  # Req1's request to replica 0 and the RECALL do not arrive in this run
    network.acquire(REQ3)
    deliver(network, Request, 6, 8)
    network.flight = [*late, *network.flight]
    deliver(network, Request, 7)
    deliver(network, Response)
    return network


def test_4_a_winner_does_not_take_the_vote_of_another() -> None:
    assert list(two_with_one_vote(E2E).inside) == [REQ2]
    with pytest.raises(Violation, match="k: 2 inside"):
        two_with_one_vote(without(dispossess=LITERAL["dispossess"]))


def test_4_a_contested_vote_ends_with_one_node_inside() -> None:
    network = drawn(straight=(0, 1, 2))
    network.acquire(REQ2)
    deliver(network, Request, 6)
    network.acquire(REQ1)
    deliver(network, Request, 7, 8)
    for flight in [flight for flight in of(network, Response) if flight.dst == REQ1]:
        network.deliver(network.flight.index(flight))
    assert not network.inside, "Req2's request reached replicas 1 and 2 first"
    network.deliver_all()
    assert len(network.inside) == 1


def test_5_an_enqueue_to_a_former_owner_is_sent_back() -> None:
    network = drawn()
    inside(network, REQ1)
    network.acquire(REQ3)
    deliver(network, Request)
    assert len(of(network, Enqueue)) == 3
    network.release(REQ1)
    deliver(network, Enqueue)
    assert [(f.src, f.dst) for f in of(network, SentBack)] == [(REQ1, REQ3)] * 3
    network.deliver_all()
    assert list(network.inside) == [REQ3]


def test_5_a_replica_learns_a_generation_that_is_over_from_the_repeated_request() -> None:
    """Otherwise it would vote with an older one, and a late RELEASE would free it while the next winner is inside."""
    network = drawn(straight=(0, 1, 2))
    inside(network, REQ1)
    key = replica_keys(network.setup)[0]
    network.step(6, "on_message", REQ3, Request(0, key, 0, REQ3, 50, 1, 3, 0))  # sent back by the owner of generation 3
    replica = node(network, 6).replicas[0]
    assert (replica.vote, replica.holder, replica.generation) == (REQ3, NIL, 3)


def test_8_a_vote_that_is_returned_goes_to_the_next_request() -> None:
    network = drawn(straight=(0, 1, 2))
    for me in (REQ1, REQ2):
        network.acquire(me)
        deliver(network, Request, 6)
    replica, key = node(network, 6).replicas[0], replica_keys(network.setup)[0]
    assert replica.vote == REQ1
    network.step(6, "on_message", REQ1, Release(0, key, 0, REQ1, replica.vote_stamp, 0, 0, NIL, 0))
    assert replica.vote == REQ2


def test_6_an_enqueue_that_overtakes_the_token_waits_for_it() -> None:
    network = drawn(straight=(0, 1, 2))
    inside(network, REQ1)
    network.acquire(REQ2)
    network.deliver_all()
    network.release(REQ1)
    deliver(network, Release)
    network.acquire(REQ3)
    deliver(network, Request)
    deliver(network, Enqueue)
    assert node(network, REQ2).early
    network.deliver_all()
    assert list(network.inside) == [REQ2]
    network.release(REQ2)
    network.deliver_all()
    assert list(network.inside) == [REQ3]


def test_the_turn_of_a_cancelled_request_is_released() -> None:
    network = drawn(straight=(0, 1, 2))
    inside(network, REQ1)
    network.acquire(REQ2)
    network.deliver_all()
    network.cancel(REQ2)
    network.release(REQ1)
    network.deliver_all()
    assert not network.inside
    inside(network, REQ3)


def runs(protocol: Any, seeds: range = range(100)) -> dict[str, int]:
    found: dict[str, int] = {}
    for seed in seeds:
        outcome: Outcome = one_run(protocol, seed, PLAIN)
        found[outcome.broken] = found.get(outcome.broken, 0) + 1
    return found


WITHOUT = {
    "1 named_heir": (without(named_heir=LITERAL["named_heir"]), "k"),
    "3 keep": (without(keep=LITERAL["keep"]), "hang"),
    "5 redirect": (without(redirect=LITERAL["redirect"]), "hang"),
    "6 keep_early": (without(keep_early=LITERAL["keep_early"]), "hang"),
    "7 decline": (without(decline=no_unwanted), "hang"),
    "recall": (without(recall=recall_for_a_winner_only), "hang"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_each_correction_is_needed(name: str) -> None:
    protocol, expected = WITHOUT[name]
    found = runs(protocol)
    assert found.get(expected, 0) > 5, found


def test_the_literal_text_hangs_and_lets_two_in() -> None:
    found = runs(E2ELiteral)
    assert found.get("", 0) < 6
    assert found.get("k", 0) + found.get("grant", 0) > 0


def test_with_all_corrections_nothing_breaks() -> None:
    assert runs(E2E, range(300)) == {"": 300}


def test_nothing_breaks_if_owned_replicas_answer_too() -> None:
    spec = replace(PLAIN, options={"tells": True})
    assert {one_run(E2E, seed, spec).broken for seed in range(300)} == {""}


def keep_the_last_message(self: E2E, r: Replica, node: int, stamp: int, round: int, known: int) -> None:
    r.waiting = [request for request in r.waiting if request[2] != node]
    r.waiting.append((-known, stamp, node, round))


@pytest.mark.parametrize(("protocol", "kept"), [(E2E, 9), (without(keep=keep_the_last_message), 3)])
def test_10_a_replica_keeps_the_later_of_two_requests_of_one_node(protocol: Any, kept: int) -> None:
    network = drawn(straight=(0, 1, 2), protocol=protocol)
    network.acquire(REQ1)
    deliver(network, Request, 6)  # which votes for it
    for stamp in (9, 3):
        network.step(6, "on_message", REQ2, Request(0, replica_keys(network.setup)[0], 0, REQ2, stamp, 0, 0, 0))
    assert [stamp for _, stamp, _, _ in node(network, 6).replicas[0].waiting] == [kept]


def test_10_a_late_request_does_not_replace_a_later_one_of_the_same_node() -> None:
    """A run that hung before requests were stamped by time, because the replica forgot the later request."""
    config = Config(
        protocol="e2e",
        nodes=5,
        k=1,
        rate=1.0,
        cs=0.0,
        latency="uniform:0,3",
        requests=4,
        seed=124,
        faults="reorder:0.3",
        stack=("settled_chord",),
        options={"chord_successors": 1, "chord_fingers": 0},
        marks=True,
    )
    result = simulate(config)
    assert result.broken == ()
    assert "a REQUEST came after a later one of the same node" in result.marks
