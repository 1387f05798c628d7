"""Gates compared with alternatives, all in one run: `make bench-live`.

1. one lock, nothing done inside          3. k = 3, 2 ms inside
2. one lock, 2 ms inside                  4. one process alone, entering repeatedly
5. hand-over between two processes, compared with a bare ping

In each of the first three, eight processes contend for five seconds. For each entry, the *overtakes* are the later
requests that entered before it. "fairgate" is the waiting room of one host, "fair_k cluster" a cluster over Unix
sockets that runs this protocol.
"""

from __future__ import annotations

import argparse
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

from rich.console import Console
from rich.table import Table

from bench.net import bare_round_trip
from bench.rivals import CLUSTER, INSTALL, SEMAPHORES, SERVERS, missing, server

PROCESSES, SECONDS = 8, 5.0
OTHER = "other checkout"
OURS = ("fairgate", f"fair_k{CLUSTER}")
LOCKS = (*OURS, *INSTALL)
START_SECONDS = 0.5
HAND_OVERS = 5


@dataclass(frozen=True)
class Entry:
    asked: int
    entered: int
    left: int
    who: int


@dataclass(frozen=True)
class Outcome:
    entries: int
    rate: float
    wait_mean: float  # seconds
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
class Load:
    """What the contending processes do."""

    k: int
    inside: float  # seconds
    processes: int
    seconds: float


class Bench:
    def __init__(self, other: str) -> None:
        self.other = other  # the interpreter of another checkout, for the row OTHER

    def run(self, kind: str, load: Load) -> Outcome:
        with TemporaryDirectory(prefix="fgbench") as name:
            folder = Path(name)
            (folder / "run").mkdir(mode=0o700)
            with server(kind, folder / "run") as port:
                return contend(kind, load, port, folder, self.other)


def contend(kind: str, load: Load, port: int, folder: Path, other: str) -> Outcome:
    environ = os.environ | {"FAIRGATE_DIR": str(folder / "run")}
    python, place = sys.executable, None
    if kind == OTHER:
        kind, python, place = "fairgate", other, Path(other).absolute().parents[2]
        environ = {name: value for name, value in environ.items() if name not in ("PYTHONPATH", "FAIRGATE_PURE")}
    words = [python, "-m", "bench.contender", kind, str(load.k), str(port), str(load.inside), str(load.seconds)]
    files = [folder / f"{i}" for i in range(load.processes)]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen([*words, str(file)], stdin=pipe, stdout=pipe, text=True, env=environ, cwd=place)
        for file in files
    ]
    try:
        messages, cpu = conduct(workers)
    finally:
        for worker in workers:
            worker.kill()
    return outcome([read(file, who) for who, file in enumerate(files)], messages, cpu, load.seconds)


def conduct(workers: list[subprocess.Popen[str]]) -> tuple[int, int]:
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


