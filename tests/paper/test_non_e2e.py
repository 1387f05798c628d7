"""Non End-to-End: EE section IV.B sentence by sentence (EE:B1 to B6), figure 2, and each correction to the text.

EE is "Efficient Mutual Exclusion in Peer-to-Peer Systems". papers/non_e2e.md numbers the corrections. Routes are drawn
by hand: nodes 1, 2 and 3 ask, and nodes 4, 5 and 6 lie on the routes to the replicas at nodes 7, 8 and 9.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.kbr import replica_keys
from fairgate.core.layers import over
from fairgate.core.message import Key, Message
from fairgate.core.setup import Setup
from fairgate.overlay.gates import Gates
from fairgate.protocols.non_e2e.literal import NonE2ELiteral
from fairgate.protocols.non_e2e.messages import CleanUp, GrantReq, HandOver, Release, Request, Skip, Yield
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.protocols.non_e2e.state import find, holder_of
from fairgate.scenario.manual import ManualNetwork, Violation
from fairgate.walks.dht import MS, SECOND, Conditions, how_runs_end, one_run, over_overlay
from tests.support.routes import Drawn

KEYS = replica_keys(Setup((0,), options={"gate": 0, "replicas": 3}))
ROUTES = [{1: 4 + i, 2: 4 + i, 3: 4 + i, 4 + i: 7 + i} for i in range(3)]


def drawn(protocol: type[NonE2E] = NonE2E, routes: list[dict[int, int]] | None = None, **options: Any) -> ManualNetwork:
    options = {"replicas": 3, "keys": KEYS, "routes": routes or ROUTES, "retry": SECOND, **options}
    setup = Setup(tuple(range(1, 10)), options=options)
    return ManualNetwork(over(Drawn, over(Gates, protocol)), setup, slots=False, chooser=lambda n: n - 1, census=False)


def at(network: ManualNetwork, me: int) -> NonE2E:
    layer: Any = network.nodes[me]
    node: NonE2E = layer.upper.at(0)
    return node


def replica_key(network: ManualNetwork, me: int, number: int) -> Key:
    replica: Any = at(network, me).replicas[number]  # its key() is derived, so its class does not show it
    key: Key = replica.key()
    return key


def entry_at(network: ManualNetwork, me: int, replica: int) -> Any:
    return find(at(network, me).first, replica)


def entry_shown(network: ManualNetwork, me: int, replica: int) -> Any:
    return at(network, me).show()["replica_list"][replica]


def sent(network: ManualNetwork, kind: type[Message]) -> list[tuple[int, int, Any]]:
    return [(flight.src, flight.dst, flight.msg) for flight in network.flight if isinstance(flight.msg, kind)]


def take(network: ManualNetwork, src: int, dst: int) -> None:
    """Deliver the oldest message from src to dst."""
    network.deliver(next(i for i, flight in enumerate(network.flight) if (flight.src, flight.dst) == (src, dst)))


def winner(network: ManualNetwork) -> ManualNetwork:
    network.acquire(1)
    network.deliver_all()
    assert list(network.inside) == [1]
    return network


# EE:B1 "sends a REQUEST message to all the responsible replicas of that resource"


def test_b1_a_request_goes_to_every_replica() -> None:
    network = drawn()
    network.acquire(1)
    assert [(dst, m.replica, m.target) for _, dst, m in sent(network, Request)] == [
        (4, 0, KEYS[0]),
        (5, 1, KEYS[1]),
        (6, 2, KEYS[2]),
    ]


# EE:B2


def test_b2_without_an_entry_the_replica_list_is_updated_and_the_request_routed_on() -> None:
    network = drawn()
    network.acquire(1)
    take(network, 1, 4)
    assert entry_shown(network, 4, 0) == ((1, 1, 0), (), 1, 7)  # holder, queue, previous, next
    assert [dst for src, dst, _ in sent(network, Request) if src == 4] == [7]


def test_b2_with_an_entry_the_request_is_queued_and_the_requester_told_the_holder() -> None:
    network = drawn()
    network.acquire(1)
    take(network, 1, 4)
    network.acquire(2)
    take(network, 2, 4)
    assert entry_at(network, 4, 0).queue == [(1, 2, 0)]
    assert [(dst, m.holder, m.way, m.vote) for _, dst, m in sent(network, GrantReq)] == [(2, 1, True, False)]
    assert [m.node for src, _, m in sent(network, Request) if src == 4] == [1]  # node 2's request is not forwarded


def test_b2_the_requester_is_a_member_of_its_own_quorum_sets() -> None:
    network = drawn(routes=[{1: 2, 2: 7}, {1: 2, 2: 8}, {1: 2, 2: 9}])
    network.acquire(1)
    for _ in range(3):
        take(network, 1, 2)
    network.acquire(2)  # node 2 has entries for node 1, so it forwards none of its own requests
    assert [m.node for src, _, m in sent(network, Request) if src == 2] == [1, 1, 1]


# EE:B3


def test_b3_a_replica_that_has_not_voted_votes_for_the_requester() -> None:
    network = drawn()
    network.acquire(1)
    take(network, 1, 4)
    take(network, 4, 7)
    assert at(network, 7).replicas[0].owner == (1, 1, 0)
    assert [(src, dst, m.holder, m.vote) for src, dst, m in sent(network, GrantReq)] == [(7, 1, 1, True)]  # directly


def test_b3_a_replica_that_has_voted_queues_the_request_itself() -> None:
    network = drawn(routes=[{1: 4, 4: 7, 2: 7}, *ROUTES[1:]])
    network.acquire(1)
    take(network, 1, 4)
    take(network, 4, 7)
    network.flight.clear()
    network.acquire(2)
    take(network, 2, 7)
    assert at(network, 7).replicas[0].queue == [(1, 2, 0)]
    assert [(dst, m.holder, m.way, m.vote) for _, dst, m in sent(network, GrantReq)] == [(2, 1, False, False)]


# EE:B4


def test_b4_release_deletes_the_entries_gathers_the_queues_and_the_replica_votes_for_the_next() -> None:
    network = winner(drawn(routes=[{1: 4, 3: 4, 4: 5, 2: 5, 5: 7}, *ROUTES[1:]]))
    for me in (3, 2):  # node 4 keeps 3's request and node 5 keeps 2's; both have timestamp 1
        network.acquire(me)
        network.deliver_all()
    assert (entry_at(network, 4, 0).queue, entry_at(network, 5, 0).queue) == ([(1, 3, 0)], [(1, 2, 0)])
    network.release(1)
    take(network, 1, 4)
    assert entry_at(network, 4, 0) is None
    assert [m.queue for src, _, m in sent(network, Release) if src == 4] == [((1, 3, 0),)]
    take(network, 4, 5)
    assert [m.queue for src, _, m in sent(network, Release) if src == 5] == [((1, 2, 0), (1, 3, 0))]  # sorted
    take(network, 5, 7)
    assert (at(network, 7).replicas[0].owner, at(network, 7).replicas[0].queue) == ((1, 2, 0), [(1, 3, 0)])
    assert [(dst, m.vote) for src, dst, m in sent(network, GrantReq) if src == 7] == [(2, True)]


def test_b4_release_goes_to_all_replicas_and_along_next() -> None:
    network = winner(drawn())
    network.setup.options["routes"][0][4] = 6  # the overlay takes another route now
    try:
        network.release(1)
        assert sorted(dst for _, dst, _ in sent(network, Release)) == [4, 5, 6]
        take(network, 1, 4)
        ways = [dst for src, dst, _ in sent(network, Release) if src == 4]
        assert sorted(ways) == [6, 7]  # along the new route too, since the node that Next names may have left
    finally:
        network.setup.options["routes"][0][4] = 7


def tables_disagree(protocol: type[NonE2E]) -> ManualNetwork:
    """Nodes 1 and 2 each take the other for the next hop to all replicas, and ask. Then their tables are right."""
    routes = [{1: 2, 2: 1} for _ in KEYS]
    network = drawn(protocol, routes)
    network.acquire(1)
    network.acquire(2)
    for number, way in enumerate(routes):
        way.update({1: 7 + number, 2: 7 + number})
    network.deliver_all()
    return network


def test_requests_that_cross_while_tables_disagree_are_not_kept_by_each_other() -> None:
    network = tables_disagree(NonE2E)
    assert list(network.inside) == [1]
    network.release(1)
    network.deliver_all()
    assert list(network.inside) == [2]


# Nodes on the path change.


def waits_on_the_path() -> ManualNetwork:
    """Node 1 is inside, and node 2 waits in the queue of node 4."""
    network = winner(drawn(routes=[dict(way) for way in ROUTES]))
    network.acquire(2)
    take(network, 2, 4)
    assert entry_at(network, 4, 0).queue == [(1, 2, 0)]
    network.flight.clear()
    return network


def tell(network: ManualNetwork, me: int, event: str, *arguments: Any) -> None:
    layer: Any = network.nodes[me]
    getattr(layer.upper, event)(*arguments)
    layer.finish_step()
    network.step(me, "on_start")


def test_a_node_that_becomes_the_owner_of_a_key_gives_its_entry_up() -> None:
    network = waits_on_the_path()
    del network.setup.options["routes"][0][4]
    tell(network, 4, "on_range", KEYS[0] - 1, KEYS[0])
    assert entry_at(network, 4, 0) is None
    assert [(dst, m.node) for _, dst, m in sent(network, CleanUp)] == [(7, 1)]
    assert at(network, 4).replicas[0].owner == (1, 2, 0)


def test_a_node_that_leaves_connects_its_neighbours_and_passes_its_queue_on() -> None:
    network = waits_on_the_path()
    tell(network, 4, "on_leave")
    assert entry_at(network, 4, 0) is None
    assert sorted((dst, m.previous, m.next) for _, dst, m in sent(network, Skip)) == [(1, 1, 7), (7, 1, 7)]
    assert [(dst, m.node, m.past) for _, dst, m in sent(network, Request)] == [(7, 2, True)]
    take(network, 4, 1)
    assert entry_at(network, 1, 0).next == 7


def test_a_replica_that_is_handed_over_leaves_nothing_behind_and_votes_if_its_vote_is_free() -> None:
    network = winner(drawn(routes=[dict(way) for way in ROUTES]))
    network.setup.options["routes"][0][7] = 8
    tell(network, 7, "on_range", KEYS[0], KEYS[0] + 1)  # a range that excludes the key
    assert at(network, 7).replicas == {}
    taker = at(network, 8)
    taker.on_handover(HandOver(0, KEYS[0], 0, (), ((1, 2, 0),)))
    assert taker.replicas[0].owner == (1, 2, 0)


# EE:B5, B6


def test_b5_a_majority_of_the_votes_is_enough_and_less_is_not() -> None:
    network = drawn()
    network.acquire(1)
    for way in ((1, 4), (4, 7), (7, 1)):
        take(network, *way)
    assert not network.inside
    for way in ((1, 5), (5, 8), (8, 1)):
        take(network, *way)
    assert list(network.inside) == [1]


def split(protocol: type[NonE2E]) -> ManualNetwork:
    """Nodes 1, 2 and 3 get one vote each; then every message is delivered."""
    routes = [{1: 7 + i, 2: 7 + i, 3: 7 + i} for i in range(3)]
    network = drawn(protocol, routes)
    for me in (1, 2, 3):
        network.acquire(me)
    for me in (1, 2, 3):
        take(network, me, 6 + me)
    network.deliver_all()
    return network


class AllYield(NonE2E):
    earliest_keeps = False


def test_b5_if_nobody_has_a_majority_all_yield() -> None:
    network = split(AllYield)
    yielded = {me for me in (1, 2, 3) if at(network, me).asks and any(ask.attempt for ask in at(network, me).asks)}
    assert len(yielded) >= 2  # with the votes of the others, one of them may win at once
    assert network.inside or {name for _, name in network.timers} == {"upper/0/again"}


def test_b6_a_node_that_yielded_asks_again_after_a_random_time() -> None:
    network = drawn(AllYield, [{1: 7 + i, 2: 7 + i, 3: 7 + i} for i in range(3)])
    for me in (1, 2, 3):
        network.acquire(me)
    for me in (1, 2, 3):
        take(network, me, 6 + me)
    while not sent(network, Yield):
        network.deliver(
            next(i for i, flight in enumerate(network.flight) if isinstance(flight.msg, (Request, GrantReq)))
        )
    [(me, dst, yielded)] = sent(network, Yield)
    assert network.timers[me, "upper/0/again"] == SECOND  # the longest of eight delays: this chooser picks the last
    network.fire(me, "upper/0/again")
    again = [m for src, to, m in sent(network, Request) if (src, to) == (me, dst)]
    assert [(m.ts, m.attempt, m.past) for m in again] == [(yielded.ts, yielded.attempt + 1, False)]


def test_a_requester_enters_after_a_split_vote() -> None:
    network = split(NonE2E)
    for _ in range(50):
        if network.inside:
            break
        network.fire(*min((due, who) for who, due in network.timers.items())[1])
        network.deliver_all()
    assert network.inside


# Figure 2: "Req1 is currently in the critical section. Req2 and Req3 have issued REQUEST messages ..."


def test_figure_2() -> None:
    network = winner(drawn())
    network.acquire(2)
    network.deliver_all()
    network.acquire(3)
    network.deliver_all()
    for i in range(3):  # "... queued by the intermediate nodes of the respective quorum sets"
        entry = entry_at(network, 4 + i, i)
        assert (holder_of(entry), entry.queue) == ((1, 1, 0), [(1, 2, 0), (1, 3, 0)])
        assert at(network, 7 + i).replicas[i].queue == []
    network.release(1)
    network.deliver_all()  # "the partial queues will be merged to form the complete queue of requests at the replicas"
    assert list(network.inside) == [2]
    for i in range(3):
        assert replica_key(network, 7 + i, i) == ((1, 2, 0), ((1, 3, 0),), False)
    network.release(2)
    network.deliver_all()
    assert list(network.inside) == [3]


def test_an_uncontended_entry_costs_two_routes_and_an_answer_per_replica() -> None:
    network = drawn()
    network.acquire(1)
    count = 0
    while network.flight:
        network.deliver()
        count += 1
    network.release(1)
    while network.flight:
        network.deliver()
        count += 1
    assert count == 3 * (2 + 1 + 2)


# Cancelling.


def test_the_turn_of_a_cancelled_request_is_released() -> None:
    network = winner(drawn())
    network.acquire(2)
    network.deliver_all()
    network.cancel(2)
    network.release(1)
    network.deliver_all()
    assert "a turn came for a cancelled request" in network.marks
    network.acquire(3)
    network.deliver_all()
    assert list(network.inside) == [3]


# The corrections: each is needed. Latencies are random and start at 0, so messages overtake each other.

FAST = Conditions(latency=(0, 1_000 * MS), think=100 * MS)


def without(*flags: str) -> type[NonE2E]:
    return type("Without", (NonE2E,), dict.fromkeys(flags, False))


@pytest.mark.parametrize(
    ("flags", "end", "conditions"),
    [
        (("from_owner",), "k", Conditions()),  # (1)
        (("replicas_vote",), "k", Conditions()),  # (2)
        (("asks_again",), "liveness", Conditions()),  # (3)
        (("by_number",), "liveness", Conditions()),  # (4), second half; the first half has its own test below
        (("answers_late",), "liveness", FAST),  # (5); (6) has its own test below
        (("earliest_keeps",), "liveness", Conditions()),  # (7)
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_without_a_correction_runs_break(flags: tuple[str, ...], end: str, conditions: Conditions) -> None:
    assert how_runs_end(over_overlay("strides", without(*flags)), range(300), conditions).get(end, 0) > 0


def test_a_yield_that_gathers_nothing_hangs_more_runs() -> None:
    """Correction 4, tested without 7: with 7 in place, correction 3 alone finds the entries that are left behind."""
    gathers, does_not = [
        how_runs_end(over_overlay("strides", without(*flags)), range(300), Conditions()).get("liveness", 0)
        for flags in (("earliest_keeps",), ("earliest_keeps", "yield_gathers"))
    ]
    assert does_not > 2 * gathers


def given_back_and_late(protocol: type[NonE2E]) -> ManualNetwork:
    """Node 2 has the vote of node 7, yields it to node 1, and gets the vote of node 9. Then the GRANTREQ for node 7's
    first vote arrives."""
    network = drawn(protocol, [{1: 7 + i, 2: 7 + i, 3: 7 + i} for i in range(3)])
    for me, replica in ((2, 7), (3, 9), (1, 8)):
        network.acquire(me)
        take(network, me, replica)
    late = [flight for flight in network.flight if (flight.src, flight.dst) in ((7, 2), (1, 9))]
    network.flight = [flight for flight in network.flight if flight not in late]
    network.deliver_all()
    assert [at(network, 7 + i).replicas[i].owner[1] for i in range(3)] == [1, 1, 2]
    assert list(network.inside) == [1]
    network.flight = late
    network.deliver_all()
    return network


def test_6_a_vote_that_was_given_back_does_not_count_when_it_arrives_late() -> None:
    assert list(given_back_and_late(NonE2E).inside) == [1]
    with pytest.raises(Violation, match="k: 2 inside"):
        given_back_and_late(without("attempts"))


def test_7_a_vote_is_given_back_only_if_an_earlier_request_waits_for_it() -> None:
    network = drawn(routes=[{1: 7 + i, 2: 7 + i, 3: 7 + i} for i in range(3)])
    for me, replica in ((1, 7), (2, 8), (3, 9)):
        network.acquire(me)
        take(network, me, replica)
    take(network, 2, 9)  # node 3 has this vote, and node 2's request is earlier
    take(network, 3, 8)  # node 2 has this vote, and node 3's request is later
    assert [(src, dst) for src, dst, m in sent(network, GrantReq) if m.wanted] == [(9, 3)]
    network.deliver_all()
    assert [at(network, me).asks[2].attempt for me in (1, 2, 3)] == [0, 0, 1]
    assert list(network.inside) == [1]


def test_7_an_owner_is_told_of_earlier_requests_once_and_keeps_its_vote_while_inside() -> None:
    network = drawn(routes=[{1: 7 + i, 2: 7 + i, 3: 7 + i} for i in range(3)])
    network.acquire(3)
    network.deliver_all()
    assert list(network.inside) == [3]
    for me in (2, 1):
        network.acquire(me)
        take(network, me, 7)
    assert [(dst, m.vote) for _, dst, m in sent(network, GrantReq) if m.wanted] == [(3, True)]
    network.deliver_all()
    assert list(network.inside) == [3]
    assert not at(network, 3).asks[0].attempt


def test_the_literal_text_hangs_and_lets_two_in() -> None:
    ends = how_runs_end(over_overlay("strides", NonE2ELiteral), range(300), Conditions())
    assert ends["k"] > 50
    assert ends["liveness"] > 10


@pytest.mark.parametrize("overlay", ["strides", "full", "chord", "pastry"])
def test_300_small_runs_break_nothing(overlay: str) -> None:
    marks: set[str] = set()
    for seed in range(300):
        conditions = (Conditions(), Conditions(cancel=0.3, think=200 * MS), FAST)[seed % 3]
        marks |= one_run(over_overlay(overlay, NonE2E), seed, conditions).marks
    assert {"a turn came for a cancelled request", "a GRANTREQ came for a request that is over"} <= marks
