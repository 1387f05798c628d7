"""How the cost of a gate on one host grows with the number of processes: `make bench-growth`.

1. N commands start at once and pass a gate of three, beside as many that start a command without a gate
2. N processes wait: how much CPU time they take, and how long a hand-over takes when the holder leaves, or is killed
3. ten thousand requests of one process
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

import fairgate
from fairgate.room.room import Room

AT_ONCE = (10, 100, 1000)
ROUNDS = 3
WATCHED_SECONDS = 5.0
HAND_OVERS = 50
MANY = 10_000
BARE = [sys.executable, "-c", 'import subprocess; subprocess.run(["true"])']
COMMAND = [str(Path(sys.executable).parent / "fairgate"), "run", "gpu", "-k", "3", "--", "true"]
ENTERED, LEFT = 1, 2
Said = struct.Struct("qqq")  # what a waiting process tells: which one, what, and when


# Commands at once.


def all_at_once(words: list[str], count: int) -> float:
    """Seconds until this many commands have ended. Raises RuntimeError if one of them fails."""
    began = time.perf_counter()
    running = [subprocess.Popen(words, stdin=subprocess.DEVNULL) for _ in range(count)]
    failed = sum(process.wait() != 0 for process in running)
    if failed:
        raise RuntimeError(f"{failed} of {count} commands failed")
    return time.perf_counter() - began


def commands(console: Console) -> None:
    table = Table("commands at once", "fairgate run", "without a gate", "ratio", title_justify="left")
    for count in AT_ONCE:
        rounds = [(all_at_once(COMMAND, count), all_at_once(BARE, count)) for _ in range(ROUNDS)]
        ours, bare = median([each for each, _ in rounds]), median([each for _, each in rounds])
        table.add_row(f"{count:,}", f"{ours:.2f} s", f"{bare:.2f} s", f"{ours / bare:.2f}")
    console.print(table)


# Processes that wait.


class Waiters:
    """Forked processes that wait for a gate of one, each of which leaves when it is told to."""

    def __init__(self, folder: str, count: int) -> None:
        self.folder = folder
        self.room = Room(folder, "gpu", 1)
        self.permit = self.room.acquire()
        self.heard, self.told = os.pipe()
        self.stay, self.leave = os.pipe()  # a byte lets the holder leave
        self.pids: list[int] = []
        self.holder = 0
        for number in range(count):  # a few at a time, so that they do not all contend for a processor
            self.pids.append(self.fork(number))
            if number % 20 == 19 or number == count - 1:
                while len(self.room.requests()) <= number + 1:
                    time.sleep(0.005)

    def fork(self, number: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            permit = Room(self.folder, "gpu", 1).acquire()
            assert permit is not None
            os.write(self.told, Said.pack(number, ENTERED, time.monotonic_ns()))
            os.read(self.stay, 1)
            os.write(self.told, Said.pack(number, LEFT, time.monotonic_ns()))
            permit.release()
        finally:
            os._exit(0)

    def hear(self) -> tuple[int, int, int]:
        number, what, when = Said.unpack(os.read(self.heard, Said.size))
        return number, what, when

    def begin(self) -> None:
        """Let the first one in."""
        assert self.permit is not None
        self.permit.release()
        self.holder = self.hear()[0]

    def released(self) -> list[int]:
        """ns from the release to the next entry, of several."""
        taken = []
        for _ in range(HAND_OVERS):
            os.write(self.leave, b"x")
            said = {what: (who, when) for who, what, when in (self.hear(), self.hear())}
            self.holder = said[ENTERED][0]
            taken.append(said[ENTERED][1] - said[LEFT][1])
        return taken

    def killed(self) -> list[int]:
        """ns from the kill to the next entry, of several."""
        taken = []
        for _ in range(HAND_OVERS):
            began = time.monotonic_ns()
            os.kill(self.pids[self.holder], signal.SIGKILL)
            self.holder, _, entered = self.hear()
            taken.append(entered - began)
        return taken

    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        ticks = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        for pid in reversed(self.pids):  # from the end of the queue, so that nobody else is let in
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.room.close()
        for fd in (self.heard, self.told, self.stay, self.leave):
            os.close(fd)


def waiting(console: Console) -> None:
    table = Table("waiting processes", "CPU while nothing happens", "hand-over", "after a kill", title_justify="left")
    for count in (each for each in AT_ONCE if each > 2 * HAND_OVERS):
        with TemporaryDirectory(prefix="growth") as folder:
            waiters = Waiters(folder, count + HAND_OVERS)
            try:
                before = waiters.cpu()
                time.sleep(WATCHED_SECONDS)
                share = (waiters.cpu() - before) / WATCHED_SECONDS
                waiters.begin()
                taken = waiters.released()
                killed = waiters.killed()
            finally:
                waiters.close()
        table.add_row(
            f"{count:,}", f"{share:.1%} of a core", f"{median(taken) / 1e3:.0f} us", f"{median(killed) / 1e3:.0f} us"
        )
    console.print(table)


# Requests of one process.


async def many(console: Console) -> None:
    with TemporaryDirectory(prefix="growth") as folder:
        os.environ["FAIRGATE_DIR"] = folder
        async with fairgate.join() as peer:
            gate = peer.lock("many")
            held = await gate.acquire()
            assert held is not None
            began = time.perf_counter()
            tasks = [asyncio.create_task(gate.acquire()) for _ in range(MANY)]
            while len(await gate.waiters()) < MANY:
                await asyncio.sleep(0.1)
            asked = time.perf_counter() - began
            began = time.perf_counter()
            held.release()
            for task in tasks:
                permit = await task
                assert permit is not None
                permit.release()
            console.print(
                f"{MANY:,} requests of one process: {asked:.2f} s until all wait,"
                f" {(time.perf_counter() - began) / MANY * 1e6:.0f} us per entry"
            )


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    console = Console(width=110)
    with TemporaryDirectory(prefix="growth") as folder:
        os.environ["FAIRGATE_DIR"] = folder
        commands(console)
    waiting(console)
    asyncio.run(many(console))


if __name__ == "__main__":
    main()
