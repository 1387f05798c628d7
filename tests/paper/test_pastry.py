"""Pastry: the routing rule, the prefix table, joins, leaves, and l/2 - 1 adjacent crashes (l: size of a leaf set)."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from fairgate.core.ids import NIL
from fairgate.core.keyspace import apart, digit, key_of, middle, past, place_of, shared_digits, with_digit
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Options
from fairgate.overlay.pastry import Pastry
from fairgate.overlay.pastry_table import KeptPastryTable, PastryTable, SettledPastryTable
from fairgate.overlay.ring import Ring
from tests.support.rings import World, pastry_owner, settled_breaches, shuffled, wrong_parcels

SMALL = {"pastry_leaves": 8, "pastry_cells": 16}
BIG = [(100, 1_000), (1_000, 1_000), (10_000, 1_000), (100_000, 1_000)]


def ring_order(world: World) -> list[int]:
    return sorted(world.members(), key=place_of)


# Digits.


def test_digits_are_read_from_the_left() -> None:
    place = 0x123456789ABCDEF0
    assert [digit(place, row, 4) for row in range(16)] == [*range(1, 16), 0]
    assert shared_digits(place, 0x1234FFFFFFFFFFFF, 4) == 4
    assert shared_digits(place, place, 4) == 16
    assert shared_digits(place, place ^ 1, 4) == 15
    assert with_digit(place, 3, 0xF, 4) == 0x123F56789ABCDEF0


def test_a_key_halfway_between_two_neighbours_belongs_to_the_one_after_it() -> None:
    assert middle(10, 20) == 14  # 15 is equally far from both, and belongs to 20
    assert middle(10, 21) == 15
    assert middle(past(0, 63), 0) == (3 << 62) - 1


# The routing rule.


def walk(tables: dict[int, PastryTable], at: int, key: int) -> list[int]:
    route = [at]
    while tables[at].next_hop(key) != NIL:
        at = tables[at].next_hop(key)
        assert at not in route, f"the route is a cycle: {route}"
        route.append(at)
    return route


@pytest.mark.parametrize("n", [1, 2, 3, 9, 24, 25, 50, 400])
@pytest.mark.parametrize(("bits", "leaves"), [(4, 24), (4, 4), (2, 8), (1, 2)])
def test_every_route_ends_at_the_owner(n: int, bits: int, leaves: int) -> None:
    rng = random.Random(n)
    members = rng.sample(range(10_000), n)
    ring = Ring(tuple(members))
    tables: dict[int, PastryTable] = {me: SettledPastryTable(me, bits, leaves, ring) for me in members}
    for _ in range(100):
        key = rng.choice([rng.getrandbits(64), place_of(rng.choice(members))])
        assert walk(tables, rng.choice(members), key)[-1] == pastry_owner(members, key)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 40])
def test_a_settled_table_finds_the_same_nearest_leaf_as_a_walk_along_the_leaves(n: int) -> None:
    ring = Ring(tuple(range(n)))
    places = [place_of(ident) for ident in range(n)]
    keys = [key_of(f"key {i}") for i in range(200)]
    keys += [(place + step) % 2**64 for place in places for step in (-1, 0, 1)]
    keys += [middle(before, after) + step for before in places for after in places for step in (0, 1)]
    for me in range(n):
        table = SettledPastryTable(me, 4, 4, ring)
        for key in keys:
            assert table.nearest_leaf(key % 2**64) == PastryTable.nearest_leaf(table, key % 2**64)


def test_every_hop_shares_more_digits_or_comes_nearer() -> None:
    rng = random.Random(5)
    members = rng.sample(range(10_000), 500)
    ring = Ring(tuple(members))
    tables: dict[int, PastryTable] = {me: SettledPastryTable(me, 4, 8, ring) for me in members}
    for _ in range(300):
        key = rng.getrandbits(64)
        *way, last = walk(tables, rng.choice(members), key)
        assert last == pastry_owner(members, key)
        for here, there in pairwise(way):
            row = shared_digits(place_of(here), key, 4)
            assert shared_digits(place_of(there), key, 4) >= row
            assert shared_digits(place_of(there), key, 4) > row or apart(key, place_of(there)) < apart(
                key, place_of(here)
            )


def test_if_a_cell_is_empty_the_known_node_nearest_to_the_key_is_used() -> None:
    members = sorted(range(300), key=place_of)
    me = members[0]
    table = KeptPastryTable(me, 4, 2)
    for peer in members[1:]:
        table.learn(peer)
    key = with_digit(place_of(me), 0, 9, 4)
    there = table.cell(0, 9)
    assert table.next_hop(key) == there
    table.forget(there)
    assert table.cell(0, 9) == NIL
    known = [peer for peer in table.known() if apart(key, place_of(peer)) < apart(key, place_of(me))]
    assert table.next_hop(key) == pastry_owner(known, key)


def test_a_cell_keeps_the_matching_node_nearest_to_its_goal() -> None:
    members = list(range(400))
    table = KeptPastryTable(0, 4, 8)
    for peer in members[1:]:
        table.learn(peer)
    for row in range(3):
        for column in range(16):
            goal = table.goal(row, column)
            fit = [peer for peer in members if shared_digits(place_of(peer), goal, 4) > row]
            own = column == digit(place_of(0), row, 4)
            assert table.cell(row, column) == (pastry_owner(fit, goal) if fit and not own else NIL)


@pytest.mark.parametrize(("n", "keys"), BIG)
def test_a_route_takes_about_log16_n_hops(n: int, keys: int) -> None:
    rng = random.Random(n)
    ring = Ring(tuple(range(n)))
    hops = 0
    for _ in range(keys):
        at, key = rng.randrange(n), rng.getrandbits(64)
        while (at := SettledPastryTable(at, 4, 24, ring).next_hop(key)) != NIL:
            hops += 1
    assert math.log(n, 16) - 0.4 < hops / keys < math.log(n, 16) + 0.1


# Joins, leaves and crashes.


def test_a_ring_begins_with_one_node_and_grows() -> None:
    world = World(Pastry, 1, seed=1, options=SMALL)
    world.churn("jjjjj", pause=2)
    assert world.rest(20) < 20
    assert len(world.members()) == 6
    newest = world.nodes[world.newest]
    assert newest.rider.ranges[-1] == newest.table.owned()


def test_nobody_knows_a_node_that_is_still_joining() -> None:
    world = World(Pastry, 20, seed=2, options=SMALL)
    world.join(77)

    def known() -> bool:
        return any(77 in node.table.known() for node in world.nodes.values())

    world.run_until(lambda: world.nodes[77].joined or known())
    assert not known()
    assert world.rest(20) < 20


@pytest.mark.parametrize("way", ["leave", "crash"])
def test_the_neighbours_share_the_keys_of_a_departed_node(way: str) -> None:
    world = World(Pastry, 20, seed=3, options=SMALL)
    order = ring_order(world)
    getattr(world, way)(order[3])
    world.periods(3)
    border = middle(place_of(order[2]), place_of(order[4]))
    assert world.nodes[order[2]].rider.ranges[-1][1] == border
    assert world.nodes[order[4]].rider.ranges[-1][0] == border
    assert world.nodes[order[2]].neighbours(99) == SettledPastryTable(
        order[2], 4, 8, Ring(tuple(world.members()))
    ).neighbours(99)


@pytest.mark.parametrize("half", [2, 4])
def test_routing_survives_adjacent_crashes_of_one_less_than_half_a_leaf_set(half: int) -> None:
    """Every node still reaches every key three periods later, although nothing announced the crashes.

    Only routes are tested here, so `overlay_wait` is minimal: nobody waits for the titles of the dead.
    """
    world = World(Pastry, 60, seed=4, options={"pastry_leaves": 2 * half, "overlay_wait": 1})
    order = ring_order(world)
    for me in order[10 : 10 + half - 1]:
        world.crash(me)
    world.periods(3)
    for me in world.members():
        world.send_parcel(me, place_of(order[10]))
        world.send_parcel(me, world.rng.getrandbits(64))
    world.periods(2)
    assert wrong_parcels(world, pastry_owner) == []


def test_after_more_adjacent_crashes_the_table_restores_the_ring() -> None:
    world = World(Pastry, 60, seed=5, options={"pastry_leaves": 4, "pastry_cells": 16})
    for me in ring_order(world)[10:16]:
        world.crash(me)
    assert world.rest(40) < 40


def test_a_lookup_is_answered_by_the_owner() -> None:
    world = World(Pastry, 40, seed=6, options=SMALL)
    keys = [world.rng.getrandbits(64) for _ in range(50)]
    for key in keys:
        world.lookup(7, key)
    world.periods(1)
    assert sorted(world.nodes[7].rider.found) == sorted([(key, pastry_owner(world.members(), key)) for key in keys])


def test_a_falsely_suspected_node_comes_back() -> None:
    world = World(Pastry, 30, seed=7, options=SMALL)
    order = ring_order(world)
    world.step(order[0], "on_suspect", order[1], "P")
    assert world.nodes[order[0]].next_hop(place_of(order[1])) != order[1]
    world.step(order[0], "on_trust", order[1], "P")
    assert world.rest(20) < 20


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("base", "joins", "gone"), [(10, 10, 3), (40, 30, 15)])
def test_after_churn_a_ring_comes_to_rest_with_correct_tables(base: int, joins: int, gone: int, seed: int) -> None:
    """All leaves and all cells are right after joins, leaves and crashes, and every parcel reaches the owner."""
    world = World(Pastry, base, seed, SMALL)
    world.churn(shuffled(world.rng, joins, gone, gone), pause=0.4)
    assert world.rest(60) < 60, settled_breaches(world)[:3]
    for _ in range(100):
        world.send_parcel(world.rng.choice(world.members()), world.rng.getrandbits(64))
    world.periods(2)
    assert wrong_parcels(world, pastry_owner) == []


def much_churn(nodes: int, seed: int, options: Options) -> World:
    """`nodes` nodes in all: within five periods a quarter of them joins, and as many others leave or crash."""
    world = World(Pastry, 3 * nodes // 4, seed, options)
    plan = shuffled(world.rng, nodes // 4, nodes // 8, nodes // 8)
    world.churn(plan, pause=5 / len(plan))
    assert world.rest(40) < 40, settled_breaches(world)[:3]
    for _ in range(1_000):
        world.send_parcel(world.rng.choice(world.members()), world.rng.getrandbits(64))
    world.periods(2)
    assert wrong_parcels(world, pastry_owner) == []
    return world


def test_hundreds_of_nodes_under_heavy_churn() -> None:
    world = much_churn(320 if COMPILED else 64, 1, SMALL)
    assert world.hops() < math.log(len(world.members()), 16) + 0.2


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_nodes_under_heavy_churn(seed: int) -> None:
    much_churn(1_000, seed, {"pastry_cells": 16})
