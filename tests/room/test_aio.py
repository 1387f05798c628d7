"""Rooms in asyncio: many tasks, cancellation, deaths of other processes, lost permits."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from typing import Any

import pytest

from fairgate.errors import BadInput, GateClosed
from fairgate.room import links, rules
from fairgate.room.aio import AsyncRoom
from fairgate.room.room import Room
from fairgate.room.table import Change
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


# While somebody else has the lock.


@contextmanager
def locked_elsewhere(folder: str) -> Iterator[None]:
    """Another process has the lock."""

    def work(me: Child) -> None:
        room = Room(folder, "g")

        def hold(_: Change) -> None:
            me.say("locked")
            me.hear()

        room.change(hold)
        me.say("unlocked")
        me.hear()

    with Child(work) as child:
        assert child.hear() == "locked"
        yield
        child.say("unlock")
        assert child.hear() == "unlocked"


def test_a_release_does_not_wait_for_the_lock(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            with locked_elsewhere(folder):
                began = time.monotonic()
                permit.release()
                assert time.monotonic() - began < 0.02  # a blocking release would take all the time
                assert not permit.is_valid()
                again = asyncio.create_task(room.acquire())
                await asyncio.sleep(0.05)
                assert not again.done()
            found = await again
            assert found
            assert found.slots == (0,)
            assert found.fence > permit.fence

    asyncio.run(main())


def test_a_request_does_not_pass_an_earlier_release(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            with locked_elsewhere(folder):
                permit.release()
            assert await room.acquire(timeout=0) is not None  # the task that releases has not run yet

    asyncio.run(main())


async def release(room: AsyncRoom, lock: Callable[[], None]) -> None:
    permit = await room.acquire()
    assert permit
    lock()
    permit.release()


async def give_up(room: AsyncRoom, lock: Callable[[], None]) -> None:
    room.loop.call_later(0.05, lock)
    assert await room.acquire(timeout=0.1) is None


async def be_cancelled(room: AsyncRoom, lock: Callable[[], None]) -> None:
    task = asyncio.create_task(room.acquire())
    await until(lambda: waiting(room) == 1)
    lock()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def release_and_cancel_all(room: AsyncRoom, lock: Callable[[], None]) -> None:
    """The task that is to release it has not begun."""
    await release(room, lock)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def be_cancelled_twice(room: AsyncRoom, lock: Callable[[], None]) -> None:
    task = asyncio.create_task(room.acquire())
    await until(lambda: waiting(room) == 1)
    lock()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task


async def end(room: AsyncRoom, lock: Callable[[], None]) -> None:
    """Another task is waiting."""
    task = asyncio.create_task(room.acquire())
    await until(lambda: waiting(room) == 1)
    lock()
    assert not task.done()


def run_until_complete(main: Coroutine[Any, Any, None]) -> None:
    """As programs do that use one loop again and again."""
    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(main)


RUN: list[Callable[[Coroutine[Any, Any, None]], None]] = [asyncio.run, run_until_complete]


@pytest.mark.parametrize(
    ("how", "run"),
    [
        *itertools.product((release, release_and_cancel_all, end), [asyncio.run]),
        *itertools.product((give_up, be_cancelled, be_cancelled_twice), RUN),
    ],
)
def test_a_loop_that_ends_leaves_nothing_to_do(
    folder: str, how: Callable[[AsyncRoom, Callable[[], None]], Coroutine[Any, Any, None]], run: Any
) -> None:
    """Although the lock is not free just then. Nobody would do it later, and all others would wait forever."""
    with Room(folder, "g", 1) as room, Room(folder, "g", 1) as other, ExitStack() as stack:
        holder = None if how in (release, release_and_cancel_all) else other.acquire()

        def lock() -> None:
            stack.enter_context(locked_elsewhere(folder))
            unlocking = threading.Timer(0.3, stack.pop_all().close)
            stack.callback(unlocking.join)
            unlocking.start()

        async def main() -> None:
            opened.append(AsyncRoom(room))
            await how(opened[0], lock)

        opened: list[AsyncRoom] = []
        run(main())
        stack.close()
        if holder is not None:
            holder.release()
        found = other.acquire(timeout=1)
        assert found is not None
        found.release()
        opened[0].close()


def test_a_room_can_be_closed_after_its_loop(folder: str) -> None:
    """Whatever its tasks were about to do when the loop was closed."""
    with Room(folder, "g", 1) as room, closing(asyncio.new_event_loop()) as loop:

        def tell() -> None:
            loop.call_soon(print)

        async def main() -> tuple[AsyncRoom, asyncio.Task[Any]]:
            opened = AsyncRoom(room)
            permit = await opened.acquire()
            assert permit
            permit.when_lost(tell)
            task = asyncio.create_task(opened.acquire())
            await until(lambda: waiting(opened) == 1)
            stack.enter_context(locked_elsewhere(folder))
            opened.start_look(opened.waiting[next(iter(opened.waiting))])
            await asyncio.sleep(0.01)  # it waits for the lock
            return opened, task

        with ExitStack() as stack:
            opened, task = loop.run_until_complete(main())
            loop.close()
        opened.close()
        for each in (task, opened.backlog.worker, *opened.looks):
            each._log_destroy_pending = False  # type: ignore[union-attr]
        found = room.acquire(timeout=1)
        assert found is not None
        found.release()


def test_a_task_cancelled_before_it_has_asked_leaves_nothing_behind(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            with locked_elsewhere(folder):
                task = asyncio.create_task(room.acquire())
                await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await room.acquire(timeout=0) is not None
            assert len(await room.change(room.room.listed)) == 1

    asyncio.run(main())


def test_a_task_cancelled_just_after_it_has_asked_leaves_nothing_behind(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            with locked_elsewhere(folder):
                task = asyncio.create_task(room.acquire())
                await asyncio.sleep(0.01)
                (entry,) = room.backlog.entries

                def ask(change: Change) -> Any:
                    room.loop.call_soon(task.cancel)  # that comes before the task learns of its seat
                    return entry.step(change)

                room.backlog.entries[0] = entry._replace(step=ask)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await room.acquire(timeout=0) is not None

    asyncio.run(main())


def test_a_task_can_be_cancelled_after_the_room_was_closed(folder: str) -> None:
    async def main() -> None:
        with Room(folder, "g", 1) as room:
            opened = AsyncRoom(room)
            assert await opened.acquire() is not None
            task = asyncio.create_task(opened.acquire())
            await until(lambda: waiting(opened) == 1)
            room.close()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_closing_does_not_block_the_loop(folder: str) -> None:
    async def main() -> None:
        with Room(folder, "g", 1) as room:
            opened = AsyncRoom(room)
            assert await opened.acquire() is not None
            with locked_elsewhere(folder):
                closing = asyncio.create_task(opened.aclose())
                await asyncio.sleep(0.05)
                assert not closing.done()
            await closing
            assert room.acquire(timeout=0) is not None

    asyncio.run(main())


def test_a_stopped_process_with_the_lock_is_continued(folder: str, children: ExitStack) -> None:
    def stubborn(me: Child) -> None:
        def hold(_: Change) -> None:
            me.say("locked")
            os.kill(os.getpid(), signal.SIGSTOP)

        Room(folder, "g").change(hold)
        me.hear()

    async def main() -> None:
        async with gate(folder, 1) as room:
            child = children.enter_context(Child(stubborn))
            assert child.hear() == "locked"
            assert await room.acquire(timeout=5) is not None

    asyncio.run(main())


# Rings and looks that fail.


def test_a_revocation_is_noticed_at_once_although_the_bell_is_full(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit
            with suppress(BlockingIOError):
                while True:
                    os.write(room.bell.fd, bytes(4096))
            with Room(folder, "g") as other:
                other.revoke(0)
            async with asyncio.timeout(0.5):
                await permit.lost.wait()

    asyncio.run(main())


def test_a_revocation_is_noticed_although_nobody_rings(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire()
            assert permit

            def revoke(change: Change) -> None:
                rules.revoke(room.room.file.m, change, 0)
                change.woken.clear()

            await room.change(revoke)
            async with asyncio.timeout(5):
                await permit.lost.wait()

    asyncio.run(main())


def test_a_waiter_is_served_although_too_many_files_are_open(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]

    async def main() -> None:
        async with gate(folder, 1) as room:
            before = resource.getrlimit(resource.RLIMIT_NOFILE)
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
            try:
                task = asyncio.create_task(room.acquire(timeout=5))
                await until(lambda: waiting(room) == 1)
                holder.say("leave")
                assert await task is not None
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)

    asyncio.run(main())


def test_a_shorter_lease_is_told_in_time(folder: str) -> None:
    async def main() -> None:
        async with gate(folder, 1) as room:
            permit = await room.acquire(lease=60)
            assert permit
            assert permit.extend(10**8)
            async with asyncio.timeout(5):
                await permit.lost.wait()

    asyncio.run(main())


def test_a_request_whose_time_is_over_when_the_gate_is_closed_gets_no_permit(folder: str) -> None:
    """Both happen in the same turn of the loop: the close first, and the task runs only after the timeout as well."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with gate(folder, 1) as room:
            assert await room.acquire() is not None
            asked = asyncio.create_task(room.acquire(timeout=0.1))
            await until(lambda: waiting(room) == 1)
            loop.call_later(0.01, room.close, "it was closed")
            time.sleep(0.15)
            with pytest.raises(GateClosed, match="it was closed"):
                await asked

    asyncio.run(main())


