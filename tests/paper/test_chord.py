"""Chord: the routing rule, joins, leaves and crashes, and the flaw of the 2001 rules that Zave reported."""

from __future__ import annotations

import math
import random

import pytest

from fairgate.core.ids import NIL
from fairgate.core.keyspace import clockwise, is_between, past, place_of
from fairgate.core.numbers import COMPILED
from fairgate.overlay.chord import Chord, ChordLiteral
from fairgate.overlay.chord_table import ChordTable, KeptChordTable, SettledChordTable
from fairgate.overlay.ring import Ring
from tests.support.rings import (
    PERIOD,
    World,
    chord_owner,
    rests_after_isolation,
    rests_after_suspicion,
    settled_breaches,
    shuffled,
    wrong_parcels,
)

SMALL = {"chord_successors": 3}


def ring_order(world: World) -> list[int]:
    return sorted(world.members(), key=place_of)


def id_between(before: int, after: int, start: int = 2_000_000) -> int:
    """An id whose place lies between two others."""
    return next(
        me for me in range(start, start + 10_000) if is_between(place_of(me), place_of(before), place_of(after))
    )


# The routing rule.


class Drawn(ChordTable):
    """A table with exactly the entries that a test gives it."""

    def __init__(self, me: int, behind: int, successors: list[int], fingers: dict[int, int]) -> None:
        ChordTable.__init__(self, me, len(successors), 64)
        self.drawn = (behind, successors, fingers)

    def count(self) -> int:
        return len(self.drawn[1])

    def successor(self, i: int) -> int:
        return self.drawn[1][i]

    def start(self) -> int:
        return place_of(self.drawn[0])

    def finger(self, i: int) -> int:
        return self.drawn[2].get(i, NIL)


@pytest.fixture
def eight() -> list[int]:
    """Eight nodes in the order of the circle."""
    return sorted(range(8), key=place_of)


def test_a_key_between_predecessor_and_me_is_mine(eight: list[int]) -> None:
    table = Drawn(eight[1], eight[0], eight[2:4], {})
    assert table.next_hop(place_of(eight[1])) == NIL
    assert table.next_hop(past(place_of(eight[0]), 0)) == NIL
    assert table.next_hop(place_of(eight[0])) != NIL


def test_a_key_among_the_successors_goes_to_its_owner(eight: list[int]) -> None:
    table = Drawn(eight[0], eight[7], eight[1:4], {})
    for i in (1, 2, 3):
        assert table.next_hop(place_of(eight[i])) == eight[i]
        assert table.next_hop(past(place_of(eight[i - 1]), 0)) == eight[i]


def test_any_other_key_goes_to_the_nearest_known_node_before_it(eight: list[int]) -> None:
    me = place_of(eight[0])
    fingers = {}
    for i in range(64):
        finger = chord_owner(eight, past(me, i))
        fingers[i] = NIL if finger == eight[0] else finger
    table = Drawn(eight[0], eight[7], eight[1:2], fingers)
    for key in [place_of(node) for node in eight[2:]]:
        known = {*fingers.values(), eight[1]} - {NIL}
        nearest = min(known, key=lambda node: clockwise(place_of(node), key))
        assert table.next_hop(key) == nearest


def test_without_fingers_a_route_follows_the_successors(eight: list[int]) -> None:
    ring = Ring(tuple(eight))
    tables = {me: SettledChordTable(me, 1, 0, ring) for me in eight}
    assert [tables[me].next_hop(place_of(eight[7])) for me in eight] == [*eight[1:], NIL]


@pytest.mark.parametrize("n", [1, 2, 3, 9, 10, 50, 300])
def test_every_route_ends_at_the_owner(n: int) -> None:
    rng = random.Random(n)
    members = rng.sample(range(10_000), n)
    ring = Ring(tuple(members))
    tables = {me: SettledChordTable(me, 8, 64, ring) for me in members}
    for _ in range(300):
        key = rng.choice([rng.getrandbits(64), place_of(rng.choice(members))])
        at, hops = rng.choice(members), 0
        while tables[at].next_hop(key) != NIL:
            ahead = tables[at].next_hop(key)
            at, hops = ahead, hops + 1
            assert hops <= n.bit_length()
        assert at == chord_owner(members, key)


# Joins, leaves and crashes.


def test_a_ring_begins_with_one_node_and_grows() -> None:
    world = World(Chord, 1, seed=1, options=SMALL)
    world.churn("jjjjj", pause=2)
    assert world.rest(10) < 10
    assert len(world.members()) == 6
    newest = world.nodes[world.newest]
    assert newest.rider.ranges[-1] == newest.table.owned()


def test_a_joining_node_takes_over_its_own_keys_and_no_others() -> None:
    world = World(Chord, 8, seed=2, options=SMALL)
    order = ring_order(world)
    me = id_between(order[0], order[1])
    world.join(me)
    world.run_until(lambda: world.nodes[me].joined)
    assert world.nodes[me].rider.ranges == [(place_of(order[0]), place_of(me))]
    world.periods(1)
    assert world.nodes[order[1]].rider.ranges == [(place_of(me), place_of(order[1]))]
    assert [other for other in order if world.nodes[other].rider.ranges] == [order[1]]


@pytest.mark.parametrize("way", ["leave", "crash"])
def test_the_successor_takes_over_the_keys_of_a_departed_node(way: str) -> None:
    world = World(Chord, 8, seed=3, options=SMALL)
    order = ring_order(world)
    getattr(world, way)(order[3])
    world.periods(3)
    assert world.nodes[order[4]].rider.ranges == [(place_of(order[2]), place_of(order[4]))]
    assert world.nodes[order[2]].table.successors == order[4:7]


