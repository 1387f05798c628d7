"""Workers share the runs, cost little, and lose nothing when they are interrupted."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from fairgate.core.numbers import COMPILED
from fairgate.lab.workers import spread

MEETING = multiprocessing.get_context("fork").Barrier(2)


def meet(_: int) -> int:
    """Returns only if another process is here at the same time."""
    MEETING.wait(120)
    return os.getpid()


def test_two_workers_run_at_the_same_time() -> None:
    assert len(set(spread(meet, [1, 2], 2, None))) == 2


# The command line, even if these tests run in the background of a shell that ignores Ctrl-C there.
HEEDING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from fairgate.cli.app import run
sys.exit(run(sys.argv[1:]))
"""
RUNS = 30
LENGTH = "10000" if COMPILED else "100"  # requests, so that all runs take seconds
SWEEP = ["sweep", "fair_k", "--nodes", "20", "--requests", LENGTH, "--trials", str(RUNS), "--workers", "2", "--out"]


def kept(cache: Path) -> dict[int, str]:
    """The results that are on disk. One that is written anew gets another row id."""
    if not cache.exists():
        return {}
    with closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True)) as connection:
        try:
            return dict(connection.execute("SELECT rowid, config FROM results"))
        except sqlite3.OperationalError:  # it has no table yet
            return {}


def interrupted(command: list[str], cache: Path) -> tuple[int, str]:
    """Exit code and complaint of a command that gets Ctrl-C as soon as it has some results."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(kept(cache)) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    return process.returncode, said


def test_after_ctrl_c_a_second_run_does_nothing_twice(tmp_path: Path) -> None:
    for attempt in range(5):  # on a busy machine, a sweep may end before it is interrupted
        out = tmp_path / f"{attempt}.csv"
        command, cache = [sys.executable, "-c", HEEDING, *SWEEP, str(out)], tmp_path / f"{out.name}.cache"
        code, said = interrupted(command, cache)
        before = kept(cache)
        if code != 0:
            break
    assert (code, said.count("\n")) == (130, 1)
    assert "goes on from here" in said
    assert 3 <= len(before) < RUNS
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    after = kept(cache)
    assert len(after) == len(set(after.values())) == RUNS
    assert before.items() <= after.items()


MEASURED = """
import json, resource, sys, time
from fairgate import lab
started = time.monotonic()
rows = lab.sweep("fair_k", nodes=100, requests=4000, rate=[0.1, 0.5], trials=12, workers=int(sys.argv[1]))
use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([time.monotonic() - started, sum(one.ru_utime + one.ru_stime for one in use), len(rows)]))
"""


def timed(workers: int) -> tuple[float, float]:
    """Wall-clock and CPU seconds of the same sweep."""
    words = [sys.executable, "-c", MEASURED, str(workers)]
    wall, cpu, count = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert count == 24
    return wall, cpu


@pytest.mark.stress
def test_two_workers_are_nearly_twice_as_fast_as_one() -> None:
    """1.7 times by the clock, or an efficiency of 0.85 by CPU time, which counts where others use the machine, too."""
    tries = []
    for _ in range(5):
        (alone, cpu_alone), (shared, cpu_shared) = timed(1), timed(2)
        tries.append((round(alone / shared, 2), round(cpu_alone / cpu_shared, 2)))
        if alone / shared >= 1.7 or cpu_alone / cpu_shared >= 0.85:
            return
    pytest.fail(f"speed-up and efficiency: {tries}")
