"""A room that is closed, and a permit that is released twice, while another thread or task is being let in.

Each test stops one thread between two instructions, does the worst that others can do meanwhile, and lets it go on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from fairgate.errors import GateClosed, GateStuck
from fairgate.room import desk as desks
from fairgate.room import links, table
from fairgate.room import room as rooms
from fairgate.room.aio import AsyncRoom
from fairgate.room.bell import Bell
from fairgate.room.layout import HEARD
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from fairgate.room.words import ATOMIC
from tests.room.children import Child, waits
from tests.room.closing import close_at_random
from tests.room.versions import run_module

plain = pytest.mark.skipif(ATOMIC, reason="compiled code has no moment here in which another thread could run")


def acquired(room: Room) -> Permit:
    permit = room.acquire(timeout=0)
    assert permit is not None
    return permit


def refused(room: Room) -> bool:
    """Is the request of another thread refused because the room was closed?"""
    ended: list[object] = []

    def ask() -> None:
        try:
            ended.append(room.acquire())
        except GateClosed as closed:
            ended.append(closed)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(20)
    return [type(end) for end in ended] == [GateClosed]


def test_a_request_that_is_closed_when_it_was_granted_gets_no_permit(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Room(folder, "g", 1) as other:
        room = Room(folder, "g", 1)
        taken: list[Permit] = []

        def late(visit: desks.Visit) -> Permit:
            """Its seat is that of another request by now."""
            if visit.desk is room.desk:
                room.close()
                taken.append(acquired(other))
            return Permit(visit)

        monkeypatch.setattr(rooms, "Permit", late)
        with pytest.raises(GateClosed):
            room.acquire()
        monkeypatch.undo()
        assert taken[0].is_valid()
        with Room(folder, "g", 1) as third:
            assert third.acquire(timeout=0) is None


def test_a_permit_is_that_of_its_request_though_another_one_has_its_seat(folder: str) -> None:
    with Room(folder, "g", 1) as other:
        room = Room(folder, "g", 1)
        visit = room.some_visit()
        assert room.enter(visit, 0, 1, None, "")
        room.close()
        taken = acquired(other)
        permit = Permit(visit)
        assert (permit.seat, permit.fence, permit.ticket) == (taken.seat, taken.fence - 1, taken.ticket - 1)
        assert not permit.is_valid()
        assert permit.deadline() == permit.promised() == 0
        permit.release()
        assert taken.is_valid()


def waiting(room: Room) -> int:
    """The seat of a request that waits, of which its thread never hears again."""
    visit = room.some_visit()
    visit.want(1, None, "")
    assert not room.change(visit)
    return visit.seat


@plain
def test_closing_between_the_ring_and_the_permit_leaves_the_next_holder_alone(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Room(folder, "g", 1) as other, Room(folder, "g", 1) as last:
        held = acquired(other)
        room = Room(folder, "g", 1)
        wait = Bell.wait
        taken: list[int] = []

        def rung(bell: Bell, nanoseconds: int) -> tuple[list[int], set[int]]:
            tickets, dead = wait(bell, nanoseconds)
            if tickets and not taken:
                taken.extend(links.holders(last.file.m))
                waiting(other)
                room.close()  # now that one is inside
                assert [waiting(last)] == taken  # in the seat of the request that was rung
                room.desk.closed = "a room that was closed"
            return tickets, dead

        monkeypatch.setattr(Bell, "wait", rung)

        def release() -> None:
            waits(last, 1)
            held.release()

        releasing = threading.Thread(target=release)
        releasing.start()
        assert refused(room)
        releasing.join(20)
        assert last.file.m[taken[0] + HEARD] == 0
        assert len([one for one in last.requests() if one.inside]) == 1


@plain
def test_a_lease_is_not_extended_in_a_seat_that_another_request_has(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Room(folder, "g", 1) as other:
        room = Room(folder, "g", 1)
        permit = acquired(room)
        extend = table.extend
        taken: list[Permit | None] = []

        def late(m: links.Table, seat: int, deadline: int) -> None:
            closing = threading.Thread(target=room.close)
            closing.start()
            if not permit.desk.mutex._is_owned():  # type: ignore[attr-defined]  # else closing has to wait for us
                closing.join(20)
            taken.append(other.acquire(timeout=0))
            extend(m, seat, deadline)
            threads.append(closing)

        threads: list[threading.Thread] = []
        monkeypatch.setattr(table, "extend", late)
        permit.extend(10**9)
        threads[0].join(20)
        now = taken[0] or acquired(other)
        assert now.deadline() == 0
        assert room.is_closed()


class Slow(Permit):
    """A permit that two threads release: the second one pauses after it has found out that it was not released."""

    met: threading.Barrier
    go_on: threading.Event

    def give_back(self) -> BaseException | None:
        self.met.wait(20)
        if threading.current_thread().name == "second":
            assert self.go_on.wait(20)
        return Permit.give_back(self)


def test_two_threads_that_release_a_permit_release_it_once(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Room(folder, "g", 1) as room, Room(folder, "g", 1) as other:
        acquired(room).release()
        monkeypatch.setattr(rooms, "Permit", Slow)
        permit = acquired(room)  # the second one in a row: compiled, its slot is kept
        monkeypatch.undo()
        permit.met, permit.go_on = threading.Barrier(2), threading.Event()  # type: ignore[attr-defined]
        threads = [threading.Thread(target=permit.release, name=name) for name in ("first", "second")]
        for thread in threads:
            thread.start()
        threads[0].join(20)
        again = acquired(room)
        permit.go_on.set()  # type: ignore[attr-defined]
        threads[1].join(20)
        assert again.is_valid()
        assert other.acquire(timeout=0) is None
        assert len(room.spare) == 0
        again.release()
        assert len(room.spare) == 1


def test_a_release_that_finds_the_room_closed_is_done(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = acquired(room)
        assert permit.give_back() is None
    room = Room(folder, "g", 1)
    permit = acquired(room)
    room.close()
    assert permit.give_back() is None


def test_a_permit_is_not_valid_in_a_forked_child(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = acquired(room)

        def look(me: Child) -> None:
            me.say(permit.is_valid())
            me.hear()

        child = children.enter_context(Child(look))
        assert child.hear() == "False"
        assert permit.is_valid()


# In asyncio.


def closes_before_the_task_goes_on(folder: str, close: Callable[[Room, AsyncRoom], None]) -> None:
    async def main() -> None:
        with Room(folder, "g", 1) as other:
            held = acquired(other)
            room = Room(folder, "g", 1)
            gate = AsyncRoom(room)
            task = asyncio.create_task(gate.acquire())
            while not gate.waiting:
                await asyncio.sleep(0)
            held.release()
            gate.rung()  # the task is let in, and goes on when the loop comes to it
            close(room, gate)
            taken = acquired(other)
            with pytest.raises(GateClosed):
                await task
            assert taken.is_valid()
            assert not gate.held
            gate.close()
            room.close()

    asyncio.run(main())


def test_a_gate_that_is_closed_before_a_task_goes_on_gives_it_no_permit(folder: str) -> None:
    closes_before_the_task_goes_on(folder, lambda room, gate: gate.close())


def test_a_room_that_another_thread_closes_before_a_task_goes_on_gives_it_no_permit(folder: str) -> None:
    closes_before_the_task_goes_on(folder, lambda room, gate: room.close())


def test_a_task_that_is_rung_when_its_room_was_closed_gets_no_permit(folder: str) -> None:
    async def main() -> None:
        with Room(folder, "g", 1) as other:
            held = acquired(other)
            room = Room(folder, "g", 1)
            gate = AsyncRoom(room)
            task = asyncio.create_task(gate.acquire())
            while not gate.waiting:
                await asyncio.sleep(0)
            held.release()
            waiter = next(iter(gate.waiting.values()))
            room.close()
            taken = acquired(other)
            other.file.m[taken.seat + HEARD] = 0
            gate.take_rung(waiter)
            assert other.file.m[taken.seat + HEARD] == 0
            with pytest.raises(GateClosed):
                await task
            assert taken.is_valid()
            gate.close()

    asyncio.run(main())


def test_a_request_that_fails_when_its_time_is_over_is_not_inside(folder: str) -> None:
    """Both come in one turn of the loop, before the task goes on."""

    async def main() -> None:
        with Room(folder, "g", 1) as other, Room(folder, "g", 1) as room:
            held = acquired(other)
            async with AsyncRoom(room) as gate:
                loop = asyncio.get_running_loop()
                loop.call_at(
                    loop.time() + 0.19, lambda: gate.fail(next(iter(gate.waiting.values())), GateStuck("stuck"))
                )
                task = asyncio.create_task(gate.acquire(timeout=0.2))
                while not gate.waiting:
                    await asyncio.sleep(0)
                time.sleep(0.25)
                with pytest.raises(GateStuck):
                    await task
                held.release()
                assert acquired(other).is_valid()  # nothing is left behind

    asyncio.run(main())


# At random (closing.py).


@pytest.mark.parametrize("tasks", [False, True], ids=["threads", "tasks"])
def test_rooms_are_closed_at_random(tasks: bool) -> None:
    outcome = close_at_random(3.0, 3, 3, 1, tasks)
    print(outcome)
    assert outcome.complaints == []
    assert outcome.entries > 50
    assert outcome.closed > 50


@pytest.mark.stress
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
@pytest.mark.parametrize("tasks", [False, True], ids=["threads", "tasks"])
@pytest.mark.parametrize("k", [1, 2])
def test_rooms_are_closed_at_random_for_a_minute(plain: bool, tasks: bool, k: int) -> None:
    print(run_module("closing", plain, "--seconds", "60", "-k", str(k), *["--tasks"] * tasks))
