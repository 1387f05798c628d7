"""SG section VII: every member votes with its share of the circle, and m/n of the circle wins.

"The protocol is correct as long as the space owned by good nodes is larger than those owned by compromised/malicious
nodes over some threshold." A malicious node here votes for every client that asks. Two winners need 2m/n of the circle
in all, and every place that good nodes own counts once: so 2m/n - 1 of the circle must be malicious.
"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from fairgate.core.declare import node
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.protocol import Sigma
from fairgate.protocols.sigma.replica import Voters
from fairgate.protocols.sigma.votes import Replica, Request, Yield, zones
from fairgate.sim.build import build
from fairgate.sim.config import Config
from tests.support.dht_walk import MS, Outcome, Spec, make_stack, run

NODES = 12


@node
class VotesForAll(Sigma):
    """A replica that lends its vote to every client, whoever has it already."""

    def on_request(self, m: Request) -> None:
        rep: Replica = self.replica(m.i)
        self.hear(m.ts)
        Voters.free(self, rep)
        Voters.vote(self, rep, m.client, m.life, m.ts, m.age, self.arrival())

    def on_yield(self, m: Yield) -> None:
        pass


def with_liars(liars: set[int]) -> MakeNode:
    good, bad = make_stack(Sigma), make_stack(VotesForAll)

    def make(me: int, setup: Setup, out: Outbox) -> Node:
        return (bad if me in liars else good)(me, setup, out)

    return make


def share_of(liars: set[int]) -> float:
    places, weights = zones(tuple(range(NODES)))
    bad = {place_of(me) for me in liars}
    return sum(weight for place, weight in zip(places, weights, strict=True) if place in bad) / sum(weights)


def one_run(seed: int, quorum: int) -> tuple[float, Outcome]:
    """A run with 1 to 8 random liars, and the share of the circle that they own. A quorum is so many of 12 parts."""
    rng = random.Random(seed)
    liars = set(rng.sample(range(NODES), rng.randint(1, 8)))
    options = {"voting": "zones", "replicas": 12, "quorum": quorum, "lease": 4 * SECOND}
    spec = Spec(nodes=NODES, requests=3, think=0, stay=800 * MS, late=0.1, most_time=60 * SECOND, options=options)
    return share_of(liars), run(with_liars(liars), spec, seed)


@pytest.mark.parametrize("quorum", [7, 8, 9])
def test_two_are_inside_only_if_malicious_nodes_own_enough_of_the_space(quorum: int) -> None:
    threshold = 2 * quorum / 12 - 1
    runs = [one_run(seed, quorum) for seed in range(40)]
    below = [outcome for share, outcome in runs if share < threshold]
    above = [outcome for share, outcome in runs if share >= threshold]
    assert below
    assert not any(outcome.broken == "k" for outcome in below)
    assert any(outcome.broken == "k" for outcome in above)


def test_the_shares_of_all_members_are_the_whole_circle() -> None:
    places, weights = zones(tuple(range(50)))
    assert all(first < second for first, second in pairwise(places))
    assert 0.999 < sum(weights) * 2**24 / 2**64 <= 1


def test_every_zone_loses_its_memory_from_time_to_time() -> None:
    """With replicas, the same run plans a reset for each of the three replicas only."""
    small = Config("sigma", nodes=20, k=1, rate=1, cs=0.1, latency="0.1", seconds=30, replica_life=1000)
    assert len(build(small).plans) == 1 + 3
    assert len(build(Config(**{**vars(small), "options": {"voting": "zones"}})).plans) == 1 + 20
