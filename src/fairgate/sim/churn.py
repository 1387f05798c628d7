"""Nodes that come and go on an overlay: churn, and replicas that lose their memory."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_keys
from fairgate.core.keyspace import place_of
from fairgate.core.layers import Layer
from fairgate.core.node import Node
from fairgate.overlay.gates import gate_setups
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.ring import Ring
from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


def replace_nodes(engine: "Engine", number: int, gone: Sequence[int], come: Sequence[int]) -> None:
    """These fail and those join: view `number`. A settled ring knows at once, and who gained or lost keys is told.

    On a ring that learns those who go leave in good order.
    """
    if engine.joins is not None:
        for node in gone:
            engine.joins.leave(engine, node)
        for node in come:
            come_back(engine, node)
        return
    ring: Ring = engine.setup.shared["ring"]
    for node in gone:
        engine.crash(node)
        ring.remove(node)
    for node in come:
        ring.add(node)
        engine.reset(node)
    members = tuple([ring.ident(rank) for rank in range(ring.size)])
    near = {neighbour for node in [*gone, *come] for neighbour in around(ring, node)}
    for neighbour in sorted(near):
        engine.call(neighbour, "view", number, members)


def come_back(engine: "Engine", node: int) -> None:
    """With nothing in its memory."""
    engine.reset(node)
    if engine.joins is not None:
        engine.joins.join(engine, node)


def around(ring: Ring, node: int) -> list[int]:
    """The node, if it is there, and those next to it."""
    rank = ring.rank(place_of(node))
    return [ring.ident(rank - 1), ring.ident(rank), ring.ident(rank + 1)]


def plan_lifetimes(engine: "Engine", mean: float, stream: Stream) -> None:
    """SG section V: every replica loses its memory after an exponential lifetime, again and again."""
    engine.mortal = True
    for setup in gate_setups(engine.setup, engine.resources):
        for key in replica_keys(setup):
            engine.plan(engine.now + stream.exponential(mean), partial(lose_memory, key=key, mean=mean, stream=stream))


def lose_memory(engine: "Engine", key: int, mean: float, stream: Stream) -> None:
    node = owner_of(engine, key)
    engine.crash(node)
    come_back(engine, node)
    engine.plan(engine.now + stream.exponential(mean), partial(lose_memory, key=key, mean=mean, stream=stream))


def owner_of(engine: "Engine", key: int) -> int:
    """Where a message to this key ends."""
    node = 0
    while engine.is_down(node):
        node += 1
    while True:
        next_hop = overlay_of(engine.nodes[node]).next_hop(key)
        if next_hop == NIL:
            return node
        node = next_hop


def overlay_of(node: Node) -> Overlay:
    """The overlay of a node, below which there may be a channel."""
    while not isinstance(node, Overlay):
        assert isinstance(node, Layer), "this node has no overlay"
        node = node.upper
    return node