def test_a_try_while_the_gate_is_closed_ends_with_that(folder: str) -> None:
    """The close comes after the look has let it in, and before the task goes on."""

    async def main() -> None:
        async with gate(folder, 1) as room:
            holder = await room.acquire()
            assert holder is not None
            change = room.change

            async def closed_meanwhile(step: Callable[[Change], Any]) -> Any:
                if room.waiting and not room.closed:
                    room.room.change(lambda now: rules.leave(room.room.file.m, now, holder.seat, holder.ticket))
                    found = await change(step)
                    room.close("it was closed")
                    return found
                return await change(step)

            room.change = closed_meanwhile
            with pytest.raises(GateClosed, match="it was closed"):
                await room.acquire(timeout=0)

    asyncio.run(main())


def test_permits_are_lost_by_the_close_from_its_first_moment(folder: str) -> None:
    async def main() -> None:
        with Room(folder, "g", 2) as room:
            gate = AsyncRoom(room)
            permit, of_thread = await gate.acquire(), room.acquire()
            assert permit is not None
            assert of_thread is not None
            assert gate.begin_close("it was closed")
            await gate.change(gate.abandon)
            assert permit.why_lost() == "it was closed"
            gate.end_close()
            room.desk.closed = "it was closed too"
            room.change(lambda change: rules.abandon(room.file.m, change, {of_thread.visit.bell.owner}))
            assert of_thread.why_lost() == "it was closed too"

    asyncio.run(main())
