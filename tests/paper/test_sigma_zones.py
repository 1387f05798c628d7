"""SG section VII: every member votes with its share of the circle, and m/n of the circle wins.

"The protocol is correct as long as the space owned by good nodes is larger than those owned by compromised/malicious
nodes over some threshold." A malicious node here votes for every client that asks. Two winners need 2m/n of the circle
in all, and every place that good nodes own counts once: so 2m/n - 1 of the circle must be malicious.
"""

from __future__ import annotations

import heapq
import random
from typing import Any, cast

import pytest

from fairgate.core.declare import node
from fairgate.core.keyspace import clockwise, place_of
from fairgate.core.layers import MakeNode
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.core.units import SECOND
from fairgate.overlay.ring import Ring
from fairgate.overlay.spans import around, spans_between
from fairgate.protocols.sigma.replica import Voters
from fairgate.protocols.sigma.votes import Replica, Request, Yield
from fairgate.protocols.sigma.zones import WHOLE, ZONE_BITS, SigmaZones
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.support.dht_walk import MS, Outcome, Spec, World, make_stack, run

NODES = 12
LEASE = 2 * SECOND
HOLD = LEASE + LEASE // 100 + 10_000  # the default drift is 1 %


@node
class VotesForAll(SigmaZones):
    """A member that lends its vote to every client, whoever has it already."""

    def on_request(self, m: Request) -> None:
        rep: Replica = self.replica(m.i)
        self.hear(m.ts)
        Voters.free(self, rep)
        Voters.vote(self, rep, m.client, m.life, m.ts, m.age, self.arrival())

    def on_yield(self, m: Yield) -> None:
        pass


def with_liars(liars: set[int]) -> MakeNode:
    good, bad = make_stack(SigmaZones), make_stack(VotesForAll)

    def make(me: int, setup: Setup, out: Outbox) -> Node:
        return (bad if me in liars else good)(me, setup, out)

    return make


def share_of(members: set[int]) -> float:
    ring = Ring(tuple(range(NODES)))
    starts = [ring.place(ring.rank(place_of(me)) - 1) for me in members]
    return sum(clockwise(start, place_of(me)) for start, me in zip(starts, members, strict=True)) / 2**64


def one_run(seed: int, quorum: int) -> tuple[float, Outcome]:
    """A run with 1 to 8 random liars, and the share of the circle that they own. A quorum is so many of 12 parts."""
    rng = random.Random(seed)
    liars = set(rng.sample(range(NODES), rng.randint(1, 8)))
    options = {"replicas": 12, "quorum": quorum, "lease": 4 * SECOND}
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


def test_every_zone_loses_its_memory_from_time_to_time() -> None:
    """With replicas, the same run plans a reset for each of the three replicas only."""
    small = Config("sigma", nodes=20, k=1, rate=1, cs=0.1, latency="0.1", seconds=30, replica_life=1000)
    assert len(build(small).plans) == 1 + 3
    assert len(build(Config(**{**vars(small), "protocol": "sigma_zones"})).plans) == 1 + 20


# One step after the other: a ring of five, to which node 4 belongs only later.


class Steps(World):
    """A world in which nothing happens by itself but messages and timers."""

    def __init__(self, protocol: type[SigmaZones] = SigmaZones, quorum: int = 8, overlay: str = "full") -> None:
        options = {"lease": LEASE, "replicas": 12, "quorum": quorum}
        spec = Spec(nodes=5, joins=1, requests=0, latency=0, options=options)
        super().__init__(make_stack(protocol, overlay), spec, random.Random(1))
        self.queue.clear()

    def until(self, time: int) -> None:
        while self.queue and self.queue[0][0] <= time:
            self.now, number, what, arguments = heapq.heappop(self.queue)
            what(*arguments) if what != self.fire else self.fire(number, *arguments)
        self.now = time

    def enter(self, me: int) -> None:
        self.left[me] = 1
        self.ask(me)

    def member(self, me: int) -> Any:
        return cast("Any", self.nodes[me]).upper.at(0)

    def share(self, me: int) -> int:
        return int(self.member(me).back + self.member(me).ahead)

    def knows(self, me: int) -> list[int]:
        return [zone.place for zone in self.member(me).zones]


def zone_of(members: tuple[int, ...], me: int) -> int:
    ring = Ring(members)
    return clockwise(ring.place(ring.rank(place_of(me)) - 1), place_of(me)) >> ZONE_BITS


HEIR = Ring((0, 1, 2, 3)).successor(place_of(4))  # who serves the zone of node 4 while it is not there
OTHER = (HEIR + 1) % 4


def test_nobody_votes_before_the_first_lease_is_over() -> None:
    world = Steps()
    world.enter(OTHER)
    world.until(HOLD - 1)
    assert ([world.share(me) for me in range(4)], world.outcome.entries) == ([0, 0, 0, 0], 0)
    world.until(2 * HOLD)
    assert [world.share(me) for me in range(4)] == [zone_of((0, 1, 2, 3), me) for me in range(4)]
    assert WHOLE - 4 <= sum(world.share(me) for me in range(4)) <= WHOLE
    assert world.outcome.entries == 1


