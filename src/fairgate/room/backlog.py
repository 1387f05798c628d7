"""Changes that an event loop makes without being blocked: at once if the lock is free, else as soon as it is."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from fairgate.errors import FairgateError, GateClosed, GateStuck, ReentrantCall
from fairgate.room.calls import SECOND, clock, pause_after
from fairgate.room.changes import Changes
from fairgate.room.file import PATIENCE, LockWatch
from fairgate.room.table import Change

T = TypeVar("T")
Step = Callable[[Change], T]

GLIMPSE = 50_000  # ns: a loop may be held up this long. A change takes less
MANY = 32  # changes without a pause


class Entry(NamedTuple):
    step: Step[Any]
    promise: "asyncio.Future[Any] | None"


class Backlog:
    """All changes of a loop go through here, so their order is kept: a release comes before a later request."""

    def __init__(self, desk: Changes) -> None:
        self.desk = desk
        self.loop = asyncio.get_running_loop()
        self.entries: deque[Entry] = deque()
        self.worker: asyncio.Task[None] | None = None

    async def change(self, step: Step[T]) -> T:
        """As `Changes.change`. If the task is cancelled, the step may have been done or not."""
        if not self.entries:
            with suppress(BlockingIOError):
                return self.desk.try_change(step, GLIMPSE)
        promise: asyncio.Future[T] = self.loop.create_future()
        self.add(step, promise)
        return await promise

    def post(self, step: Step[object]) -> None:
        """Do a step that ends something. The caller does not wait for it."""
        if not self.entries:
            try:
                self.desk.try_change(step, GLIMPSE)
                return
            except BlockingIOError:
                pass
            except GateClosed:  # which has ended everything
                return
            except ReentrantCall:
                self.desk.postponed.append(lambda: self.desk.change(step))
                return
        if self.loop.is_closed():
            self.desk.finish(step)
        else:
            self.add(step, None)

    async def settled(self) -> None:
        """Wait until what was posted is done, also if the task is cancelled: the loop may end afterwards.

        Does not wait for a lock that is stuck.
        """
        if not self.entries or not self.loop.is_running():
            return
        last: asyncio.Future[None] = self.loop.create_future()
        self.add(lambda change: None, last)
        cancelled = None
        while not last.done():
            try:
                await asyncio.wait([last])
            except asyncio.CancelledError as late:
                cancelled = late
        last.exception()  # else asyncio would complain
        if cancelled is not None:
            raise cancelled

    def add(self, step: Step[Any], promise: "asyncio.Future[Any] | None") -> None:
        self.entries.append(Entry(step, promise))
        if self.worker is None or self.worker.done():
            self.worker = self.loop.create_task(self.work())
            self.worker.add_done_callback(self.worked)

    def worked(self, worker: "asyncio.Task[None]") -> None:
        """There is a rest if it was cancelled, as at the end of asyncio.run: nobody would do it later."""
        if self.worker is worker:
            self.finish()

    async def work(self) -> None:
        watch = LockWatch(self.desk.file)
        since = watch.since
        look_at = since + PATIENCE
        done = 0
        while self.entries:
            if self.do_first():
                watch.restart()
                since = watch.since
                look_at = since + PATIENCE
                done += 1
                if done % MANY == 0:
                    await asyncio.sleep(0)
                continue
            await asyncio.sleep(pause_after(clock() - since) / SECOND)
            if clock() > look_at:
                wrong = watch.look()
                if wrong is not None and not self.do_first():
                    self.give_up(wrong)
                look_at = clock() + PATIENCE

    def do_first(self, wait: bool = False) -> bool:
        """Do the first step. False if the lock is not free; or wait for it, and raise GateStuck if it is stuck."""
        step, promise = self.entries[0]
        if promise is None or not promise.done():  # else its task was cancelled
            try:
                result = self.desk.change(step) if wait else self.desk.try_change(step, GLIMPSE)
                if promise is not None:
                    promise.set_result(result)
            except BlockingIOError:
                return False
            except GateStuck:
                raise
            except FairgateError as wrong:
                if promise is not None:
                    promise.set_exception(wrong)
        self.entries.popleft()
        return True

    def finish(self) -> None:
        """Do all steps, although the loop is blocked meanwhile."""
        try:
            while self.entries:
                self.do_first(wait=True)
        except GateStuck as wrong:
            self.give_up(wrong)

    def give_up(self, why: GateStuck) -> None:
        """End the steps that somebody waits for. The others end something, and have to be done some day."""
        for _, promise in self.entries:
            if promise is not None and not promise.done():
                promise.set_exception(why)
        self.entries = deque([entry for entry in self.entries if entry.promise is None])

    def close(self, why: FairgateError) -> None:
        """Forget the steps: their requests are ended in another way."""
        for _, promise in self.entries:
            if promise is not None and not promise.done() and not self.loop.is_closed():
                promise.set_exception(why)
        self.entries.clear()