def hear(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError("a contender died")
    return line


def say(worker: subprocess.Popen[str], what: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()


def read(file: Path, who: int) -> list[Entry]:
    times: array[int] = array("q")
    times.frombytes(file.read_bytes())
    return [Entry(times[i], times[i + 1], times[i + 2], who) for i in range(0, len(times), 3)]


def outcome(by_process: list[list[Entry]], messages: int, cpu: int, seconds: float) -> Outcome:
    entries = sorted([entry for one in by_process for entry in one], key=lambda entry: entry.entered)
    waits = sorted([entry.entered - entry.asked for entry in entries])
    counts = [len(one) for one in by_process]
    overtaken = overtakes(entries)
    return Outcome(
        entries=len(entries),
        rate=len(entries) / seconds,
        wait_mean=sum(waits) / len(waits) / 1e9,
        wait_p99=waits[len(waits) * 99 // 100] / 1e9,
        wait_max=waits[-1] / 1e9,
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


def show(console: Console, title: str, outcomes: dict[str, Outcome]) -> None:
    table = Table(title=title, title_justify="left")
    columns = ("", "grants/s", "wait mean", "p99", "max", "p99/mean", "Jain", "fewest..most", "overtakes", "worst",
               "inside", "messages", "CPU")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for name, one in outcomes.items():
        table.add_row(
            name, f"{one.rate:,.0f}", ms(one.wait_mean), ms(one.wait_p99), ms(one.wait_max),
            f"{one.wait_p99 / one.wait_mean:.2f}", f"{one.jain:.3f}", f"{one.fewest:,}..{one.most:,}",
            f"{one.overtakes:.2f}", str(one.worst), str(one.most_inside),
            f"{one.messages:.2f}" if one.messages else "", f"{one.cpu * 1e6:.0f} us",
        )  # fmt: skip
    console.print(table)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def installed(console: Console, kinds: Sequence[str]) -> list[str]:
    found = []
    for kind in kinds:
        how = missing(kind)
        if how:
            console.print(f"{kind} is skipped; to include it: {how}")
        else:
            found.append(kind)
    return found


def show_hand_over(console: Console, bench: Bench, kinds: list[str]) -> None:
    """Compare with a bare ping. Rounds alternate, because the machine's speed varies."""
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    pings = []
    for _ in range(HAND_OVERS):
        for kind in kinds:
            taken[kind].append(bench.run(kind, Load(1, 0.001, processes=2, seconds=2.0)).hand_over)
        with TemporaryDirectory(prefix="fgbench") as folder:
            pings.append(bare_round_trip(Path(folder)))
    table = Table("5. hand-over: from one process leaving to the other entering", "median", "of a bare round trip")
    for kind, times in taken.items():
        ratio = median([own / ping for own, ping in zip(times, pings, strict=True)])
        table.add_row(kind, f"{median(times) * 1e6:.0f} us", f"{ratio:.2f}")
    table.add_row("a bare round trip, on our event loop and a Unix socket", f"{median(pings) * 1e6:.0f} us", "1")
    console.print(table)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long they contend (default: 5)")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="how many contend (default: 8)")
    parser.add_argument("--only", metavar="NAME", action="append", choices=LOCKS, help=f"one of: {', '.join(LOCKS)}."
                        " May be repeated (default: all that are installed)")  # fmt: skip
    parser.add_argument("--table", type=int, metavar="N", action="append", choices=range(1, 6),
                        help="which of the five tables. May be repeated (default: all)")  # fmt: skip
    parser.add_argument("--against", metavar="PYTHON", default="",
                        help="also measure the fairgate of another checkout, by the interpreter of its environment,"
                             " CHECKOUT/.venv/bin/python")  # fmt: skip
    return parser


def main() -> None:
    given = parser().parse_args()
    console = Console(width=170)
    bench = Bench(given.against)
    ours = (*OURS, OTHER) if given.against else OURS
    kinds = installed(console, [kind for kind in (*ours, *INSTALL) if kind in (given.only or LOCKS) or kind == OTHER])
    cases = [
        ("one lock, nothing inside", kinds, Load(1, 0.0, given.processes, given.seconds)),
        ("one lock, 2 ms inside", kinds, Load(1, 0.002, given.processes, given.seconds)),
        ("k = 3, 2 ms inside", [*ours, *SEMAPHORES], Load(3, 0.002, given.processes, given.seconds)),
        ("alone", [kind for kind in kinds if kind not in SERVERS[1:]], Load(1, 0.0, 1, given.seconds)),
    ]
    for number, (title, some, load) in enumerate(cases, 1):
        if number in (given.table or range(1, 6)):
            outcomes = {kind: bench.run(kind, load) for kind in some if kind in kinds}
            show(console, f"{number}. {title}", outcomes)
    if 5 in (given.table or [5]):
        show_hand_over(console, bench, [kind for kind in kinds if kind in (*ours, "flock", "posix_ipc")])


if __name__ == "__main__":
    main()
