"""Experiments: a figure or a table of a paper, what is drawn, and what the measurement says about the paper's claims.

    @experiment("FK.3", "Longest wait against the request rate", "FK section 4, figure 3")
    def longest_wait(bench: Bench) -> Outcome:
        rows = bench.sweep("fair_k", "bv95", rate=bench.pick(...), trials=bench.pick(...))
        return Outcome(rows, [Picture(...)], [Claim(...)])

An experiment is a function of a `Bench`, which runs simulations at a chosen size, with a chosen seed, on workers, and
remembers the results of earlier runs. There are three sizes: `tiny` is for tests, `quick` shows the effect within
seconds, and `paper` is that of the paper. The verdict of a claim is computed from the measurement of this run.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from fairgate.arguments import check_seed
from fairgate.errors import BadInput
from fairgate.lab.cache import Cache, described
from fairgate.lab.grid import as_values
from fairgate.lab.plot import Picture
from fairgate.lab.sweeps import Progress, Row, plan, run_all
from fairgate.lab.workers import spread
from fairgate.sim.config import Config

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

SIZES = ("tiny", "quick", "paper")
HOLDS, PARTLY, FAILS = "holds", "holds with this definition", "does not hold"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper beside the measurement."""

    gist: str
    section: str
    paper: str  # the paper's value
    ours: str  # with its 95 % interval, if it is a mean
    verdict: str  # HOLDS, PARTLY or FAILS
    why: str  # the definition that was used, or the reason
    ledger: str  # the entry in papers/: FILE.md#HEADING; empty if no paper is concerned


@dataclass(frozen=True)
class Outcome:
    rows: list[Row]
    pictures: list[Picture]
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what readers of the figure must know, such as what was left out
    seconds: float = 0.0  # that it took, without what was known from earlier runs


@dataclass
class Bench:
    """Where experiments run."""

    size: str = "quick"
    seed: int = 1
    wide_area: str = "wan"  # latency of the wide area: the synthetic one, or a file
    workers: int = 1
    executor: Executor | None = None
    cache: Path | None = None
    progress: Progress | None = None

    def pick(self, tiny: T, quick: T, paper: T) -> T:
        """The value for the chosen size."""
        return (tiny, quick, paper)[SIZES.index(self.size)]

    def sweep(self, *protocols: str, trials: int = 1, series: Sequence[str] = (), **grid: Any) -> list[Row]:
        """As `fairgate.lab.sweep`, with the seed of this bench."""
        found = {name: as_values(values) for name, values in grid.items() if name != "stack"}
        if "stack" in grid:
            found["stack"] = [grid["stack"]]
        return self.run(plan(protocols, {**found, "seed": [self.seed]}, trials), series)

    def run(self, configs: Sequence[Config], series: Sequence[str] = ()) -> list[Row]:
        return run_all(configs, self.workers, self.executor, self.cache, self.progress, series)

    def seeds(self, config: Config, trials: int) -> list[Config]:
        """The same configuration with successive seeds."""
        return [replace(config, seed=self.seed + trial) for trial in range(trials)]

    def map(self, work: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """The results of `work`, in order, for what `run` cannot do. Items are JSON or a Config, results are JSON."""
        return self.collected(work, items, lambda todo: spread(do_numbered, todo, self.workers, self.executor))

    def one_by_one(self, work: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """As `map`, but on this host and never two at once: for measurements of real time."""
        return self.collected(work, items, lambda todo: map(do_numbered, todo))

    def collected(self, work: Callable[[A], B], items: Sequence[A], do: "Doing[A, B]") -> list[B]:
        """What the cache does not know is done by `do`."""
        named = [described(item) if isinstance(item, Config) else item for item in items]
        keys = [json.dumps([work.__module__, work.__qualname__, item]) for item in named]
        found: dict[int, B] = {}
        with Cache(self.cache, packages=()) if self.cache is not None else nullcontext() as known:
            if known is not None:
                found = {place: row for place, key in enumerate(keys) if (row := known.get(key)) is not None}
            for place, result in do([(work, place, item) for place, item in enumerate(items) if place not in found]):
                found[place] = result
                if known is not None:
                    known.put(keys[place], result)
                if self.progress is not None:
                    self.progress(len(found), len(items))
        return [found[place] for place in range(len(items))]


Doing = Callable[[list[tuple[Callable[[A], B], int, A]]], Iterable[tuple[int, B]]]


def do_numbered(task: tuple[Callable[[A], B], int, A]) -> tuple[int, B]:
    work, place, item = task
    return place, work(item)


@dataclass(frozen=True)
class Experiment:
    id: str
    title: str
    section: str
    measure: Callable[[Bench], Outcome]
    quick_seconds: float | None  # how long it takes on two cores, compiled; None: not measured
    paper_seconds: float | None
    estimated: bool = False  # the seconds in paper size: from processor time, and one trial of each point

    def run(self, bench: Bench) -> Outcome:
        if bench.size not in SIZES:
            raise BadInput(f"the size must be {', '.join(SIZES[:-1])} or {SIZES[-1]}, not {bench.size!r}")
        check_seed(bench.seed)
        started = time.monotonic()
        outcome = self.measure(bench)
        return replace(outcome, seconds=time.monotonic() - started)


EXPERIMENTS: dict[str, Experiment] = {}  # lab/catalogue.py fills it, by importing all modules of experiments


Measure = Callable[[Bench], Outcome]


def experiment(
    id: str,
    title: str,
    section: str,
    quick: float | None = None,
    paper: float | None = None,
    estimated: bool = False,
) -> Callable[[Measure], Measure]:
    """Registers the function that it decorates. `quick` and `paper` say how many seconds it takes."""

    def register(measure: Measure) -> Measure:
        assert id not in EXPERIMENTS, id
        EXPERIMENTS[id] = Experiment(id, title, section, measure, quick, paper, estimated)
        return measure

    return register


def verdict(holds: bool, otherwise: str = FAILS) -> str:
    return HOLDS if holds else otherwise
