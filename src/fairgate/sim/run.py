"""One simulation, from its configuration to its result; by several processes, where they can share it."""

import time
from collections.abc import Callable

from fairgate.core.numbers import COMPILED
from fairgate.sim.build import build, no_collections
from fairgate.sim.config import Config
from fairgate.sim.engine import Engine
from fairgate.sim.recorder import EngineRecorder
from fairgate.sim.rounds import PacedRounds
from fairgate.sim.shares import FirstShare, OtherShare, Share, Stopped
from fairgate.sim.summary import Measures, Result, conclude, measure, together
from fairgate.trace.journal import JournalWriter

SLICE = 200_000  # events between two looks at the terminal and at Ctrl-C
WHOLE = Share()

Progress = Callable[[int], None]


@no_collections()
def simulate(config: Config, progress: Progress | None = None, journal: str | None = None, workers: int = 1) -> Result:
    """Run it. Ctrl-C ends it early: the result says so and holds what was measured until then.

    Where gates are nothing to each other, so many processes share them.
    """
    engine = build(config)
    writer = JournalWriter(journal) if journal is not None else None
    if writer is not None:
        writer.header(config.protocol, engine.setup, "sim", config.seed, config.stack)
        engine.recorder = EngineRecorder(writer, engine)
    started = time.perf_counter()
    ended, found = run_all(engine, progress, workers)
    result = conclude(found, config.protocol, config.seed, time.perf_counter() - started, not ended)
    if writer is not None:
        writer.close()
    return result


def run_all(engine: Engine, progress: Progress | None, workers: int) -> tuple[bool, Measures]:
    """Did it come to its end, and what was counted?"""
    workers = min(workers, engine.resources)
    if workers <= 1 or rounds_by_gates(engine) is None:
        return run(engine, progress), measure(engine)
    first = FirstShare(workers, lambda share: run_share(engine, share))
    try:
        first.start()
        ended = run(engine, progress and (lambda _: progress(first.entries)), first)
        try:
            parts = first.end(early=not engine.cut)
        except KeyboardInterrupt:
            ended, parts = False, first.end(early=True)
        return ended, together([measure(engine), *parts])
    finally:
        first.close()


def run_share(engine: Engine, share: OtherShare) -> Measures:
    run(engine, share.listen, share)
    return measure(engine, first=False).packed()


@no_collections()
def run(engine: Engine, progress: Progress | None, share: Share = WHOLE) -> bool:
    """To the end, or to Ctrl-C: then False."""
    try:
        rounds = rounds_by_gates(engine)
        if rounds is not None:
            rounds.keep_to(share)
            engine.take_turns(engine.resources, share.number, share.of)
        engine.begin()
        while engine.run(SLICE):
            if progress is not None:
                progress(engine.metrics.entries)
        engine.finish()
    except KeyboardInterrupt:
        return False
    except Stopped:
        pass
    except AssertionError as broken:  # a protocol noticed itself that something is wrong
        engine.violate(f"assertion: {broken} (node {engine.acting})")
    return True


def rounds_by_gates(engine: Engine) -> PacedRounds | None:
    """The rounds of this run, if what happens at one gate is nothing to the others from one round to the next.

    Then each gate may have its round by itself, as if it were alone: what it needs stays in the caches, or another
    process runs it; and it sees what it would have seen.
    """
    rounds = engine.workload
    alone = (
        engine.nodes[0].gates_independent
        and engine.network is None
        and engine.joins is None
        and engine.latency.fixed > 0
    )
    unseen = engine.recorder is None and engine.usage is None  # where all is told in order
    return rounds if isinstance(rounds, PacedRounds) and engine.resources > 1 and alone and unseen else None


def kind_of_build() -> str:
    return "compiled" if COMPILED else "pure Python"
