"""How the cost of a gate on one host grows with the number of processes: `make bench-growth`.

1. N processes start at once, pass a gate of three once, and end; beside as many that only start Python
2. N processes wait: how much CPU time they take, and how long it takes from a release, or from the death of the holder,
   until the next one is inside
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from fairgate.room.room import Room

AT_ONCE = (10, 100, 1000)
LAST_FILE = 10_000
AT_A_TIME = 50  # waiters that are started together
SETTLE_SECONDS, WATCHED_SECONDS = 2.0, 10.0
HAND_OVERS = 50
PASS = "import sys; from fairgate.room.room import Room; Room(sys.argv[1], 'g', 3).acquire().release()"
BARE = "import os, sys, threading, mmap, select, signal"


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
    table = Table("waiting processes", "CPU while nothing happens", "hand-over", "after kill -9", title_justify="left")
    for count in AT_ONCE:
        with TemporaryDirectory(prefix="growth") as folder:
            table.add_row(f"{count:,}", *waiting(folder, count))
    console.print(table)


class Waiter:
    """A forked process that asks for a permit, says when it has it, and releases it when it is told to."""

    def __init__(self, folder: str) -> None:
        told, tell = os.pipe()
        hear, say = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for first, last in pairwise([2, *sorted((told, say)), LAST_FILE]):  # pipes to the others
                    os.closerange(first + 1, last)
                permit = Room(folder, "g", 1).acquire()
                assert permit is not None
                os.write(say, time.monotonic_ns().to_bytes(8, "little"))
                if os.read(told, 1):
                    permit.release()
                    os.read(told, 1)
            finally:
                os._exit(0)
        os.close(told)
        os.close(say)
        self.tell, self.hear = tell, hear

    def entered(self) -> int:
        """When it was let in, in ns."""
        return int.from_bytes(os.read(self.hear, 8), "little")

    def release(self) -> None:
        os.write(self.tell, b"r")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        os.waitpid(self.pid, 0)
        os.close(self.tell)
        os.close(self.hear)


def waiting(folder: str, count: int) -> tuple[str, str, str]:
    queue: list[Waiter] = []
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit is not None
        try:
            for number in range(count):
                queue.append(Waiter(folder))
                if number % AT_A_TIME == AT_A_TIME - 1 or number == count - 1:
                    while len(room.requests()) < number + 2:
                        time.sleep(0.05)
            time.sleep(SETTLE_SECONDS)
            before = cpu_of(queue)
            time.sleep(WATCHED_SECONDS)
            share = (cpu_of(queue) - before) / WATCHED_SECONDS
            by_pid = {waiter.pid: waiter for waiter in queue}
            in_order = [by_pid[request.pid] for request in room.requests() if not request.inside]
            few = min(HAND_OVERS, count // 2)
            permit.release()
            in_order[0].entered()
            released = ends(in_order[: few + 1], Waiter.release)
            killed = ends(in_order[few : 2 * few], Waiter.kill)
        finally:
            for waiter in reversed(queue):  # from the end of the queue, so that nobody else is let in
                waiter.kill()
            for waiter in queue:
                waiter.close()
        return f"{share:.1%} of a core", f"{released / 1e6:.2f} ms", f"{killed / 1e6:.2f} ms"


def ends(waiters: list[Waiter], end: Callable[[Waiter], None]) -> float:
    """Median ns from the end of one permit until the next one is inside. The first of them is inside."""
    taken = []
    for waiter, following in pairwise(waiters):
        began = time.monotonic_ns()
        end(waiter)
        taken.append(following.entered() - began)
    return median(taken)


def cpu_of(waiters: list[Waiter]) -> float:
    """Seconds of CPU time so far."""
    ticks = 0
    for waiter in waiters:
        fields = Path(f"/proc/{waiter.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
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
