"""Live gates compared with alternatives, all in one run: `make bench-live`.

1. one lock, nothing done inside          3. k = 3, 2 ms inside
2. one lock, 2 ms inside                  4. one process alone, entering repeatedly
5. hand-over between two processes, compared with a bare ping

In each of the first three, eight processes contend for five seconds. For each entry, the *overtakes* are the later
requests that entered before it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from array import array
from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench.net import bare_round_trip
from bench.rivals import INSTALL, missing, server

PROCESSES, SECONDS = 8, 5.0
OURS = ("fairgate", "room")  # room: the waiting room of one host, which live gates do not use yet
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


def run(kind: str, k: int, inside: float, processes: int = PROCESSES, seconds: float = SECONDS) -> Outcome:
    with TemporaryDirectory(prefix="fgbench") as name:
        folder = Path(name)
        with server(kind, folder / "server") as port:
            return contend(kind, k, port, inside, processes, seconds, folder)


def contend(kind: str, k: int, port: int, inside: float, processes: int, seconds: float, folder: Path) -> Outcome:
    environ = os.environ | {"FAIRGATE_DIR": str(folder / "run")}
    files = [folder / f"{i}" for i in range(processes)]
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.contender", kind, str(k), str(port), str(inside), str(seconds), str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ,
        )
        for file in files
    ]  # fmt: skip
    try:
        messages, cpu = conduct(workers)
    finally:
        for worker in workers:
            worker.kill()
    return outcome([read(file, who) for who, file in enumerate(files)], messages, cpu, seconds)


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


def there(console: Console, kinds: tuple[str, ...]) -> list[str]:
    found = []
    for kind in kinds:
        how = missing(kind) if kind in INSTALL else ""
        if how:
            console.print(f"{kind} is skipped; to include it: {how}")
        else:
            found.append(kind)
    return found


def main() -> None:
    console = Console(width=150)
    kinds = there(console, LOCKS)
    show(console, "1. one lock, nothing inside", {kind: run(kind, 1, 0.0) for kind in kinds})
    show(console, "2. one lock, 2 ms inside", {kind: run(kind, 1, 0.002) for kind in kinds})
    many = [kind for kind in kinds if kind in (*OURS, "kazoo")]
    show(console, "3. k = 3, 2 ms inside", {kind: run(kind, 3, 0.002) for kind in many})
    alone = [kind for kind in kinds if kind in (*OURS, "redis-py")]
    show(console, "4. alone", {kind: run(kind, 1, 0.0, processes=1) for kind in alone})
    show_hand_over(console)


def show_hand_over(console: Console) -> None:
    """Compare with a bare ping. Rounds alternate, because the machine's speed varies."""
    ours, rooms, pings = [], [], []
    for _ in range(HAND_OVERS):
        ours.append(run("fairgate", 1, 0.001, processes=2, seconds=2.0).hand_over)
        rooms.append(run("room", 1, 0.001, processes=2, seconds=2.0).hand_over)
        with TemporaryDirectory(prefix="fgbench") as folder:
            pings.append(bare_round_trip(Path(folder)))
    table = Table("5. hand-over between two processes", "median of the rounds", title_justify="left")
    table.add_row("from one process leaving to the other entering", f"{median(ours) * 1e6:.0f} us")
    table.add_row("the same in a waiting room", f"{median(rooms) * 1e6:.0f} us")
    table.add_row("a bare round trip, on the same event loop and kind of socket", f"{median(pings) * 1e6:.0f} us")
    ratio = median([own / ping for own, ping in zip(ours, pings, strict=True)])
    table.add_row("ratio", f"{ratio:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
