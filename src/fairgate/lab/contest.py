"""Live contests: processes of this host contend for one gate or another lock, and all entries are measured.

`lab/rivals.py` has the locks, `lab/contender.py` is one process. Each process writes when it asked, entered and left,
on the clock of the host, so that the entries of all can be put in order. For each entry, the *overtakes* are the later
requests that entered before it.
"""

import os
import subprocess
import sys
import time
from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from fairgate.lab.contender import RANDOM
from fairgate.lab.rivals import server

START_SECONDS = 0.5  # from the last process being ready to the common start


@dataclass(frozen=True)
class Load:
    """What the contending processes do."""

    k: int
    inside: float  # seconds
    processes: int
    seconds: float
    is_random: bool = False  # exponential stays, with `inside` as their mean

    def stay(self) -> str:
        """As a contender is told."""
        return f"{RANDOM if self.is_random else ''}{self.inside}"


@dataclass(frozen=True)
class Entry:
    asked: int
    entered: int
    left: int
    who: int


@dataclass(frozen=True)
class Measured:
    entries: int
    rate: float  # entries per second
    waits: tuple[float, ...]  # seconds, in ascending order
    wait_mean: float
    wait_p99: float
    wait_max: float
    jain: float
    overtakes: float  # per entry
    worst: int  # the most times that one request was overtaken
    most_inside: int
    messages: float  # per entry
    cpu: float  # seconds per entry, of the contending processes only
    fewest: int  # entries of the process that had the fewest
    most: int
    hand_over: float  # median seconds from a process leaving until the next waiting one enters


@dataclass(frozen=True)
class Interpreter:
    """Which Python the processes run; `folder` and `environ` are for another checkout."""

    path: str = sys.executable
    folder: Path | None = None
    left_out: tuple[str, ...] = ()  # variables of the environment


def contest(kind: str, loads: Sequence[Load], python: Interpreter | None = None) -> list[Measured]:
    """The loads one after the other. A lock that needs a server gets one for all of them."""
    with TemporaryDirectory(prefix="fgcontest") as name:
        folder = Path(name)
        (folder / "run").mkdir(mode=0o700)
        with server(kind, folder / "run") as port:
            return [contend(kind, load, port, folder, python or Interpreter()) for load in loads]


def contend(kind: str, load: Load, port: int, folder: Path, python: Interpreter) -> Measured:
    environ = os.environ | {"FAIRGATE_DIR": str(folder / "run")}
    environ = {name: value for name, value in environ.items() if name not in python.left_out}
    words = [python.path, "-m", "fairgate.lab.contender", kind, str(load.k), str(port)]
    words += [load.stay(), str(load.seconds)]
    files = [folder / f"{i}" for i in range(load.processes)]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen([*words, str(file)], stdin=pipe, stdout=pipe, text=True, env=environ, cwd=python.folder)
        for file in files
    ]
    try:
        messages, cpu = conduct(workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return measured([read(file, who) for who, file in enumerate(files)], messages, cpu, load.seconds)


def conduct(workers: list["subprocess.Popen[str]"]) -> tuple[int, int]:
    """Run the workers; return their total messages and ns of CPU time."""
    for worker in workers:
        hear(worker)
    begin = time.monotonic_ns() + int(START_SECONDS * 1e9)
    for worker in workers:
        say(worker, str(begin))
    told = [hear(worker).split() for worker in workers]
    for worker in workers:
        say(worker, "end")
    for worker in workers:
        worker.wait()
    return sum(int(one[0]) for one in told), sum(int(one[1]) for one in told)


def hear(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError("a contender died")
    return line


def say(worker: "subprocess.Popen[str]", what: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()


def read(file: Path, who: int) -> list[Entry]:
    times: array[int] = array("q")
    times.frombytes(file.read_bytes())
    return [Entry(times[i], times[i + 1], times[i + 2], who) for i in range(0, len(times), 3)]


def measured(by_process: list[list[Entry]], messages: int, cpu: int, seconds: float) -> Measured:
    entries = sorted([entry for one in by_process for entry in one], key=lambda entry: entry.entered)
    waits = sorted([(entry.entered - entry.asked) / 1e9 for entry in entries])
    counts = [len(one) for one in by_process]
    overtaken = overtakes(entries)
    return Measured(
        entries=len(entries),
        rate=len(entries) / seconds,
        waits=tuple(waits),
        wait_mean=sum(waits) / len(waits),
        wait_p99=waits[len(waits) * 99 // 100],
        wait_max=waits[-1],
        jain=sum(counts) ** 2 / (len(counts) * sum([count**2 for count in counts])),
        overtakes=sum(overtaken) / len(entries),
        worst=max(overtaken),
        most_inside=most_inside(entries),
        messages=messages / len(entries),
        cpu=cpu / 1e9 / len(entries),
        fewest=min(counts),
        most=max(counts),
        hand_over=hand_over(entries) / 1e9,
    )


def overtakes(entries: list[Entry]) -> list[int]:
    """For each entry, how many later requests entered before it; `entries` are in the order of entering."""
    asked: list[int] = []
    found = []
    for entry in entries:
        found.append(len(asked) - bisect_left(asked, entry.asked))
        insort(asked, entry.asked)
    return found


def hand_over(entries: list[Entry]) -> float:
    """Median ns from leaving to the next entry, of one lock.

    Only entries of another process that was already waiting count as hand-overs.
    """
    taken = [new.entered - old.left for old, new in pairwise(entries) if new.who != old.who and new.asked < old.left]
    return median(taken) if taken else 0.0


def most_inside(entries: list[Entry]) -> int:
    """The most entries at the same time; leaving and entering in the same nanosecond do not overlap."""
    changes = sorted([(entry.entered, 1) for entry in entries] + [(entry.left, -1) for entry in entries])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
