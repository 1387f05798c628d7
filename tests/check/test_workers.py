"""The checker with several processes: it gives exactly the same results, and leaves no process behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairgate.check.case import Case
from fairgate.check.explore import CheckReport, Explorer
from fairgate.core.units import SECOND
from fairgate.errors import BadInput

# Together these cover every kind of thing that processes exchange, and every kind of violation.
CASES = {
    "good": Case("fair_k", k=2, requests=2),
    "in order": Case("fair_k", k=2, requests=2, network="fifo"),
    "choices": Case("bv95", k=2, requests=2),
    "crashes": Case("raymond_fd", nodes=2, requests=2, crashes=1),
    "clocks": Case("leased", nodes=2, ticks=5, options={"lease": 3 * SECOND}),
    "a bad step": Case("fair_k", network="dup", requests=2),
    "a dead end": Case("fair_k", network="lossy", requests=2),
    "a bad grant": Case("leased", nodes=2, ticks=5, skew=1, options={"lease": 3 * SECOND}),
}


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every worker something to do, even in a small case."""
    monkeypatch.setattr("fairgate.check.covered.BATCH", 20)


def without_time(report: CheckReport) -> CheckReport:
    return replace(report, seconds=0.0)


@pytest.mark.parametrize("name", CASES)
def test_workers_change_nothing_but_the_time(name: str) -> None:
    """The path to a violation is the same, too, although each process numbers messages in its own order."""
    alone, *together = (Explorer(CASES[name], workers=workers) for workers in (1, 2, 3))
    wanted = without_time(alone.run())
    for explorer in together:
        found = without_time(explorer.run())
        assert replace(found, violations=()) == replace(wanted, violations=())
        assert said(explorer, found) == said(alone, wanted)


def said(explorer: Explorer, report: CheckReport) -> list[Any]:
    """The violations, with messages in place of their numbers."""
    things = explorer.model.things
    return [
        (violation.what, [(what, me, things[x] if what in MESSAGES else x, c) for what, me, x, c in violation.path])
        for violation in report.violations
    ]


MESSAGES = ("message", "lose", "duplicate")


def test_ctrl_c_ends_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairgate.check.explore.SLICE", 100)

    def stop(states: int, depth: int, queue: int) -> None:
        raise KeyboardInterrupt

    report = Explorer(CASES["good"], workers=2).run(progress=stop)
    assert (report.complete, report.interrupted, report.violations) == (False, True, ())
    assert 100 < report.states < 2_323


def test_a_worker_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairgate.check.explore.SLICE", 100)

    def kill_one(states: int, depth: int, queue: int) -> None:
        worker = multiprocessing.active_children()[0]
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)

    with pytest.raises(BadInput, match=r"worker \d died before the search was over \(exit code -9\)"):
        Explorer(CASES["good"], workers=2).run(progress=kill_one)
