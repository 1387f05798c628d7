"""Threads, tasks and processes at one gate that is closed, broken, forked, resized and left in every way, and a judge.

Each process has one peer, whose users enter again and again: threads, or tasks of asyncio. Meanwhile somebody closes
the gate or the peer and opens it again, revokes permits, forks, and changes k; leases end during bodies, and requests
are cancelled. Every holder writes down from when until when it has seen its permit valid, and its slots and fence. The
judge knows nothing but these notes.

`python -m tests.room.churn --seconds 600` runs it from the command line; FAIRGATE_PURE=1 chooses the plain files.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import fairgate
from fairgate import sync
from fairgate.errors import BadInput, FairgateError, GateClosed, PermitLost
from fairgate.interface import BasePermit
from fairgate.request import Request
from fairgate.room.room import Room
from tests.room.versions import version

GATE = "g"
USERS = 6  # threads or tasks per process
ACTS = ("close", "leave", "break", "fork", "resize", "lease", "cancel", "several")
ROW = struct.Struct("qqqqqq")  # user, number of its entry, entered, last seen valid or 0, fence, slots as bits
CHILD_SECONDS = 30
STUCK_SECONDS = 60.0
OTHERS = (GateClosed, PermitLost)  # how calls may end when somebody closes the gate


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class Load:
    folder: str
    k: int
    acts: frozenset[str]
    end: float  # on time.monotonic

    def goes_on(self) -> bool:
        return time.monotonic() < self.end


class Diary:
    """What one process writes down. A row is one write, so that threads do not mix theirs."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.fd = os.open(f"{load.folder}/log.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.complaints = os.open(f"{load.folder}/wrong.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def complain(self, what: str) -> None:
        os.write(self.complaints, f"{what.strip()}\0".encode())


class Stay:
    """One entry: from when until when its permit was seen valid."""

    def __init__(self, diary: Diary, user: int, number: int, permit: BasePermit) -> None:
        self.diary = diary
        self.permit = permit
        self.entered = now()
        self.last = 0  # it was not seen valid yet
        self.user = user
        self.number = number
        slots = sum(1 << slot for slot in permit.slots)
        self.row = (permit.fence or 0, slots)

    def look(self) -> bool:
        """Valid now means that it was valid until now."""
        before = now()
        if not self.permit.valid:
            return False
        self.last = before
        if (self.permit.fence or 0) != self.row[0] or sum(1 << slot for slot in self.permit.slots) != self.row[1]:
            self.diary.complain(f"a permit has changed from {self.row} to {self.permit}")
        return True

    def compare(self, listed: list[Request]) -> None:
        """The list was made while the permit was valid, which the caller must have looked at before."""
        if self.look() and not any(
            one.inside and one.fence == self.permit.fence and one.slots == self.permit.slots and one.pid == os.getpid()
            for one in listed
        ):
            self.diary.complain(f"{self.permit} is not listed: {[one for one in listed if one.inside]}")

    def end(self) -> None:
        os.write(self.diary.fd, ROW.pack(self.user, self.number, self.entered, self.last, *self.row))
        if self.permit.held.why_lost() == "it was revoked" and "break" not in self.diary.load.acts:
            self.diary.complain(f"{self.permit} was revoked, and nobody did that")


class Wish:
    """What the next request asks for."""

    def __init__(self, load: Load, rng: random.Random) -> None:
        self.timeout = rng.choice((None, None, 0.0, 0.01))
        self.lease = rng.choice((None, 0.002, 5.0)) if "lease" in load.acts else None
        self.n = rng.choice((1, 1, min(2, load.k))) if "several" in load.acts else 1
        self.stay = rng.random() * 0.002
        self.lists = rng.random() < 0.05


# Threads.


class Threads:
    def __init__(self, load: Load) -> None:
        self.load = load
        self.diary = Diary(load)
        self.peer = sync.join()
        self.gate = self.peer.semaphore(GATE, load.k)

    def run(self) -> None:
        threads = [threading.Thread(target=self.guarded, args=(self.enter, each)) for each in range(USERS)]
        threads += [threading.Thread(target=self.guarded, args=(act, USERS)) for act in self.acts()]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.peer.close()

    def guarded(self, work: Callable[[int], None], user: int) -> None:
        try:
            work(user)
        except BaseException:
            self.diary.complain(traceback.format_exc())

    def acts(self) -> Iterator[Callable[[int], None]]:
        if self.load.acts & {"close", "leave"}:
            yield self.close
        if "break" in self.load.acts:
            yield self.revoke
        if "resize" in self.load.acts:
            yield self.resize

    def enter(self, user: int, most: int = sys.maxsize) -> None:
        rng = random.Random(os.getpid() * 1000 + user)
        number = 0
        while self.load.goes_on() and number < most:
            number += 1
            if "fork" in self.load.acts and most == sys.maxsize and rng.random() < 0.002:
                self.fork(user)
            wish = Wish(self.load, rng)
            try:
                permit = self.gate.acquire(wish.timeout, lease=wish.lease, n=wish.n)
            except OTHERS:
                time.sleep(0.0005)
                continue
            except BadInput:  # k has become smaller
                continue
            if permit is not None:
                self.stay(Stay(self.diary, user, number, permit), wish)

    def stay(self, stay: Stay, wish: Wish) -> None:
        until = time.monotonic() + wish.stay
        if wish.lists and stay.look():
            with suppress(*OTHERS):
                stay.compare(self.gate.requests())
        while stay.look() and time.monotonic() < until:
            time.sleep(0.0002)
        stay.end()
        with suppress(*OTHERS):
            stay.permit.release()

    def fork(self, user: int) -> None:
        pid = os.fork()
        if pid == 0:
            signal.alarm(CHILD_SECONDS)
            code = 1
            try:
                child = Threads(self.load)
                child.enter(user, most=5)
                child.peer.close()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        if status:
            self.diary.complain(f"a forked child ended with {status}")

    def close(self, user: int) -> None:
        rng = random.Random(os.getpid())
        while self.load.goes_on():
            time.sleep(rng.random() * 0.02)
            if "leave" in self.load.acts and ("close" not in self.load.acts or rng.random() < 0.3):
                self.peer.close()
                self.peer = sync.join()
            else:
                self.gate.close()
            self.gate = self.peer.semaphore(GATE, self.load.k)

    def revoke(self, user: int) -> None:
        rng = random.Random(os.getpid())
        while self.load.goes_on():
            time.sleep(rng.random() * 0.02)
            with suppress(FairgateError), Room(self.load.folder, GATE, create=False) as room:
                holders = [one for one in room.requests() if one.inside]
                if holders:
                    one = rng.choice(holders)
                    room.revoke(one.slots[0], one.fence)

    def resize(self, user: int) -> None:
        rng = random.Random(os.getpid())
        while self.load.goes_on():
            time.sleep(rng.random() * 0.05)
            with suppress(GateClosed, BadInput):
                self.gate.resize(rng.randint(max(1, self.load.k - 1), self.load.k))


# Tasks.


class Tasks:
    def __init__(self, load: Load) -> None:
        self.load = load
        self.diary = Diary(load)

    async def run(self) -> None:
        self.peer = await fairgate.join()
        self.gate = self.peer.semaphore(GATE, self.load.k)
        works = [self.enter(each) for each in range(USERS)]
        if self.load.acts & {"close", "leave"}:
            works.append(self.close())
        ended = await asyncio.gather(*works, return_exceptions=True)
        for wrong in ended:
            if wrong is not None:
                self.diary.complain("".join(traceback.format_exception(wrong)))
        await self.peer.close()

    async def enter(self, user: int) -> None:
        rng = random.Random(os.getpid() * 1000 + user)
        number = 0
        while self.load.goes_on():
            number += 1
            wish = Wish(self.load, rng)
            asking = asyncio.create_task(self.gate.acquire(wish.timeout, lease=wish.lease, n=wish.n))
            if "cancel" in self.load.acts and rng.random() < 0.1:
                asyncio.get_running_loop().call_later(rng.random() * 0.002, asking.cancel)
            try:
                permit = await asking
            except (*OTHERS, asyncio.CancelledError):
                await asyncio.sleep(0.0005)
                continue
            except BadInput:
                continue
            if permit is not None:
                await self.stay(Stay(self.diary, user, number, permit), wish)

    async def stay(self, stay: Stay, wish: Wish) -> None:
        until = time.monotonic() + wish.stay
        if wish.lists and stay.look():
            with suppress(*OTHERS):
                stay.compare(await self.gate.requests())
        while stay.look() and time.monotonic() < until:
            await asyncio.sleep(0.0002)
        stay.end()
        with suppress(*OTHERS):
            stay.permit.release()

    async def close(self) -> None:
        rng = random.Random(os.getpid())
        while self.load.goes_on():
            await asyncio.sleep(rng.random() * 0.02)
            if "leave" in self.load.acts and ("close" not in self.load.acts or rng.random() < 0.3):
                await self.peer.close()
                self.peer = await fairgate.join()
            else:
                await self.gate.close()
            self.gate = self.peer.semaphore(GATE, self.load.k)


def work(load: Load, of_tasks: bool) -> None:
    if of_tasks:
        asyncio.run(Tasks(load).run())
    else:
        Threads(load).run()


# The judge.


@dataclass(frozen=True)
class Entry:
    pid: int
    user: int
    number: int
    entered: int
    last: int
    fence: int
    slots: int


@dataclass
class Outcome:
    entries: int = 0
    users: int = 0
    twice: list[str] = field(default_factory=list)  # fences that two entries have
    together: list[str] = field(default_factory=list)  # entries in one slot at the same time
    most_inside: int = 0
    longest_gap: float = 0.0
    wrong: list[str] = field(default_factory=list)  # what processes complained about
    left: int = 0  # slots that stayed taken

    def complaints(self, k: int) -> list[str]:
        """What should not have happened."""
        return [
            *(f"one fence twice: {each}" for each in self.twice[:5]),
            *(f"one slot twice: {each}" for each in self.together[:5]),
            *(f"{self.most_inside} slots of {k} were taken" for _ in range(self.most_inside > k)),
            *(f"the gate stood still for {self.longest_gap:.0f} s" for _ in range(self.longest_gap > STUCK_SECONDS)),
            *self.wrong[:5],
            *(f"{self.left} slots stayed taken" for _ in range(self.left > 0)),
        ]

    def __str__(self) -> str:
        return (
            f"{self.entries:,} entries of {self.users} users, {len(self.twice)} fences twice, "
            f"{len(self.together)} pairs in one slot, {self.most_inside} slots taken at most, "
            f"{self.longest_gap:.1f} s without an entry at most, {len(self.wrong)} errors"
        )


def read(folder: str) -> list[Entry]:
    found = []
    for path in Path(folder).glob("log.*"):
        pid = int(path.suffix[1:])
        found += [Entry(pid, *row) for row in ROW.iter_unpack(path.read_bytes())]
    return sorted(found, key=lambda entry: (entry.entered, entry.fence))


def judge(entries: list[Entry], k: int) -> Outcome:
    outcome = Outcome(entries=len(entries), users=len({(entry.pid, entry.user) for entry in entries}))
    fences: dict[int, Entry] = {}
    for entry in entries:
        if entry.fence in fences:
            outcome.twice.append(f"{fences[entry.fence]} and {entry}")
        fences[entry.fence] = entry
    held = [entry for entry in entries if entry.last]
    for slot in range(k):
        last: Entry | None = None
        for entry in held:
            if entry.slots >> slot & 1:
                if last is not None and entry.entered < last.last:
                    outcome.together.append(f"{last} and {entry}")
                if last is None or entry.last > last.last:
                    last = entry
    events = sorted(
        event
        for entry in held
        for event in ((entry.entered, entry.slots.bit_count()), (entry.last, -entry.slots.bit_count()))
    )
    inside = 0
    for _, change in events:
        inside += change
        outcome.most_inside = max(outcome.most_inside, inside)
    outcome.longest_gap = max([after.entered - before.entered for before, after in pairwise(entries)], default=0) / 1e9
    return outcome


def churn(seconds: float, processes: int, k: int, acts: frozenset[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="room") as folder:
        os.environ["FAIRGATE_DIR"] = folder
        load = Load(folder, k, acts, time.monotonic() + seconds)
        pids = {start(load, of_tasks=number % 2 == 1) for number in range(processes)}
        wrong = wait_for(pids, seconds + STUCK_SECONDS)
        outcome = judge(read(folder), k)
        outcome.wrong = wrong + [
            text for path in Path(folder).glob("wrong.*") for text in path.read_text().split("\0") if text
        ]
        with Room(folder, GATE) as room:
            room.resize(k)
            outcome.left = k - sum([room.acquire(timeout=5) is not None for _ in range(k)])
        return outcome


def start(load: Load, of_tasks: bool) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work(load, of_tasks)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def wait_for(pids: set[int], seconds: float) -> list[str]:
    """Complains of processes that do not end, or end badly."""
    wrong = []
    end = time.monotonic() + seconds
    while pids and time.monotonic() < end:
        for pid in list(pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                pids.remove(pid)
                wrong += [f"process {pid} ended with {status}"] * (status != 0)
        time.sleep(0.05)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        wrong.append(f"process {pid} did not end")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.churn", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("-k", type=int, default=2)
    parser.add_argument("--acts", default=",".join(ACTS), help=f"what happens, some of {','.join(ACTS)}")
    given = parser.parse_args()
    outcome = churn(given.seconds, given.processes, given.k, frozenset(given.acts.split(",")))
    print(f"{version()}: {outcome}", *outcome.complaints(given.k), sep="\n")
    return bool(outcome.complaints(given.k))


if __name__ == "__main__":
    sys.exit(main())
