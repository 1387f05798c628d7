"""How the cost of a gate on one host grows with the number of processes: `make bench-growth`.

1. N processes start at once, pass a gate of three once, and end; beside as many that only start Python
2. N processes wait: how much CPU time they take, and how long a hand-over takes
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from fairgate.room.room import Room

AT_ONCE = (10, 100, 1000)
WATCHED_SECONDS = 5.0
HAND_OVERS = 50
PASS = "import sys; from fairgate.room.room import Room; Room(sys.argv[1], 'g', 3).acquire().release()"
BARE = "import os, sys, threading, mmap, select, signal"
WAIT = """
import os, sys, time
from fairgate.room.room import Room
room = Room(sys.argv[1], "g", 1)
permit = room.acquire()
os.write(1, time.monotonic_ns().to_bytes(8, "little"))
sys.stdin.readline()
"""


def all_at_once(program: str, count: int) -> float:
    """Seconds until this many processes have started and ended. Raises RuntimeError if one of them fails."""
    with TemporaryDirectory(prefix="growth") as folder:
        began = time.perf_counter()
        running = [subprocess.Popen([sys.executable, "-c", program, folder]) for _ in range(count)]
        failed = sum(process.wait() != 0 for process in running)
        seconds = time.perf_counter() - began
    if failed:
        raise RuntimeError(f"{failed} of {count} processes failed")
    return seconds


def start(console: Console) -> None:
    table = Table("processes at once", "pass a gate", "only start", "ratio", title_justify="left")
    for count in AT_ONCE:
        rounds = [(all_at_once(PASS, count), all_at_once(BARE, count)) for _ in range(3 if count < 1000 else 1)]
        ours, bare = median([each for each, _ in rounds]), median([each for _, each in rounds])
        table.add_row(f"{count:,}", f"{ours:.2f} s", f"{bare:.2f} s", f"{ours / bare:.2f}")
    console.print(table)


def wait(console: Console) -> None:
    table = Table("waiting processes", "CPU while nothing happens", "hand-over", title_justify="left")
    for count in AT_ONCE:
        with TemporaryDirectory(prefix="growth") as folder:
            table.add_row(f"{count:,}", *waiting(folder, count))
    console.print(table)


def start_waiter(folder: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", WAIT, folder], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def waiting(folder: str, count: int) -> tuple[str, str]:
    room = Room(folder, "g", 1)
    permit = room.acquire()
    assert permit is not None
    queue = []
    for number in range(count):  # one after the other, so that the order is known
        queue.append(start_waiter(folder))
        if number % 50 == 49 or number == count - 1:
            while len(room.requests()) <= number + 1:
                time.sleep(0.2)
    try:
        before = cpu_of(queue)
        time.sleep(WATCHED_SECONDS)
        share = (cpu_of(queue) - before) / WATCHED_SECONDS
        in_order = [request.pid for request in room.requests() if not request.inside]
        by_pid = {process.pid: process for process in queue}
        taken = []
        left = time.monotonic_ns()
        permit.release()
        for pid in in_order[:HAND_OVERS]:
            process = by_pid[pid]
            assert process.stdout is not None
            entered = int.from_bytes(process.stdout.read(8), "little")
            taken.append(entered - left)
            left = time.monotonic_ns()
            process.kill()
            process.wait()
        return f"{share:.1%} of a core", f"{median(taken) / 1e6:.2f} ms (killed holder)"
    finally:
        for process in reversed(queue):  # from the end of the queue, so that nobody else is let in
            process.kill()
        for process in queue:
            process.communicate()
        room.close()


def cpu_of(processes: list[subprocess.Popen[bytes]]) -> float:
    """Seconds of CPU time so far."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    console = Console(width=110)
    start(console)
    wait(console)


if __name__ == "__main__":
    main()
