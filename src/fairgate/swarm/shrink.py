"""Shrinking: turns a simulation that fails into a small one that fails the same way.

It is greedy: of all configurations that are simpler in one respect, it takes the first that still breaks the same
property, and repeats this until there is none. Changing one number changes what all random streams are used for, so a
few seeds are tried for each candidate. It never tries what the protocol does not promise to survive (swarm/promise.py).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from fairgate.sim.config import Config
from fairgate.swarm.promise import promised
from fairgate.swarm.random_config import partition
from fairgate.swarm.run import attempt, property_of

MOST_RUNS = 2000
SEEDS = (1, 2, 3)
# The simplest values come first.
NUMBERS = (1.0, 10.0, 0.1, 100.0)
RATES = (1.0, 0.1)
LATENCIES = ("1", "0.1", "10", "uniform:0,1", "uniform:0,10", "uniform:0,0.1")
TIMES = ("1", "2", "3", "5", "10", "20", "50", "100")
SHARES = ("0.2", "0.1")
TIME = re.compile(r"(?<=[@+])[\d.]+")  # the times in a fault
NODE = re.compile(r"(crash|reset):(\d+)(@.*)")
CUT = re.compile(r"partition:[\d-]+/(\d+)[\d-]*(@.*)")

T = TypeVar("T")
Judge = Callable[[Config], str]  # returns what a run breaks, beginning with the property's name, or ""


@dataclass(frozen=True)
class Shrunk:
    config: Config
    broken: str  # a description of what it breaks
    runs: int  # how many simulations it took to shrink
    plain: bool  # does it fail under `fairgate sim` too, which does not count all tokens at every event?


def shrink(config: Config, broken: str, most: int = MOST_RUNS) -> Shrunk:
    """Shrink a configuration that broke `broken`. If it fails as `fairgate sim` runs it, that failure is shrunk."""
    plain = replace(config, census_every=None, marks=False)
    said = judged(plain)
    if said:
        return Shrinker(plain, said, most).shrunk(plain=True)
    return Shrinker(config, broken, most).shrunk(plain=False)


def judged(config: Config) -> str:
    return attempt(config)[0]


class Shrinker:
    def __init__(self, config: Config, broken: str, most: int = MOST_RUNS, judge: Judge = judged) -> None:
        """`judge`: checks a run; by default against all properties, or for example against one claim of a paper."""
        self.best = config
        self.broken = broken
        self.most = most
        self.judge = judge
        self.runs = 0

    def shrunk(self, plain: bool) -> Shrunk:
        while self.step():
            pass
        return Shrunk(self.best, self.broken, self.runs, plain)

    def step(self) -> bool:
        """Make the configuration simpler in one respect; False if that is not possible."""
        return any(self.take(seeded) for candidate in simpler(self.best) for seeded in with_seeds(candidate))

    def take(self, candidate: Config) -> bool:
        """Make the candidate the new best if it fails the same way; False if not."""
        if self.runs >= self.most or not promised(candidate):
            return False
        self.runs += 1
        broken = self.judge(candidate)
        if not broken or property_of(broken) != property_of(self.broken):
            return False
        self.best, self.broken = candidate, broken
        return True


def with_seeds(config: Config) -> Iterator[Config]:
    yield config
    for seed in SEEDS:
        if seed < config.seed:
            yield replace(config, seed=seed)


def simpler(config: Config) -> Iterator[Config]:
    """All configurations that are simpler in one respect, those that help a reader most first."""
    yield from smaller(config)
    yield from fewer_faults(config)
    yield from plainer(config)
    yield from rounder(config)
    yield from milder_faults(config)
    yield from (replace(config, seed=seed) for seed in SEEDS if seed < config.seed)


def smaller(config: Config) -> Iterator[Config]:
    for nodes in fewer(config.nodes):
        yield with_nodes(config, nodes)
    for requests in fewer(config.requests):
        yield replace(config, requests=requests)
        # The request that met the fault may be one that is now gone: other rates let an earlier one meet it.
        yield from (replace(config, requests=requests, rate=rate) for rate in RATES)
    for k in fewer(config.k):
        yield replace(config, k=k)
    if config.workload == "rounds":
        yield from (replace(config, askers=askers) for askers in fewer(config.askers))


def fewer(count: int) -> list[int]:
    return sorted({1, 2, count // 2, count - 1} & set(range(1, count)))


def with_nodes(config: Config, nodes: int) -> Config:
    """The configuration with fewer nodes. The last remaining node takes over the faults of the removed ones."""
    pieces = [fitted for piece in pieces_of(config) if (fitted := fit(piece, nodes))]
    return replace(
        config,
        nodes=nodes,
        k=min(config.k, nodes),
        askers=min(config.askers, nodes),
        faults=",".join(dict.fromkeys(pieces)),
    )


def fit(piece: str, nodes: int) -> str:
    if found := NODE.fullmatch(piece):
        kind, node, when = found.groups()
        return f"{kind}:{min(int(node), nodes - 1)}{when}" if nodes > 1 else ""
    if found := CUT.fullmatch(piece):
        first, when = found.groups()
        return f"{partition(min(int(first), nodes - 1), nodes)}{when}" if nodes > 1 else ""
    return piece


def pieces_of(config: Config) -> list[str]:
    return config.faults.split(",") if config.faults else []


def fewer_faults(config: Config) -> Iterator[Config]:
    if config.faults:
        yield replace(config, faults="")
    pieces = pieces_of(config)
    for i in range(len(pieces)):
        yield with_pieces(config, pieces[:i] + pieces[i + 1 :])


def with_pieces(config: Config, pieces: list[str]) -> Config:
    return replace(config, faults=",".join(pieces))


def plainer(config: Config) -> Iterator[Config]:
    if config.stack:
        yield replace(config, stack=())
    if config.options:
        yield replace(config, options={})
    for name in config.options:
        yield replace(config, options={other: value for other, value in config.options.items() if other != name})
    if config.give_up:
        yield replace(config, give_up=0.0)
    if config.exponential_cs:
        yield replace(config, exponential_cs=False)
    if config.workload != "closed":
        yield replace(config, workload="closed")


def rounder(config: Config) -> Iterator[Config]:
    yield from (replace(config, latency=latency) for latency in before(config.latency, LATENCIES))
    yield from (replace(config, rate=rate) for rate in before(config.rate, NUMBERS))
    yield from (replace(config, cs=cs) for cs in before(config.cs, NUMBERS))
    if config.give_up:
        yield from (replace(config, give_up=share) for share in before(config.give_up, (1.0,)))
        yield from (replace(config, give_up_after=mean) for mean in before(config.give_up_after, NUMBERS))


def before(value: T, choices: Sequence[T]) -> Sequence[T]:
    """The choices that are simpler than this value."""
    return choices[: choices.index(value)] if value in choices else choices


def milder_faults(config: Config) -> Iterator[Config]:
    pieces = pieces_of(config)
    for i, piece in enumerate(pieces):
        for milder in rounder_fault(piece):
            yield with_pieces(config, [*pieces[:i], milder, *pieces[i + 1 :]])


def rounder_fault(piece: str) -> Iterator[str]:
    """Variants of a fault with one of its numbers replaced by a simpler one."""
    kind, _, value = piece.partition(":")
    for found in TIME.finditer(piece):
        for time in before(found[0], TIMES):
            yield f"{piece[: found.start()]}{time}{piece[found.end() :]}"
    if "@" not in piece:
        for plain in before(value, TIMES if kind in {"detect", "trust"} else SHARES):
            yield f"{kind}:{plain}"
