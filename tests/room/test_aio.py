"""Rooms in asyncio: many tasks, cancellation, deaths of other processes, lost permits."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest

from fairgate.errors import BadInput, GateClosed
from fairgate.room import links
from fairgate.room.aio import AsyncRoom
from fairgate.room.room import Room
from tests.room.children import Child, bells, visitor


@asynccontextmanager
async def gate(folder: str, k: int) -> AsyncIterator[AsyncRoom]:
    with Room(folder, "g", k) as room:
        async with AsyncRoom(room) as opened:
            yield opened


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


def waiting(room: AsyncRoom) -> int:
    return len(list(links.waiters(room.room.file.m)))


def test_tasks_take_turns(folder: str) -> None:
    async def main() -> None:
        order: list[int] = []
        inside = most = 0

        async def visit(number: int) -> None:
            nonlocal inside, most
            permit = await room.acquire()
            assert permit
            order.append(number)
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1
            permit.release()

        async with gate(folder, 2) as room:
            async with asyncio.TaskGroup() as tasks:
                for number in range(200):
                    tasks.create_task(visit(number))
            assert order == list(range(200))
            assert most == 2
        assert bells(folder) == []

    asyncio.run(main())


def test_a_timeout_gives_the_turn_to_the_next(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            assert await room.acquire(timeout=0) is None
            late = asyncio.create_task(room.acquire(timeout=0.05))
            patient = asyncio.create_task(room.acquire())
            assert await late is None
            permit.release()
            assert await patient is not None

    asyncio.run(main())


def test_a_cancelled_task_leaves_nothing_behind(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            task = asyncio.create_task(room.acquire())
            await until(lambda: waiting(room) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert waiting(room) == 0
            permit.release()
            assert await room.acquire(timeout=0) is not None

    asyncio.run(main())


def test_a_task_cancelled_after_its_grant_frees_the_slot(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            task = asyncio.create_task(room.acquire())
            await until(lambda: waiting(room) == 1)
            permit.release()  # the grant is in the bell, and the task has not run yet
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await room.acquire(timeout=0) is not None

    asyncio.run(main())


def test_a_killed_holder_frees_its_slot(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]

    async def main() -> None:
        async with gate(folder, 1) as room:
            task = asyncio.create_task(room.acquire(timeout=5))
            await until(lambda: waiting(room) == 1)
            holder.end()
            assert await task is not None

    asyncio.run(main())


def test_a_slot_of_a_dead_process_is_free_at_the_first_try(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    holder.end()

    async def main() -> None:
        async with gate(folder, 1) as room:
            assert await room.acquire(timeout=0) is not None

    asyncio.run(main())


def test_another_process_waits_for_a_task(folder: str, children: ExitStack) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            child = children.enter_context(Child(visitor(folder, 1)))
            assert child.hear() == "asks"
            await until(lambda: waiting(room) == 1)
            permit.release()
            assert await asyncio.to_thread(child.hear) == "0"

    asyncio.run(main())


def test_a_lost_lease_is_told(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire(lease=0.1)
            assert permit
            assert permit.extend(2 * 10**8)
            async with asyncio.timeout(5):
                await permit.lost.wait()
            assert not permit.is_valid()
            assert await room.acquire(timeout=0) is not None

    asyncio.run(main())


def test_a_revoked_permit_is_told_at_once(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            with Room(folder, "g") as other:
                await asyncio.to_thread(other.revoke, 0)
            async with asyncio.timeout(5):
                await permit.lost.wait()

    asyncio.run(main())


def test_the_loop_runs_while_another_thread_has_the_lock(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            taken, enough = threading.Event(), threading.Event()

            def hold(_: Any) -> None:
                taken.set()
                enough.wait(20)

            thread = threading.Thread(target=room.room.change, args=(hold,))
            thread.start()
            await asyncio.to_thread(taken.wait, 20)
            task = asyncio.create_task(room.acquire())
            await asyncio.sleep(0.05)  # other tasks go on
            assert not task.done()
            enough.set()
            assert await task is not None
            thread.join()

    asyncio.run(main())


def test_bad_input(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 2) as room:
            with pytest.raises(BadInput, match="cannot acquire 3"):
                await room.acquire(permits=3)

    asyncio.run(main())


def test_a_file_that_is_removed_while_a_task_waits_is_noticed(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as opened:
            permit = await opened.acquire()
            task = asyncio.create_task(opened.acquire())
            await until(lambda: waiting(opened) == 1)
            os.unlink(opened.room.file.path)
            with pytest.raises(GateClosed, match="was removed"):
                await task
            assert permit
            permit.release()

    asyncio.run(main())


def test_closing_ends_everything(folder: str) -> None:
    async def main() -> None:
        with Room(folder, "g", 1) as room:
            opened = AsyncRoom(room)
            permit = await opened.acquire()
            task = asyncio.create_task(opened.acquire())
            await until(lambda: waiting(opened) == 1)
            opened.close()
            with pytest.raises(GateClosed, match="gate g was closed"):
                await task
            assert permit
            assert permit.lost.is_set()
            assert room.acquire(timeout=0) is not None
        assert [name for name in os.listdir(folder) if name.endswith(".bell")] == []

    asyncio.run(main())
