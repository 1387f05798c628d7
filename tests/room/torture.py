"""Processes at one gate that are killed and stopped at random, and a judge that reads what they wrote down.

At most k-1 processes are stopped at a time, each for at most 0.6 s, so the gate must never stand still for long. With
`hunt`, most of those that are killed die in the middle of a change: changes are slowed down in plain Python, and
processes are stopped for an instant, to see whether they have the lock. With `rests`, processes pause outside, so that
they are often alone and keep their slots.

`python -m tests.room.torture --help` runs it from the command line.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from fairgate.room import links, table
from fairgate.room.bell import SUFFIX
from fairgate.room.layout import FREE, REBUILT, RESCUED, STATE
from fairgate.room.room import Room
from fairgate.room.sweep import sweep
from fairgate.room.system import lock_owner
from tests.room.versions import version

ROW = struct.Struct("qqqqq")  # asked, entered, about to leave (0: not yet), ticket, fence
now = time.monotonic_ns
SLOWED = [(table, "let_in"), (table, "let_in_all_that_fit"), (table, "append"), (table, "unlink"), (table, "put_spare")]
LONGEST_STOP = 600_000_000  # ns
WAKE_UPS = 8  # of processes one after the other, each of which a busy machine may delay


@dataclass(frozen=True)
class Entry:
    entered: int
    left: int
    asked: int
    ticket: int
    fence: int
    pid: int


@dataclass
class Outcome:
    entries: int = 0
    kills: int = 0
    stops: int = 0
    most_inside: int = 0
    longest_gap: float = 0.0  # seconds without an entry
    longest_wait: float = 0.0  # seconds, of processes that were not stopped meanwhile
    overtaken: int = 0  # entries after a later ticket
    unfair: int = 0  # of these, by processes that were not stopped meanwhile
    unserved: int = 0  # processes that lived for half a second and never entered
    rebuilt: int = 0  # changes that a process died in
    rescued: int = 0  # changes that a process was stopped in
    left_behind: list[str] = field(default_factory=list)
    delay: float = 0.0  # seconds that a process waited for a processor, at most

    def complaints(self, k: int) -> list[str]:
        """What should not have happened."""
        return [
            name
            for name, wrong in {
                "more than k were inside": self.most_inside > k,
                "a waiter was overtaken": self.unfair > 0,
                "a process was never served": self.unserved > 0,
                "the gate stood still": self.longest_gap > LONGEST_STOP / 1e9 + WAKE_UPS * self.delay,
                "something was left behind": bool(self.left_behind),
            }.items()
            if wrong
        ]


def slow_down() -> None:
    """Pause at random within changes, so that many processes die or are stopped in the middle of one."""
    for module, name in SLOWED:
        setattr(module, name, slowed(getattr(module, name)))


def slowed(function: Callable[..., Any]) -> Callable[..., Any]:
    def slower(*args: Any) -> Any:
        for before in (True, False):
            if random.random() < 0.1:
                time.sleep(random.random() * 0.002)
            if before:
                result = function(*args)
        return result

    return slower


def work(folder: str, k: int, hunt: bool, rests: bool) -> None:
    """One process: enters again and again until it is killed, and writes down when."""
    rng = random.Random(os.getpid())
    random.seed(os.getpid())
    if hunt and version() == "plain":
        slow_down()
    log = os.open(f"{folder}/log.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    room = Room(folder, "g", k)
    while True:
        asked = now()
        permit = room.acquire(
            timeout=rng.choice((None, None, None, 0.02)), lease=None if rests else rng.choice((None, None, 30))
        )
        if permit is not None:
            entered = now()
            os.write(log, ROW.pack(asked, entered, 0, permit.ticket, permit.fence))
            if rng.random() < (0.2 if hunt or rests else 0.7):
                time.sleep(rng.random() * 0.002)
            os.write(log, ROW.pack(asked, entered, now(), permit.ticket, permit.fence))
            permit.release()
            if rests and rng.random() < 0.1:
                time.sleep(rng.random() * 0.004)


class Torture:
    def __init__(self, folder: str, processes: int, k: int, seed: int, hunt: bool, rests: bool) -> None:
        self.folder = folder
        self.processes = processes
        self.k = k
        self.hunt = hunt
        self.rests = rests
        self.rng = random.Random(seed)
        self.born: dict[int, int] = {}
        self.killed: dict[int, int] = {}
        self.stopped: dict[int, tuple[int, int]] = {}  # since when, until when
        self.stops: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.finish = 0
        self.delay = 0.0

    def start(self) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                work(self.folder, self.k, self.hunt, self.rests)
            except BaseException as wrong:
                print(f"a process failed: {wrong!r}", file=sys.stderr)
            finally:
                os._exit(1)
        self.born[pid] = now()

    def alive(self) -> list[int]:
        return [pid for pid in self.born if pid not in self.killed]

    def kill(self, pid: int) -> None:
        self.killed[pid] = now()
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), "a process ended by itself"
        if pid in self.stopped:
            self.stops[pid].append((self.stopped.pop(pid)[0], now()))

    def run(self, seconds: float) -> Outcome:
        for _ in range(self.processes):
            self.start()
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                pause, began = self.rng.random() * 0.02, now()
                time.sleep(pause)
                self.step()  # waits for those that it kills: they need a processor to die
                self.delay = max(self.delay, (now() - began) / 1e9 - pause)
        finally:
            self.finish = now()
            kills = len(self.killed)
            for pid in self.alive():
                self.kill(pid)
        outcome = self.judge()
        outcome.kills = kills
        outcome.delay = self.delay
        outcome.left_behind = self.left_behind()
        with Room(self.folder, "g") as room:
            outcome.rebuilt, outcome.rescued = room.file.m[REBUILT], room.file.m[RESCUED]
        return outcome

    def left_behind(self) -> list[str]:
        """All slots must be free, and the bells of the dead are swept as soon as they are old enough."""
        with Room(self.folder, "g") as room:
            permits = [room.acquire(timeout=5) for _ in range(self.k)]
            for _ in range(50):  # requests of stopped processes that were killed are found one after the other
                if len(seated(room)) == self.k:
                    break
                room.acquire(timeout=0.05)
            left = [f"the request of {each.pid}" for each in room.requests() if each.pid != os.getpid()]
            left += ["a slot" for permit in permits if permit is None]
        for name in self.bells():
            os.utime(f"{self.folder}/{name}", (0, 0))
        for _ in range(50):  # a sweep has only a tenth of a second, and may have no processor meanwhile
            if not self.bells():
                break
            sweep(self.folder, False)
        return left + self.bells()

    def bells(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if name.endswith(SUFFIX)]

    def step(self) -> None:
        for pid, (since, until) in list(self.stopped.items()):
            if now() > until:
                os.kill(pid, signal.SIGCONT)
                self.stops[pid].append((since, now()))
                del self.stopped[pid]
        pid = self.rng.choice(self.alive())
        if self.hunt and self.rng.random() < 0.3:
            self.kill_one_with_the_lock()
        elif self.rng.random() < 0.4:
            self.kill(pid)
            self.start()
        elif pid not in self.stopped and len(self.stopped) < self.k - 1:
            self.stopped[pid] = (now(), now() + int(self.rng.random() * LONGEST_STOP))
            os.kill(pid, signal.SIGSTOP)

    def kill_one_with_the_lock(self) -> None:
        """Try some: stop it, and kill it if it has the lock."""
        try:
            fd = os.open(f"{self.folder}/g.gate", os.O_RDONLY)
        except FileNotFoundError:  # no process has opened it yet
            return
        running = [pid for pid in self.alive() if pid not in self.stopped]
        for pid in self.rng.sample(running, min(len(running), 6)):
            since = now()
            os.kill(pid, signal.SIGSTOP)
            _, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)  # another one may have continued it already
            if os.WIFSTOPPED(status) and lock_owner(fd) == pid:
                self.kill(pid)
                self.start()
                break
            os.kill(pid, signal.SIGCONT)
            self.stops[pid].append((since, now()))
        os.close(fd)

    # The judge.

    def entries(self) -> list[Entry]:
        found: dict[int, Entry] = {}
        for pid in self.killed:
            path = Path(self.folder) / f"log.{pid}"
            data = path.read_bytes() if path.exists() else b""
            for asked, entered, left, ticket, fence in ROW.iter_unpack(data[: len(data) // ROW.size * ROW.size]):
                found[fence] = Entry(entered, left or self.killed[pid], asked, ticket, fence, pid)
        return sorted(found.values(), key=lambda entry: entry.fence)

    def was_stopped(self, entry: Entry) -> bool:
        return any(since <= entry.entered and until >= entry.asked for since, until in self.stops[entry.pid])

    def judge(self) -> Outcome:
        entries = self.entries()
        assert len({entry.fence for entry in entries}) == len(entries), "a fence was given twice"
        outcome = Outcome(entries=len(entries), stops=sum(map(len, self.stops.values())))
        inside = 0
        events = sorted([(entry.entered, 1) for entry in entries] + [(entry.left, -1) for entry in entries])
        for _, change in events:
            inside += change
            outcome.most_inside = max(outcome.most_inside, inside)
        times = [*sorted(entry.entered for entry in entries), self.finish]
        outcome.longest_gap = max(after - before for before, after in pairwise(times)) / 1e9
        highest = 0
        for entry in entries:
            if entry.ticket < highest:
                outcome.overtaken += 1
                outcome.unfair += not self.was_stopped(entry)
            highest = max(highest, entry.ticket)
        outcome.longest_wait = max(e.entered - e.asked for e in entries if not self.was_stopped(e)) / 1e9
        served = {entry.pid for entry in entries}
        enough = 5e8 + WAKE_UPS * self.delay * 1e9
        lived = [pid for pid in self.killed if self.killed[pid] - self.born[pid] > enough and not self.stops[pid]]
        outcome.unserved = len([pid for pid in lived if pid not in served])
        return outcome


def seated(room: Room) -> list[int]:
    """The seats of all requests, also of dead processes."""
    m = room.file.m
    return [seat for seat in links.all_seats(m) if m[seat + STATE] != FREE]


def torture(seconds: float, processes: int, k: int, seed: int, hunt: bool = False, rests: bool = False) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="room") as folder:
        return Torture(folder, processes, k, seed, hunt, rests).run(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.torture", description="Kill and stop processes.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("-k", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hunt", action="store_true", help="kill many in the middle of a change")
    parser.add_argument("--rests", action="store_true", help="let processes be alone, so that they keep their slots")
    given = parser.parse_args()
    outcome = torture(**vars(given))
    print(f"{version()}: {outcome}", *outcome.complaints(given.k), sep="\n")
    return bool(outcome.complaints(given.k))


if __name__ == "__main__":
    sys.exit(main())
