"""A group of peers, each in its own process, and checks on their reports: who was inside, when, in which slot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.live.gates import SOON
from tests.live.kinds import Kind
from tests.live.nursery import Plan

Task = tuple[int, str]  # process and task


class Visit:
    def __init__(self, task: Task, asked: int) -> None:
        self.task = task
        self.asked = asked
        self.entered = 0  # ns; 0 if not yet
        self.left = 0
        self.slot: int | None = None
        self.fence: int | None = None


class Colony:
    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind = kind
        self.results = folder / "results"
        self.pids: list[int] = []  # of peers that we have not killed
        self.killed: dict[int, int] = {}  # time of death, ns on the monotonic clock

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.live.nursery", str(self.results)]
        self.nursery = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in self.pids:
            send(pid, signal.SIGKILL)
        self.nursery.kill()
        self.nursery.communicate()

    # Control.

    def start(self, plan: Plan) -> int:
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        plan = msgspec.structs.replace(plan, protocol=self.kind.protocol, seeds=self.kind.seeds)
        self.nursery.stdin.write(msgspec.json.encode(plan) + b"\n")
        self.nursery.stdin.flush()
        pid = int(self.nursery.stdout.readline())
        self.pids.append(pid)
        return pid

    def kill(self, pid: int) -> None:
        self.pids.remove(pid)
        self.killed[pid] = time.monotonic_ns()  # taken before the kill, so that its stay is not overestimated
        send(pid, signal.SIGKILL)

    def leave(self, pid: int) -> None:
        """Lets a peer leave cleanly, without waiting for it."""
        send(pid, signal.SIGTERM)

    def end(self) -> None:
        """Lets all peers leave cleanly, which includes that all their requests are granted. Fails if one hangs."""
        for pid in self.pids:
            send(pid, signal.SIGTERM)
        until(lambda: self.said_bye().keys() >= set(self.pids), self.state)
        self.pids = []

    # Reports.

    def lines(self) -> list[list[str]]:
        text = self.results.read_text() if self.results.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # the last line may be incomplete
        return [line.split(" ", 3) for line in whole.splitlines()]

    def said_bye(self) -> dict[int, int]:
        """The peers that have left, with the number of their entries."""
        for pid, _, what, *rest in self.lines():
            assert what != "error", f"{pid}: {rest}"
        return {int(pid): int(rest[0]) for pid, _, what, *rest in self.lines() if what == "bye"}

    def living(self) -> set[int]:
        """The peers that have neither been killed nor left."""
        return set(self.pids) - self.said_bye().keys()

    def visits(self) -> list[Visit]:
        last: dict[Task, Visit] = {}
        found = []
        for pid, task, what, *rest in self.lines():
            who = (int(pid), task)
            if what == "ask":
                last[who] = Visit(who, int(rest[0]))
                found.append(last[who])
            elif what == "in":
                when, slot, fence = rest[0].split()
                last[who].entered = int(when)
                last[who].slot, last[who].fence = number(slot), number(fence)
            elif what == "out":
                last[who].left = int(rest[0])
        return found

    def state(self) -> str:
        """A description for the message of a failed test."""
        now = time.monotonic_ns()
        open_ones = [visit for visit in self.visits() if not visit.left and visit.task[0] not in self.killed]
        people = [
            f"{visit.task} has been {'inside' if visit.entered else 'waiting'} for"
            f" {(now - (visit.entered or visit.asked)) / 1e9:.2f} s"
            for visit in open_ones
        ]
        return "\n".join([f"living: {self.pids}", f"killed: {list(self.killed)}", *people, self.kind.state("gate")])

    # Checks.

    def check(self, k: int) -> int:
        """Checks that at most k are inside, one per slot, and that fences rise. Returns the number of visits."""
        visits = [visit for visit in self.visits() if visit.entered]
        now = time.monotonic_ns()
        for visit in visits:
            visit.left = visit.left or self.killed.get(visit.task[0], now)
        at_most(k, visits)
        for slot in {visit.slot for visit in visits} - {None}:
            there = sorted([visit for visit in visits if visit.slot == slot], key=lambda visit: visit.entered)
            at_most(1, there)
            fences = [visit.fence for visit in there if visit.fence is not None]
            assert len(fences) == len(there), f"slot {slot} was entered without a fence"
            assert fences == sorted(set(fences)), f"the fences of slot {slot} do not rise"
        return len(visits)

    def overtakes(self) -> list[int]:
        """For every visit, how many visits asked after it and entered before it."""
        before: list[int] = []  # when the visits that entered earlier had asked
        found = []
        for visit in sorted([visit for visit in self.visits() if visit.entered], key=lambda visit: visit.entered):
            found.append(len(before) - bisect_right(before, visit.asked))
            insort(before, visit.asked)
        return found

    def overtakes_by_one(self, since: int = 0, apart_from: int = 0) -> int:
        """The maximum of overtakes by any single other task, over visits that asked after `since`.

        Without the worst one of every `apart_from` visits, if that is given: a process that has no processor core
        after it noted when it asks is overtaken for as long as that takes.
        """
        visits = [visit for visit in self.visits() if visit.entered and visit.asked >= since]
        asked: dict[Task, list[int]] = {}
        entered: dict[Task, list[int]] = {}
        for visit in visits:  # per task, both lists are in ascending order
            asked.setdefault(visit.task, []).append(visit.asked)
            entered.setdefault(visit.task, []).append(visit.entered)
        worst = sorted(
            max(
                bisect_left(entered[other], visit.entered) - bisect_right(asked[other], visit.asked)
                for other in asked
                if other != visit.task
            )
            for visit in visits
        )
        return worst[-1 - (len(worst) // apart_from if apart_from else 0)]


def at_most(k: int, visits: list[Visit]) -> None:
    changes = sorted([(visit.entered, 1) for visit in visits] + [(visit.left, -1) for visit in visits])
    inside = 0
    for when, change in changes:
        inside += change
        assert inside <= k, f"{inside} were inside at {when}"


def number(text: str) -> int | None:
    return None if text == "None" else int(text)


def send(pid: int, what: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, what)


def until(condition: Callable[[], bool], state: Callable[[], str], seconds: float = SOON) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, state()
        time.sleep(0.005)
