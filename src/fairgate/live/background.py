"""Background tasks on the engine's loop, and futures that users' threads wait for."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from fairgate.errors import BadInput

RETRY_SECONDS = 0.5
MISTAKE = "internal error in fairgate: please report it"

Work = Coroutine[Any, Any, None]

log = logging.getLogger("fairgate.live")


class BackgroundTasks:
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.awaited: set[Future[Any]] = set()  # by users' threads
        self.ending = False  # no new tasks are started

    def from_outside(self, work: Work) -> None:
        self.loop.call_soon_threadsafe(self.spawn, work)

    def spawn(self, work: Work) -> None:
        if self.ending:
            work.close()
            return
        task = self.loop.create_task(guarded(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: work.close())  # in case it was cancelled before it started

    def insist(self, work: Callable[[], Work]) -> None:
        """Retries until it succeeds. For work without which a gate would block: reporting a death, reading a view."""
        self.spawn(insisting(work))

    def end_tasks(self) -> None:
        self.ending = True
        for task in list(self.tasks):
            task.cancel()

    def end_waiting(self) -> None:
        """The loop has ended: cancel the futures, or their users would wait forever."""
        for future in list(self.awaited):
            future.cancel()


async def insisting(work: Callable[[], Work]) -> None:
    why = ""
    while True:
        try:
            return await work()
        except BadInput as wrong:  # may be temporary: a full disk, a stopped process that holds the file lock
            if str(wrong) != why:
                log.error("%s; retrying", wrong)
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
    return BadInput(f"the list of peers could not be changed: {wrong!r:.200}")