def test_an_orderly_leave_is_noticed_before_any_timer_fires() -> None:
    world = World(Chord, 8, seed=3, options=SMALL)
    order = ring_order(world)
    world.leave(order[3])
    world.run(PERIOD // 2)
    assert world.nodes[order[2]].table.successors[0] == order[4]
    assert world.nodes[order[4]].table.predecessor == order[2]
    assert world.marks["a peer fell silent"] == 0


def test_a_ring_survives_adjacent_crashes_of_all_but_one_of_a_successor_list() -> None:
    world = World(Chord, 20, seed=4, options=SMALL)
    order = ring_order(world)
    for me in order[5:7]:
        world.crash(me)
    assert world.rest(20) < 20
    assert world.marks["all successors were lost"] == 0


def test_a_node_whose_successors_all_crash_recovers_through_a_finger() -> None:
    world = World(Chord, 20, seed=5, options=SMALL)
    for me in ring_order(world)[5:8]:
        world.crash(me)
    assert world.rest(40) < 40
    assert world.marks["all successors were lost"] > 0


def test_a_lookup_is_answered_by_the_owner() -> None:
    world = World(Chord, 30, seed=6)
    keys = [world.rng.getrandbits(64) for _ in range(50)]
    for key in keys:
        world.lookup(7, key)
    world.periods(1)
    assert sorted(world.nodes[7].rider.found) == sorted([(key, chord_owner(world.members(), key)) for key in keys])


def test_a_falsely_suspected_node_comes_back() -> None:
    world = World(Chord, 10, seed=7, options=SMALL)
    order = ring_order(world)
    for peer in order[1:4]:
        world.step(order[0], "on_suspect", peer, "P")
    assert world.nodes[order[0]].next_hop(place_of(order[2])) != order[2]
    for peer in order[1:4]:
        world.step(order[0], "on_trust", peer, "P")
    assert world.rest(20) < 20


def test_a_suspected_node_that_others_name_is_asked_again() -> None:
    assert rests_after_suspicion(Chord, SMALL)


def test_a_node_that_takes_all_others_for_dead_keeps_asking_them() -> None:
    assert rests_after_isolation(Chord, SMALL)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("base", "joins", "gone"), [(10, 10, 3), (40, 30, 15)])
def test_after_churn_a_ring_comes_to_rest_with_correct_tables(base: int, joins: int, gone: int, seed: int) -> None:
    """Successors, predecessors and fingers are right after joins, leaves and crashes, and every parcel reaches the
    owner of its key."""
    world = World(Chord, base, seed, {"chord_successors": 4})
    world.churn(shuffled(world.rng, joins, gone, gone), pause=0.4)
    assert world.rest(60) < 60, settled_breaches(world)[:3]
    for _ in range(100):
        world.send_parcel(world.rng.choice(world.members()), world.rng.getrandbits(64))
    world.periods(2)
    assert wrong_parcels(world, chord_owner) == []


def much_churn(nodes: int, seed: int) -> World:
    """`nodes` nodes in all: within five periods a quarter of them joins, and as many others leave or crash."""
    world = World(Chord, 3 * nodes // 4, seed)
    plan = shuffled(world.rng, nodes // 4, nodes // 8, nodes // 8)
    world.churn(plan, pause=5 / len(plan))
    assert world.rest(40) < 40, settled_breaches(world)[:3]
    order = ring_order(world)
    successor = {me: world.nodes[me].table.successors[0] for me in order}
    assert [successor[me] for me in order] == [*order[1:], order[0]]  # one cycle
    for _ in range(1_000):
        world.send_parcel(world.rng.choice(order), world.rng.getrandbits(64))
    world.periods(2)
    assert wrong_parcels(world, chord_owner) == []
    return world


def test_a_thousand_nodes_under_heavy_churn() -> None:
    nodes = 1_000 if COMPILED else 200
    world = much_churn(nodes, seed=8)
    assert len(world.members()) == 3 * nodes // 4
    assert world.hops() < math.log2(nodes) / 2


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(10))
def test_thousands_of_nodes_under_heavy_churn(seed: int) -> None:
    much_churn(3_000, seed)


# The flaw of the 2001 rules that Zave reported.


def stranded(layer: type[Chord]) -> World:
    """Node x joins between p and s and crashes. Before p has noticed, s crashes too. Only one of the two nodes in p's
    successor list has died."""
    world = World(layer, 8, seed=9, options={"chord_successors": 2, "chord_fingers": 0})
    order = ring_order(world)
    p, s = order[2], order[3]
    x = id_between(p, s)
    world.join(x, contact=order[6])
    world.run_until(lambda: world.nodes[s].table.predecessor == x)
    world.crash(x)
    world.run_until(lambda: x in world.nodes[p].table.successors or x in world.nodes[p].awaited)
    world.crash(s)
    world.periods(20)
    return world


def test_the_corrected_rules_keep_the_ring_connected() -> None:
    world = stranded(Chord)
    assert settled_breaches(world) == []
    assert world.marks["all successors were lost"] == 0


def test_the_rules_of_2001_strand_a_node() -> None:
    """p has lost all its successors although the second of the two is alive."""
    world = stranded(ChordLiteral)
    assert world.marks["all successors were lost"] > 0


def test_a_successor_list_ends_before_the_node_itself(eight: list[int]) -> None:
    table = KeptChordTable(eight[5], 8, 64)
    assert table.take_list(eight[6], [eight[7], eight[0], eight[5], eight[6]])
    assert table.successors == [eight[6], eight[7], eight[0]]
    assert not table.take_list(eight[6], [eight[7], eight[0]])
