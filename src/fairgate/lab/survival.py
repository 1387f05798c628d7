"""The chance that a gate of Fair-k survives when many nodes crash at once, by its number of backups: FK figure 6.

FK does not say what success is. Each definition names the states that must not be lost; a state is lost if its node and
all its backups crash. Runs with real backups show what happens: without a census, a run is a success if no property is
violated and all living nodes are served.
"""

import random
from collections import deque
from math import comb

from fairgate.core.ids import NIL
from fairgate.core.keyspace import place_of
from fairgate.core.message import Message
from fairgate.core.units import SECOND
from fairgate.protocols.fair_k import FairK, TokenLocations
from fairgate.sim.build import build
from fairgate.sim.config import Config, backup_stack
from fairgate.sim.engine import Engine
from fairgate.sim.events import DELIVER
from fairgate.sim.run import run

N, K = 100, 3
SHARES = (0.2, 0.5)
BACKUPS = range(11)
FIRST, LAST = 600, 900  # seconds between which the crash happens: the gate is saturated
REQUESTS = 4
DRAWS = 100  # sets of crashed nodes per state

States = set[int]


def none_lost(nodes: int, crashed: int, backups: int) -> float:
    """The probability that no node crashes together with the `backups` that follow it, if `crashed` random ones do.

    The living nodes divide the circle into as many gaps, each with at most `backups` crashed nodes. Inclusion and
    exclusion counts the ways to fill the gaps.
    """
    living = nodes - crashed
    ways: int = sum(
        (-1) ** full * comb(living, full) * comb(crashed - full * (backups + 1) + living - 1, living - 1)
        for full in range(crashed // (backups + 1) + 1)
    )
    return ways / comb(nodes - 1, crashed)


def lost_states(order: list[int], crashed: States, backups: int) -> States:
    """The nodes that crashed together with all of their backups; `order` is that of the ring."""
    at = {node: rank for rank, node in enumerate(order)}
    return {
        node
        for node in crashed
        if all(order[(at[node] + step) % len(order)] in crashed for step in range(1, backups + 1))
    }


class Watched:
    """A network with a fixed delay that knows what is in flight, and to whom."""

    def __init__(self) -> None:
        self.flight: deque[tuple[int, int, Message]] = deque()  # (arrival, receiver, message)

    def carry(self, engine: Engine, src: int, dst: int, msg: Message) -> None:
        arrival = engine.now + engine.latency.delay(src, dst)
        engine.push(arrival, DELIVER, dst, src, msg)
        self.flight.append((arrival, dst, msg))
        while self.flight[0][0] < engine.now:
            self.flight.popleft()


class Moment:
    """A run of Fair-k at the moment of the crash: whose states each definition of success needs."""

    def __init__(self, seed: int) -> None:
        engine = build(Config("fair_k", nodes=N, k=K, requests=REQUESTS, seed=seed))
        self.network = engine.network = Watched()
        self.parents: list[int] = []
        self.carriers: States = set()  # nodes with a token or the coordinator's role, or to which one is on its way
        self.others: States = set()  # tails of the queues, and receivers of all other messages in flight
        engine.plan(crash_time(seed) * SECOND, self.see)
        run(engine, None)

    def see(self, engine: Engine) -> None:
        for node in engine.nodes:
            assert isinstance(node, FairK)
            self.parents.append(node.parent)
            self.others.update(node.token_locations)
            if node.token_present or node.is_coordinator:
                self.carriers.add(node.me)
        for arrival, receiver, msg in self.network.flight:
            if arrival >= engine.now:
                self.others.update((receiver, *(msg.a if isinstance(msg, TokenLocations) else ())))
                if msg.tokens() or msg.coordinators():
                    self.carriers.add(receiver)
        engine.end()

    def paths(self, crashed: States) -> States:
        """All nodes on the way from a living node to its root."""
        found: States = set()
        for start in set(range(N)) - crashed:
            node = start
            while node != NIL and node not in found:
                found.add(node)
                node = self.parents[node]
        return found

    def survives(self, crashed: States, lost: States) -> tuple[bool, bool, bool]:
        """By each definition of DEFINITIONS."""
        tree = self.carriers | self.others | self.paths(crashed)
        return not lost, not lost & tree, not lost & self.carriers


DEFINITIONS = ("no state lost", "tree kept", "holders and coordinator kept")


def crash_time(seed: int) -> int:
    return FIRST + random.Random(seed).randrange(LAST - FIRST)


def by_definition(task: tuple[int, float]) -> list[list[float]]:
    """For one seed and share of crashed nodes, and each number of backups: the share of successes by definition."""
    seed, share = task
    order = sorted(range(N), key=place_of)
    found = [[0] * len(DEFINITIONS) for _ in BACKUPS]
    moment = Moment(seed)
    draw = random.Random(seed)
    for _ in range(DRAWS):
        crashed = set(draw.sample(range(N), int(share * N)))
        for backups, counts in zip(BACKUPS, found, strict=True):
            for i, success in enumerate(moment.survives(crashed, lost_states(order, crashed, backups))):
                counts[i] += success
    return [[count / DRAWS for count in counts] for counts in found]


def catastrophe(seed: int, share: float, backups: int) -> Config:
    """A run with real backups and no census: it goes on if it has no violation."""
    return Config(
        "fair_k",
        nodes=N,
        k=K,
        requests=REQUESTS,
        seed=seed,
        faults=f"crash:{100 * share:g}%@{crash_time(seed)}",
        stack=backup_stack(census=False),
        options={"backups": backups},
    )
