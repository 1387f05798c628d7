"""Churn on an overlay: nodes that join and leave, and replicas that lose their memory."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fairgate.core.ids import NIL
from fairgate.core.kbr import members_of, replica_keys
from fairgate.core.keyspace import place_of
from fairgate.core.layers import Layer
from fairgate.core.node import Node
from fairgate.overlay.gates import gate_setups
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.ring import Ring
from fairgate.sim.ring_repair import expect_to_notice, tell_ring
from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


def replace_nodes(engine: "Engine", number: int, gone: Sequence[int], come: Sequence[int], detect: int) -> None:
    """Replace the nodes `gone` by the nodes `come`; `number` is the number of the resulting view.

    On a settled ring the nodes in `gone` fail. The ring knows at once, and the neighbours, whose keys change, get the
    new view; nodes that were next to them on a path notice after `detect`. On a dynamic ring they leave in an orderly
    way.
    """
    if engine.joins is not None:
        for node in gone:
            engine.joins.leave(engine, node)
        for node in come:
            come_back(engine, node)
        return
    ring: Ring = engine.setup.shared["ring"]
    expect_to_notice(engine, gone, detect)
    for node in gone:
        engine.crash(node)
        ring.remove(node)
    for node in come:
        ring.add(node)
        engine.reset(node)
    tell_ring(engine, number, [*gone, *come])


def come_back(engine: "Engine", node: int) -> None:
    """Bring the node back with empty memory; on a dynamic ring it joins again."""
    engine.reset(node)
    if engine.joins is not None:
        engine.joins.join(engine, node)


def plan_lifetimes(engine: "Engine", mean: float, stream: Stream, zoned: bool) -> None:
    """SG section V: every replica loses its memory repeatedly, after exponentially distributed lifetimes.

    `zoned`: all members vote with their zones, so every member is a replica.
    """
    engine.mortal = True
    for setup in gate_setups(engine.setup, engine.resources):
        for key in map(place_of, members_of(setup)) if zoned else replica_keys(setup):
            engine.plan(engine.now + stream.exponential(mean), partial(lose_memory, key=key, mean=mean, stream=stream))


def lose_memory(engine: "Engine", key: int, mean: float, stream: Stream) -> None:
    node = owner_of(engine, key)
    engine.crash(node)
    come_back(engine, node)
    engine.plan(engine.now + stream.exponential(mean), partial(lose_memory, key=key, mean=mean, stream=stream))


def owner_of(engine: "Engine", key: int) -> int:
    """The node where a message to this key ends, found by following the routes."""
    node = 0
    while engine.is_down(node):
        node += 1
    while True:
        next_hop = overlay_of(engine.nodes[node]).next_hop(key)
        if next_hop == NIL:
            return node
        node = next_hop


def overlay_of(node: Node) -> Overlay:
    """The overlay layer of a node; there may be a channel below it."""
    while not isinstance(node, Overlay):
        assert isinstance(node, Layer), "this node has no overlay"
        node = node.upper
    return node
