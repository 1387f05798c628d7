"""Runs one simulation, from its configuration to its result, in several processes where the gates allow it."""

import time
from collections.abc import Callable

from fairgate.core.numbers import COMPILED
from fairgate.sim.build import build, no_collections
from fairgate.sim.config import Config
from fairgate.sim.engine import Engine
from fairgate.sim.recorder import EngineRecorder
from fairgate.sim.rounds import PacedRounds
from fairgate.sim.shares import FirstShare, OtherShare, Share, Stopped
from fairgate.sim.step_errors import add_place
from fairgate.sim.summary import Measures, Result, conclude, measure, together, with_series
from fairgate.trace.journal import JournalWriter

SLICE = 200_000  # events between two progress reports, and between two checks for Ctrl-C
WHOLE = Share()

Progress = Callable[[int], None]


@no_collections()
def simulate(config: Config, progress: Progress | None = None, journal: str | None = None, workers: int = 1) -> Result:
    """Run a simulation and return its result; raises BadInput if the configuration makes no sense.

    Ctrl-C ends the run early: the result then has `interrupted` set and holds what was measured until then. `progress`
    is called now and then with the number of entries so far. `journal` is the path of a journal to write. Up to
    `workers` processes share the gates if these are independent of each other.
    """
    engine = build(config)
    writer = JournalWriter(journal) if journal is not None else None
    if writer is not None:
        writer.header(config.protocol, engine.setup, "sim", config.seed, config.stack)
        engine.recorder = EngineRecorder(writer, engine)
    started = time.perf_counter()
    ended, found = run_all(engine, progress, workers)
    result = conclude(found, config.protocol, config.seed, time.perf_counter() - started, not ended)
    if engine.timeline is not None:
        result = with_series(result, engine.timeline, config.usage, config.waits)
    if writer is not None:
        writer.close()
    return result


def run_all(engine: Engine, progress: Progress | None, workers: int) -> tuple[bool, Measures]:
    """Run to the end; return whether it got there without a Ctrl-C, and what was measured."""
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
    """Run to the end and return True, or return False after a Ctrl-C.

    An exception that a protocol raises has a note with the node, the time and the line of the protocol.
    """
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
    except AssertionError as broken:  # a protocol's own check failed
        engine.violate(f"assertion: {broken} (node {engine.acting})")
    except Exception as wrong:
        add_place(wrong, engine.nodes[engine.acting], f"node {engine.acting} at {engine.now / 1e9:.6f} s")
        raise
    return True


def rounds_by_gates(engine: Engine) -> PacedRounds | None:
    """The workload of this run if its gates are independent of each other between two rounds; otherwise None.

    Each gate can then run its round alone: its data stays in the cache, or another process runs it. The outcome is the
    same.
    """
    rounds = engine.workload
    alone = (
        engine.nodes[0].gates_independent
        and engine.network is None
        and engine.joins is None
        and engine.latency.fixed > 0
    )
    unseen = engine.recorder is None and engine.timeline is None  # both record the events of all gates in time order
    return rounds if isinstance(rounds, PacedRounds) and engine.resources > 1 and alone and unseen else None


def kind_of_build() -> str:
    return "compiled" if COMPILED else "pure Python"
