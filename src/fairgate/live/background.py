"""What the engine's loop does beside reading frames: tasks of its own, and what users await of it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from fairgate.errors import BadInput

RETRY_SECONDS = 0.5
MISTAKE = "a mistake in fairgate itself: please report it"

Work = Coroutine[Any, Any, None]

log = logging.getLogger("fairgate.live")


class BackgroundTasks:
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.awaited: set[Future[Any]] = set()  # by users
        self.ending = False  # nothing is begun any more

    def from_outside(self, work: Work) -> None:
        self.loop.call_soon_threadsafe(self.spawn, work)

    def spawn(self, work: Work) -> None:
        if self.ending:
            work.close()
            return
        task = self.loop.create_task(guarded(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been cancelled before it began

    def insist(self, work: Callable[[], Work]) -> None:
        """What must be done some time, or a gate stands still: a death that nobody tells, a view that is not read."""
        self.spawn(insisting(work))

    def end_tasks(self) -> None:
        self.ending = True
        for task in list(self.tasks):
            task.cancel()

    def end_waiting(self) -> None:
        """The loop is over, and whoever waits for it would wait for ever."""
        for future in list(self.awaited):
            future.cancel()


async def insisting(work: Callable[[], Work]) -> None:
    why = ""
    while True:
        try:
            return await work()
        except BadInput as wrong:  # a full disk, a stopped process that has the file's lock: it may pass
            if str(wrong) != why:
                log.error("%s; trying again", wrong)
            why = str(wrong)
        await asyncio.sleep(RETRY_SECONDS)


async def guarded(work: Work) -> None:
    try:
        await work
    except BadInput as wrong:
        log.error("%s", wrong)
    except Exception:
        log.exception(MISTAKE)


def unforeseen(wrong: Exception) -> BadInput:
    log.exception(MISTAKE)
    return BadInput(f"the roster could not be changed: {wrong!r:.200}")
