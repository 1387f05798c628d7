"""Thousands of requests: what one step costs does not depend on how many wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import SupportsIndex

import pytest

from fairgate.room.aio import AsyncRoom
from fairgate.room.layout import HEAD, NEXT, OWNER, SEATS, TAIL
from fairgate.room.room import Room
from tests.room.children import Child, waits
from tests.room.plain import links, rules, table

FEW, MANY = 500, 4000


class Counted(list[int]):
    """A table that counts how often it is read."""

    reads = 0

    def __getitem__(self, at: SupportsIndex) -> int:  # type: ignore[override]  # no slices
        self.reads += 1
        return list.__getitem__(self, at)


class Senses:
    """The owners that are dead."""

    def __init__(self, m: Counted, dead: set[int]) -> None:
        self.m = m
        self.dead = dead

    def is_gone(self, seat: int) -> bool:
        return self.m[seat + OWNER] in self.dead

    def is_stopped(self, seat: int) -> bool:
        return False


class Crowd:
    """A table of one slot, with a holder and many waiters. Each has an owner of its own, from 1 on."""

    def __init__(self, waiting: int) -> None:
        self.m = Counted([0] * links.size(1, waiting + 10))
        table.create(self.m, 1, waiting + 10, 1, 0, 0)
        self.senses = Senses(self.m, set())
        self.now = 0
        self.seats = [self.ask(owner) for owner in range(1, waiting + 2)]

    def change(self) -> table.Change:
        self.now += 1_000_000_000
        return table.Change(self.now, self.senses.is_stopped)

    def ask(self, owner: int) -> int:
        seat = rules.ask(self.m, self.change(), self.senses, rules.Request(owner, owner, 1, 0, 1, 0))
        rules.duties(self.m, seat, self.now)
        return seat

    def leave(self, seat: int) -> None:
        rules.leave(self.m, self.change(), seat, self.m[seat + 1])

    def look(self, seat: int, tick: bool = True) -> None:
        rules.look(self.m, self.change(), self.senses, seat, (), tick)
        rules.duties(self.m, seat, self.now)

    def middle(self) -> int:
        return self.seats[len(self.seats) // 2]


STEPS: dict[str, Callable[[Crowd], object]] = {
    "a request": lambda crowd: crowd.ask(100_000),
    "a release": lambda crowd: crowd.leave(crowd.seats[0]),
    "giving up at the end": lambda crowd: crowd.leave(crowd.seats[-1]),
    "giving up in the middle": lambda crowd: crowd.leave(crowd.middle()),
    "a look of the first waiter": lambda crowd: crowd.look(crowd.m[HEAD]),
    "a look of the second waiter": lambda crowd: crowd.look(crowd.m[crowd.m[HEAD] + NEXT]),
    "a look in the middle": lambda crowd: crowd.look(crowd.middle()),
    "a look of the last waiter": lambda crowd: crowd.look(crowd.m[TAIL]),
}


@pytest.mark.parametrize("what", STEPS)
def test_a_step_costs_the_same_however_many_wait(what: str) -> None:
    costs = []
    for waiting in (FEW, MANY):
        crowd = Crowd(waiting)
        crowd.m.reads = 0
        STEPS[what](crowd)
        costs.append(crowd.m.reads)
    assert costs[0] == costs[1] < 300


def test_the_cost_of_burying_many_grows_with_their_number() -> None:
    """All waiters except for the last one die at once."""
    costs = []
    for waiting in (FEW, MANY):
        crowd = Crowd(waiting)
        crowd.senses.dead = set(range(2, waiting + 1))
        crowd.m.reads = 0
        rules.look(crowd.m, crowd.change(), crowd.senses, crowd.m[TAIL], crowd.senses.dead, False)
        costs.append(crowd.m.reads / waiting)
        assert crowd.m[HEAD] == crowd.m[TAIL]
    assert costs[1] < 1.1 * costs[0]


def test_the_cost_of_closing_grows_with_the_number_of_requests() -> None:
    costs = []
    for waiting in (FEW, MANY):
        crowd = Crowd(waiting)
        crowd.m.reads = 0
        rules.abandon(crowd.m, crowd.change(), set(range(1, waiting + 2)))
        costs.append(crowd.m.reads / waiting)
        assert not crowd.m[HEAD]
    assert costs[1] < 1.1 * costs[0]


# With real processes.


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.stress)])
def test_thousands_of_tasks_wait_in_two_processes(folder: str, children: ExitStack, count: int) -> None:
    """Some give up; the others are let in by ticket. All of it takes time in proportion to their number."""

    async def visit(gate: AsyncRoom, entered: list[int]) -> None:
        permit = await gate.acquire()
        assert permit
        entered.append(permit.ticket)
        permit.release()

    async def crowd(room: Room, me: Child) -> None:
        async with AsyncRoom(room) as gate:
            entered: list[int] = []
            tasks = [asyncio.create_task(visit(gate, entered)) for _ in range(count // 2)]
            while len(gate.waiting) < len(tasks):
                await asyncio.sleep(0.01)
            me.say("wait")
            await asyncio.to_thread(me.hear)
            for task in tasks[::10]:
                task.cancel()
            await asyncio.wait(tasks)
            me.say(entered == sorted(entered) and len(entered))

    def work(me: Child) -> None:
        with Room(folder, "g", 1) as room:
            asyncio.run(crowd(room, me))

    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        both = [children.enter_context(Child(work)) for _ in range(2)]
        assert [each.hear(60) for each in both] == ["wait", "wait"]
        assert len(room.requests()) == count + 1
        for each in both:
            each.say("go on")
        assert permit
        permit.release()
        for each in both:  # a task may have been let in just before it was cancelled
            assert count // 2 - count // 20 <= int(each.hear(60)) <= count // 2
        assert room.file.m[SEATS] > count
        assert room.requests() == []


def test_hundreds_of_threads_wait(folder: str) -> None:
    entered: list[int] = []

    def visit() -> None:
        permit = room.acquire()
        assert permit
        entered.append(permit.ticket)
        permit.release()

    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        threads = [threading.Thread(target=visit) for _ in range(300)]
        for thread in threads:
            thread.start()
        waits(room, 300)
        assert permit
        permit.release()
        for thread in threads:
            thread.join(60)
        assert entered == sorted(entered)
        assert len(entered) == 300
