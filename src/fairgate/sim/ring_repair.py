"""How nodes of a settled ring learn that another node has failed.

EE section V: nodes that are next to each other on a path exchange pings, and so notice when one of them fails. A
settled ring sends no pings, as it sends no other upkeep. Instead, `detect` after a failure, the nodes that would have
missed the pings are told (`suspect`), and the ring closes the gap. Dynamic rings really send pings, and need none of
this.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fairgate.core.keyspace import place_of
from fairgate.overlay.gates import gates_of
from fairgate.overlay.ring import Ring

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine

PINGS = "pings"  # the name of this detector
Links = Sequence[tuple[int, int]]  # pairs (failed node, node that notices)


class RingRepair:
    def __init__(self, detect: int) -> None:
        self.detect = detect  # ns from a failure until it is noticed

    def crashed(self, engine: "Engine", victim: int) -> None:
        self.expect(engine, victim)
        engine.plan(engine.now + self.detect, partial(close_gap, victim=victim))

    def expect(self, engine: "Engine", victim: int) -> None:
        """Plan that the neighbours of the failed node on all paths notice."""
        expect_to_notice(engine, [victim], self.detect)


def expect_to_notice(engine: "Engine", failed: Sequence[int], detect: int) -> None:
    links = [(node, peer) for node in failed for peer in gates_of(engine.nodes[node]).linked()]
    engine.plan(engine.now + detect, partial(notice, links=links))


def notice(engine: "Engine", links: Links) -> None:
    for node, peer in links:
        if not engine.is_down(peer):
            engine.call(peer, "suspect", node, PINGS)


def close_gap(engine: "Engine", victim: int) -> None:
    if engine.is_down(victim):
        ring: Ring = engine.setup.shared["ring"]
        ring.remove(victim)
        tell_ring(engine, 0, [victim])


def tell_ring(engine: "Engine", number: int, changed: Sequence[int]) -> None:
    """Give view `number` to the nodes around those that have joined or left, whose keys may have changed."""
    ring: Ring = engine.setup.shared["ring"]
    members = tuple([ring.ident(rank) for rank in range(ring.size)])
    near = {neighbour for node in changed for neighbour in around(ring, node)}
    for neighbour in sorted(near):
        if not engine.is_down(neighbour):
            engine.call(neighbour, "view", number, members, ())


def around(ring: Ring, node: int) -> list[int]:
    """The neighbours of the node's place, and the node itself if it is on the ring."""
    rank = ring.rank(place_of(node))
    return [ring.ident(rank - 1), ring.ident(rank), ring.ident(rank + 1)]
