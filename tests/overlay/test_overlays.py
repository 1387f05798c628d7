"""Overlays as layers: nodes restored from their keys, routing, joining and leaving, and the shared ring."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairgate.core.ids import NIL
from fairgate.core.keyspace import is_between, place_of
from fairgate.core.layers import over
from fairgate.core.message import decode
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.overlay.full import Full
from fairgate.overlay.ring import Ring, ring_of
from fairgate.registry import OVERLAYS
from tests.support.rings import PERIOD, SLOW, Witness, World, shuffled

OTHER_CLOCK = 7_000_000_007
OPTIONS = {"chord_successors": 3, "pastry_leaves": 4}
DYNAMIC = ["chord", "pastry"]


class LawfulWorld(World):
    """Takes every step twice: with the node, and with a clone that is made from its key and has a different clock."""

    def step(self, me: int, call: str, *arguments: Any) -> None:
        node = self.nodes[me]
        node.now = self.now
        key = node.key()
        clone = self.layer(me, self.setup, Collected())
        clone.now = self.now + OTHER_CLOCK
        clone.load(tuple(json.loads(json.dumps(key))))
        assert clone.key() == key
        mine, its = Collected(), Collected()
        node.out, clone.out = mine, its
        getattr(node, call)(*arguments)
        getattr(clone, call)(*arguments)
        assert its.effects == mine.effects, f"after {call}{arguments}"
        assert clone.key() == node.key(), f"after {call}{arguments}"
        node.out = self.wires[me]
        for effect in mine.drain():
            self.do(me, *effect)

    def do(self, me: int, what: str, *arguments: Any) -> None:
        wire = self.wires[me]
        if what == "send":
            dst, msg = arguments
            assert decode(json.loads(json.dumps(msg.key()))) == msg
            wire.send(dst, msg)
        else:
            getattr(wire, {"timer": "set_timer", "untimer": "cancel_timer", "note": "note"}[what])(*arguments)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DYNAMIC)
def test_a_node_loaded_from_its_key_behaves_like_the_original(name: str, seed: int) -> None:
    world = LawfulWorld(OVERLAYS[name], 5, seed, OPTIONS)
    world.churn(shuffled(world.rng, 8, 2, 2), pause=0.5)
    world.periods(4)
    world.step(world.members()[0], "on_suspect", world.members()[1], "P")
    world.step(world.members()[0], "on_trust", world.members()[1], "P")
    for me in world.members():
        world.step(me, "on_acquire", me)
    world.periods(3)
    assert world.sent["ov.lookup"]
    assert world.sent["ov.leaving"]


@pytest.mark.parametrize("name", DYNAMIC)
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    def run() -> dict[str, int]:
        world = World(OVERLAYS[name], 10, 3, OPTIONS)
        world.churn(shuffled(world.rng, 5, 2, 2), pause=0.5)
        world.periods(5)
        return dict(world.sent)

    assert run() == run()


@pytest.mark.parametrize("name", [name for name in OVERLAYS if name != "outside"])  # that one needs members
def test_every_overlay_routes_and_looks_up(name: str) -> None:
    """Scripted: a parcel and a lookup from each of six nodes to the key of the seventh."""
    setup = Setup(tuple(range(7)), options={**OPTIONS, "overlay_upkeep": 10**12})
    outs = {me: Collected() for me in setup.members}
    nodes: dict[int, Any] = {me: over(OVERLAYS[name], Witness)(me, setup, outs[me]) for me in setup.members}
    flight: list[tuple[int, int, Any]] = []

    def collect(me: int) -> None:
        flight.extend((me, effect[1], effect[2]) for effect in outs[me].drain() if effect[0] == "send")

    for me in range(6):
        nodes[me].on_start()
        nodes[me].on_acquire(~6 & 0xFFFF)
        nodes[me].lookup(place_of(6))
        nodes[me].finish_step()
        collect(me)
    nodes[6].on_start()
    while flight:
        src, dst, msg = flight.pop()
        nodes[dst].on_message(src, msg)
        collect(dst)
    assert len(nodes[6].rider.delivered) == 6
    assert [nodes[me].rider.found for me in range(6)] == [[(place_of(6), 6)]] * 6


def test_a_joining_node_sends_everything_through_its_contact() -> None:
    setup = Setup((1, 2, 3), options={"base": 2})
    out = Collected()
    node: Any = over(OVERLAYS["chord"], Witness)(3, setup, out)
    node.on_start()
    assert out.drain() == []
    node.on_join(1)
    assert node.next_hop(place_of(2)) == 1
    assert not node.joined


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_node_that_has_left_owns_nothing_and_forwards_messages(name: str) -> None:
    world = World(OVERLAYS[name], 6, 1, OPTIONS)
    world.step(2, "on_leave")
    node = world.nodes[2]
    assert not node.joined
    assert node.next_hop(place_of(2)) == node.contact != NIL
    assert not world.wires[2].set
    world.send_parcel(2, place_of(2))
    world.run(10**9)
    assert list(world.delivered()) == [0]
    assert world.delivered()[0] != [2]


@pytest.mark.parametrize("name", ["full", "settled_chord", "settled_pastry"])
def test_a_node_that_has_left_a_settled_ring_owns_nothing_until_it_is_back(name: str) -> None:
    setup = Setup(tuple(range(6)), options=OPTIONS)
    node: Any = over(OVERLAYS[name], Witness)(2, setup, Collected())
    usual = node.own_range()
    ring_of(setup).remove(2)
    node.on_view(1, (), ())
    start, end = node.own_range()
    assert [is_between(place_of(other), start, end) for other in range(100)].count(True) == 1  # its own place
    assert ring_of(setup).has(node.next_hop(place_of(2)))
    ring_of(setup).add(2)
    node.on_view(2, (), ())
    assert node.own_range() == usual
    assert node.next_hop(place_of(2)) == NIL
    assert node.rider.ranges == [(start, end), usual]


@pytest.mark.parametrize("name", DYNAMIC)
def test_late_answers_do_not_bring_back_a_node_that_has_left(name: str) -> None:
    """Otherwise it would be in all tables again, and then stop without notice."""
    for seed in range(100):
        world = World(OVERLAYS[name], 6, seed, {**OPTIONS, "pastry_cells": 64})
        me = 100 + seed  # its place determines when its upkeep timer first fires
        world.join(me)
        world.run_until(lambda node=world.nodes[me]: node.joined)  # type: ignore[misc]
        world.run(world.rng.randrange(PERIOD))
        world.step(me, "on_leave")
        world.periods(3)
        assert me not in world.members()
        assert not [peer for peer in world.members() if world.nodes[peer].next_hop(place_of(me)) == me]


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_node_that_has_left_says_so_to_senders(name: str) -> None:
    """Its goodbye may have arrived before older messages, so that it is in a table again."""
    world = World(OVERLAYS[name], 6, 1, {**OPTIONS, "overlay_upkeep": 10**12})
    world.step(2, "on_leave")
    world.queue.clear()
    believes = [me for me in world.members() if world.nodes[me].next_hop(place_of(2)) == 2]
    assert believes
    for me in believes:
        world.send_parcel(me, place_of(2))
    world.run(2 * SLOW)
    assert [me for me in believes if world.nodes[me].next_hop(place_of(2)) == 2] == []


@pytest.mark.parametrize("name", DYNAMIC)
def test_messages_do_not_bounce_between_two_nodes_that_leave_at_once(name: str) -> None:
    for first in range(6):
        for second in range(6):
            if first == second:
                continue
            world = World(OVERLAYS[name], 6, 1, OPTIONS)
            world.step(first, "on_leave")
            world.step(second, "on_leave")
            world.run(2 * SLOW)
            world.send_parcel(first, place_of(first))
            world.periods(6)
            assert list(world.delivered()) == [0], (first, second)


# The ring.


def test_a_changed_ring_equals_a_new_one() -> None:
    ring = Ring(tuple(range(40)))
    for ident in (77, 5, 99):
        ring.add(ident)
    for ident in (0, 39, 500):
        ring.remove(ident)
    again = Ring((*range(1, 39), 77, 99))
    assert ring.size == again.size == 40
    for rank in range(-40, 80):
        assert ring.ident(rank) == again.ident(rank)
        assert ring.place(rank) == place_of(again.ident(rank))
    for key in [0, (1 << 64) - 1, *map(place_of, range(100, 150))]:
        expected = sum(1 for rank in range(40) if again.place(rank) < key)
        assert ring.rank(key) == expected


def test_a_ring_may_lose_all_its_members() -> None:
    ring = Ring((3,))
    ring.remove(3)
    assert ring.size == 0
    assert not ring.has(3)
    ring.add(4)
    assert ring.successor(12345) == 4


def test_full_knows_the_same_owners_as_chord() -> None:
    setup = Setup(tuple(range(50)))
    full: Any = over(Full, Witness)(7, setup, Collected())
    chord: Any = over(OVERLAYS["settled_chord"], Witness)(7, setup, Collected())
    assert full.own_range() == chord.own_range()
    assert full.neighbours(8) == chord.neighbours(8)
    for request in range(200):
        assert (full.next_hop(place_of(request)) == NIL) == (chord.next_hop(place_of(request)) == NIL)
