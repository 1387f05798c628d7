"""Swarm: runs many small random simulations of one protocol and checks all properties at every event.

The checker sees every state of a tiny case; a long simulation sees one ordinary run. A swarm lies between the two: it
sees a little of everything that the protocol claims to survive.
"""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, islice

from fairgate.core.kbr import Routed
from fairgate.processes import leave_ctrl_c_to_the_parent
from fairgate.recovery.channel import Channel
from fairgate.registry import find_protocol
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.faults import parse_faults
from fairgate.swarm.marks import marks_of
from fairgate.swarm.promise import everybody_comes_in, longest_time
from fairgate.swarm.random_ring_config import random_config

BATCH = 20  # runs that a worker takes at a time
MOST_EVENTS = 20_000  # several times what a good run of this size needs: a longer run counts as endless
ON_A_RING = 10  # times MOST_EVENTS on a DHT, where leases are renewed and messages repeated
PATIENCE = 100  # times the longest time among the options: a backoff that doubles adds up to several of these


@dataclass(frozen=True)
class RunOutcome:
    run: int
    broken: str  # a description of the first violation, or ""
    marks: dict[str, int]


@dataclass
class SwarmReport:
    protocol: str
    seed: int
    marks: Counter[str]
    runs: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)  # (run, what broke), in order of the runs
    seconds: float = 0.0
    interrupted: bool = False

    def add(self, outcome: RunOutcome) -> None:
        self.runs += 1
        self.marks.update(outcome.marks)
        if outcome.broken:
            self.failures.append((outcome.run, outcome.broken))

    @property
    def missed(self) -> list[str]:
        return [mark for mark, hits in self.marks.items() if not hits]


@dataclass(frozen=True)
class Limits:
    """When a swarm ends: after this many runs or seconds, whichever comes first."""

    runs: int | None
    seconds: float | None = None

    def batches(self) -> Iterator[list[int]]:
        """The numbers of the runs, in batches, until a limit is reached."""
        started = time.monotonic()
        numbers = count() if self.runs is None else iter(range(self.runs))
        while batch := list(islice(numbers, BATCH)):
            if self.seconds is not None and time.monotonic() - started >= self.seconds:
                return
            yield batch


Progress = Callable[[SwarmReport], None]
BatchesOfOutcomes = Generator[list[RunOutcome], None, None]


def swarm(name: str, seed: int, limits: Limits, workers: int = 1, progress: Progress | None = None) -> SwarmReport:
    """Run a swarm and return its report. After Ctrl-C the report covers the runs until then."""
    started = time.perf_counter()
    protocol = find_protocol(name)
    report = SwarmReport(protocol.about.name, seed, Counter(dict.fromkeys(marks_of(protocol, Channel), 0)))
    in_batches = alone if workers == 1 else together
    try:
        with closing(in_batches(report.protocol, seed, limits, workers)) as batches:
            for outcomes in batches:
                for outcome in outcomes:
                    report.add(outcome)
                report.seconds = time.perf_counter() - started
                if progress is not None:
                    progress(report)
    except KeyboardInterrupt:
        report.interrupted = True
    report.failures.sort()
    report.seconds = time.perf_counter() - started
    return report


def alone(protocol: str, seed: int, limits: Limits, workers: int) -> BatchesOfOutcomes:
    for batch in limits.batches():
        yield run_batch(protocol, seed, batch)


def together(protocol: str, seed: int, limits: Limits, workers: int) -> BatchesOfOutcomes:
    """Run batches in worker processes. Each has at most two: enough to stay busy, few enough to stop soon."""
    batches = limits.batches()
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("fork"), initializer=leave_ctrl_c_to_the_parent
    )
    try:
        under_way: set[Future[list[RunOutcome]]] = set()
        while True:
            for batch in islice(batches, 2 * workers - len(under_way)):
                under_way.add(pool.submit(run_batch, protocol, seed, batch))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BaseException:  # Ctrl-C, or the caller stopped iterating: the pending results are not needed
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_batch(protocol: str, seed: int, runs: list[int]) -> list[RunOutcome]:
    return [RunOutcome(run, *attempt(random_config(protocol, seed, run))) for run in runs]


def attempt(config: Config, most: int = 0) -> tuple[str, dict[str, int]]:
    """The first violation of the run, or "", and the marks it met. An exception counts as a violation.

    `most`: how many events the run may take; 0: as many as a good run might need.
    """
    routed = issubclass(find_protocol(config.protocol), Routed)
    most = most or MOST_EVENTS * (ON_A_RING if routed else 1)
    try:
        engine = build(config)
        engine.patience = max(engine.patience, PATIENCE * longest_time(config))
        engine.begin()
        if engine.run(most):
            engine.violate(f"liveness: still busy after {most:,} events")
        else:
            engine.finish()
        if routed and engine.metrics.lost and not parse_faults(config.faults, config.nodes).kinds():
            engine.violate(f"lost: {engine.metrics.lost} permits, although nothing has failed")
    except AssertionError as broken:  # an assertion of the protocol itself
        return f"assertion: {broken}", {}
    except Exception as error:
        return f"{type(error).__name__}: {error}", {}
    found = [one for one in engine.violations if property_of(one) != "liveness" or everybody_comes_in(config)]
    return "".join(found[:1]), dict(engine.marks)


def property_of(broken: str) -> str:
    return broken.partition(":")[0]
