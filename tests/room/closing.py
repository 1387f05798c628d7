"""Rooms that threads close at random, while other threads of the same process are being let in.

Each process has one room at a time, which several threads use. Another thread closes it and opens it again, or revokes
a permit; permits have leases that end or are extended, and are released by two threads at once; the gate changes its k.
A judge reads what all have written down: when which permit was valid, and why it ended.

`python -m tests.room.closing --help` runs it from the command line.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import queue
import random
import signal
import struct
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.errors import GateClosed
from fairgate.room.aio import AsyncRoom
from fairgate.room.calls import clock
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from tests.room.versions import version

ROW = struct.Struct("qqqq")  # what, fence, since, until
STAYED, LOST, REVOKED, CLOSED, RETURNED_INVALID, VALID_AFTER_CLOSING = range(6)
LEASE = 0.004  # seconds
SHORT = 0.0005
FOREVER = 1 << 62


@dataclass
class Outcome:
    entries: int = 0
    closed: int = 0  # requests that ended because their room was closed
    invalid: int = 0  # permits that had ended when they were looked at first
    revoked: int = 0
    most_inside: int = 0
    complaints: list[str] = field(default_factory=list)


class Opened:
    """A room of this process, from its opening to its end."""

    def __init__(self, folder: str, k: int) -> None:
        self.room = Room(folder, "g", k)
        self.ends = FOREVER  # when closing it began
        self.is_closed = False

    def close(self) -> None:
        self.ends = min(self.ends, clock())
        self.room.close()
        self.is_closed = True


class User:
    """A process."""

    def __init__(self, folder: str, k: int) -> None:
        self.folder = folder
        self.k = k
        self.rng = random.Random(os.getpid())
        self.log = os.open(f"{folder}/log.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.opened = Opened(folder, k)
        self.releases: queue.SimpleQueue[Permit] = queue.SimpleQueue()

    def write(self, what: int, fence: int = 0, since: int = 0, until: int = 0) -> None:
        os.write(self.log, ROW.pack(what, fence, since, until))

    def run(self, threads: int) -> None:
        for number in range(threads):
            rng = random.Random(self.rng.random() + number)
            threading.Thread(target=self.watched, args=(self.visit, rng), daemon=True).start()
        threading.Thread(target=self.watched, args=(self.release_too, self.rng), daemon=True).start()
        while True:
            time.sleep(self.rng.random() * 0.01)
            if self.rng.random() < 0.3:
                self.revoke()
            else:
                old, self.opened = self.opened, Opened(self.folder, self.k)
                old.close()

    def watched(self, work: object, rng: random.Random) -> None:
        try:
            work(rng)  # type: ignore[operator]
        except BaseException as wrong:
            print(f"a thread failed: {wrong!r}", file=sys.stderr)
            os._exit(1)

    def release_too(self, rng: random.Random) -> None:
        while True:
            self.releases.get().release()

    def revoke(self) -> None:
        room = self.opened.room
        holders = [one for one in room.requests() if one.inside]
        if holders:
            one = self.rng.choice(holders)
            now = clock()
            if room.revoke(one.slots[0], one.fence):
                self.write(REVOKED, one.fence, now, now)

    def visit(self, rng: random.Random) -> None:
        while True:
            opened = self.opened
            try:
                permit = opened.room.acquire(*self.wish(rng))
            except GateClosed:
                self.write(CLOSED)
                continue
            if permit is not None:
                stay = Stay(self, opened, permit)
                if rng.random() < 0.5:
                    time.sleep(rng.random() * 0.002)
                stay.end(rng)
                if rng.random() < 0.3:
                    self.releases.put(permit)
                permit.release()

    @staticmethod
    def wish(rng: random.Random) -> tuple[float | None, int, float | None]:
        return rng.choice((None, None, SHORT)), 1, rng.choice((None, None, LEASE))


class OpenedInLoop(Opened):
    def __init__(self, folder: str, k: int) -> None:
        super().__init__(folder, k)
        self.gate = AsyncRoom(self.room)

    async def aclose(self) -> None:
        self.ends = clock()
        await self.gate.aclose()
        self.close()


class LoopUser(User):
    """A process with tasks instead of threads. Now and then a thread closes the room without asking the loop."""

    opened: OpenedInLoop

    def __init__(self, folder: str, k: int) -> None:
        super().__init__(folder, k)
        self.opened.close()

    def run(self, threads: int) -> None:
        asyncio.run(self.main(threads))

    async def main(self, many: int) -> None:
        self.opened = OpenedInLoop(self.folder, self.k)
        async with asyncio.TaskGroup() as tasks:
            for number in range(many):
                tasks.create_task(self.visit_often(random.Random(self.rng.random() + number)))
            while True:
                await asyncio.sleep(self.rng.random() * 0.01)
                if self.rng.random() < 0.3:
                    self.revoke()
                    continue
                old, self.opened = self.opened, OpenedInLoop(self.folder, self.k)
                if self.rng.random() < 0.5:
                    await old.aclose()
                else:
                    await asyncio.to_thread(old.close)

    async def visit_often(self, rng: random.Random) -> None:
        while True:
            opened = self.opened
            try:
                permit = await opened.gate.acquire(*self.wish(rng))
            except GateClosed:
                self.write(CLOSED)
                await asyncio.sleep(0)
                continue
            if permit is not None:
                stay = Stay(self, opened, permit)
                if rng.random() < 0.5:
                    await asyncio.sleep(rng.random() * 0.002)
                stay.end(rng)
                permit.release()


class Stay:
    """With a permit, from its first look at it until it is about to release it."""

    def __init__(self, user: User, opened: Opened, permit: Permit) -> None:
        self.user = user
        self.opened = opened
        self.permit = permit
        closed, self.since = opened.is_closed, clock()
        self.is_valid = permit.is_valid()
        self.deadline = permit.deadline() or FOREVER
        if not self.is_valid:
            user.write(RETURNED_INVALID, permit.fence)
        elif closed:
            user.write(VALID_AFTER_CLOSING, permit.fence)

    def end(self, rng: random.Random) -> None:
        if self.is_valid:
            if self.deadline < FOREVER and rng.random() < 0.5:
                with suppress(GateClosed):
                    if self.permit.extend(int(LEASE * 1e9)):
                        self.deadline = self.permit.deadline() or self.deadline
            left = clock()
            what = STAYED if self.permit.is_valid() or self.has_ended() else LOST
            self.user.write(what, self.permit.fence, self.since, min(left, self.deadline, self.opened.ends))

    def has_ended(self) -> bool:
        return min(self.deadline, self.opened.ends) <= clock()


def judge(folder: str, k: int) -> Outcome:
    outcome = Outcome()
    rows = [row for path in Path(folder).glob("log.*") for row in rows_of(path)]
    revoked = {fence: since for what, fence, since, _ in rows if what == REVOKED}
    stays = [(fence, since, until) for what, fence, since, until in rows if what in (STAYED, LOST)]
    outcome.entries = len(stays)
    outcome.closed = sum(row[0] == CLOSED for row in rows)
    outcome.invalid = sum(row[0] == RETURNED_INVALID for row in rows)
    outcome.revoked = len(revoked)
    twice = len(stays) - len({fence for fence, _, _ in stays})
    events = []
    for fence, since, until in stays:
        left = min(until, revoked.get(fence, FOREVER))
        if since < left:
            events += [(since, 1), (left, -1)]
    inside = 0
    for _, change in sorted(events):
        inside += change
        outcome.most_inside = max(outcome.most_inside, inside)
    wrong = {
        "permits were given twice": twice,
        "permits were valid although their room was closed": sum(row[0] == VALID_AFTER_CLOSING for row in rows),
        "permits were lost for no reason": sum(row[0] == LOST and row[1] not in revoked for row in rows),
        "more than k were inside": outcome.most_inside - k if outcome.most_inside > k else 0,
    }
    outcome.complaints = [f"{count} {what}" for what, count in wrong.items() if count]
    return outcome


def rows_of(path: Path) -> list[tuple[int, int, int, int]]:
    data = path.read_bytes()
    return list(ROW.iter_unpack(data[: len(data) // ROW.size * ROW.size]))


def close_at_random(seconds: float, processes: int, threads: int, k: int, tasks: bool = False) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="room") as folder:
        pids = []
        for _ in range(processes):
            pid = os.fork()
            if pid == 0:
                try:
                    (LoopUser if tasks else User)(folder, k).run(threads)
                except BaseException as wrong:
                    print(f"a process failed: {wrong!r}", file=sys.stderr)
                finally:
                    os._exit(1)
            pids.append(pid)
        time.sleep(seconds)
        failed = 0
        for pid in pids:
            failed += os.waitpid(pid, os.WNOHANG)[0] != 0
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        outcome = judge(folder, k)
        if failed:
            outcome.complaints.append(f"{failed} processes failed")
        with Room(folder, "g", k) as room:
            if None in [room.acquire(timeout=5) for _ in range(k)]:
                outcome.complaints.append("a slot stays taken")
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.closing", description="Close rooms at random.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--tasks", action="store_true", help="tasks instead of threads")
    parser.add_argument("-k", type=int, default=1)
    outcome = close_at_random(**vars(parser.parse_args()))
    print(f"{version()}: {outcome}")
    return bool(outcome.complaints)


if __name__ == "__main__":
    sys.exit(main())