@pytest.mark.parametrize("client", range(4))  # its own answer comes first, so the neighbours of 4 answer in any order
def test_a_member_that_joins_waits_and_then_votes_with_its_zone(client: int) -> None:
    world = Steps()
    world.enter(client)
    world.until(2 * HOLD)
    world.join(4)
    assert world.share(HEIR) == zone_of((0, 1, 2, 3, 4), HEIR)  # it lends the rest no more
    world.enter(client)
    world.until(world.now + 10 * MS)
    assert place_of(4) in world.knows(client)
    assert world.share(4) == 0
    world.until(world.now + 2 * HOLD)
    assert world.share(4) == zone_of((0, 1, 2, 3, 4), 4)


def test_the_heir_of_a_zone_waits_but_goes_on_voting_with_its_own() -> None:
    an_heir_waits(SigmaZones)


def an_heir_waits(protocol: type[SigmaZones]) -> None:
    world = Steps(protocol)
    world.join(4)
    world.enter(OTHER)
    world.until(2 * HOLD)
    own, gained = world.share(HEIR), world.share(4)
    world.crash(4)
    assert world.share(HEIR) == own
    world.until(world.now + HOLD - 1)
    assert world.share(HEIR) == own
    world.until(world.now + 1)
    assert gained <= world.share(HEIR) - own <= gained + 1


def test_a_client_forgets_a_member_that_is_gone() -> None:
    world = Steps()
    world.join(4)
    world.enter(OTHER)
    world.until(2 * HOLD)
    world.crash(4)
    world.enter(OTHER)
    world.until(world.now + 4 * HOLD)
    assert place_of(4) not in world.knows(OTHER)
    assert world.outcome.entries == 2


def test_a_client_is_told_at_once_when_a_vote_is_worth_more() -> None:
    """Without the zone of node 4, three quarters of the circle are out of reach until its heir votes with it."""
    world = Steps(quorum=9)
    world.join(4)
    world.enter(OTHER)
    world.until(2 * HOLD)
    world.crash(4)
    end = world.now + HOLD
    world.until(end - 50 * MS)
    world.enter(OTHER)
    world.until(end - 1)
    assert world.outcome.entries == 1
    world.until(end)
    assert world.outcome.entries == 2


def test_a_member_that_is_forgotten_is_not_counted_any_more() -> None:
    world = Steps()
    world.join(4)
    world.enter(OTHER)
    world.until(2 * HOLD)
    client = world.member(OTHER)
    r = client.resp[client.rank(place_of(4))]
    r.owner, r.seq, client.answered, client.heard, client.tally[HEIR] = HEIR, 1, 1, r.weight, r.weight
    client.forget(r)
    assert (client.answered, client.heard, client.tally) == (0, 0, {})


def test_an_heir_that_only_learns_of_a_crash_takes_over_the_zone() -> None:
    world = Steps(overlay="watched")
    world.join(4)
    world.enter(OTHER)
    world.until(2 * HOLD)
    own = world.share(HEIR)
    world.nodes[HEIR].on_crash(4)
    heir = world.member(HEIR)
    assert heir.whole_back + heir.whole_ahead > own == world.share(HEIR)


OVERLAPS = Config(
    "sigma_zones", nodes=15, k=1, rate=0.1, cs=10, latency="0.1", seconds=4_000, stack=("settled_pastry",),
    faults=",".join([*[f"crash:{node}@{300 * (node + 1)}" for node in range(13)], "detect:2"]),
)  # fmt: skip


def test_a_zone_that_overlaps_that_of_a_dead_member_is_no_gap() -> None:
    """The client inherits the zone of a member whose vote still counts. It took the overlap for a gap between the two,
    and asked for its owner, which was itself, again and again in one moment."""
    assert simulate(OVERLAPS).entries > 200


def test_a_quorum_of_the_whole_circle_can_be_reached() -> None:
    """Found by a swarm: shares are rounded down, so all of them together are a little less than the circle."""
    outcome = run(make_stack(SigmaZones), Spec(nodes=3, options={"replicas": 1, "lease": LEASE}), 1)
    assert (outcome.broken, outcome.entries) == ("", 6)


def test_without_leases_nobody_can_wait_until_they_are_over() -> None:
    outcome = run(make_stack(SigmaZones), Spec(options={"lease": 0}), 1)
    assert (outcome.broken, outcome.why.partition(":")[0]) == ("ValueError", "sigma_zones needs leases")


@pytest.mark.parametrize(("start", "end"), [(10, 90), (2**64 - 5, 90), (10, 3), (7, 7), (2**64 - 1, 2**63)])
def test_the_keys_around_a_key(start: int, end: int) -> None:
    spans = spans_between(start, end)
    zone = around(spans, end)
    assert zone == (start, end) or (start == end and zone[0] == zone[1])
    assert around(spans, start) == (() if start != end else zone)
    assert around([(0, 5), (6, 2**64)], 4) == (5, 4)
