"""Background tasks on the engine's loop, futures that users' threads wait for, and what happens if anything raises.

Whatever raises in the loop where nothing should is a *mistake* of fairgate. It is counted, and logged with its
traceback. The loop goes on, and what the callback has left undone is done later. If the variable FAIRGATE_MISTAKES
names a file, the traceback is appended to it as well: `make test` fails if there is one.
"""

import asyncio
import logging
import os
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from fairgate.errors import BadInput
from fairgate.net.rationed_log import RationedLog

RETRY_SECONDS = 0.5
MISTAKE = "internal error in fairgate: please report it"
FILE = "FAIRGATE_MISTAKES"

Work = Coroutine[Any, Any, None]

log = logging.getLogger("fairgate.live")


class BackgroundTasks:
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.awaited: set[Future[Any]] = set()  # by users' threads
        self.ending = False  # no new tasks are started
        self.mistakes = 0
        self.mistakes_log = RationedLog(log)

    def mistake(self, wrong: BaseException) -> None:
        """Something has raised in the loop, in whatever thread. The caller goes on."""
        self.mistakes += 1
        text = "".join(traceback.format_exception(wrong))
        self.mistakes_log.warning("%s\n%s", MISTAKE, text.rstrip())
        if path := os.environ.get(FILE):
            with open(path, "a") as file:
                file.write(text)

    def raised(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The loop's exception handler. Sockets that fail are no mistakes."""
        wrong = context.get("exception")
        if wrong is None or (isinstance(wrong, OSError) and "handle" not in context):
            loop.default_exception_handler(context)
        else:
            self.mistake(wrong)

    def from_outside(self, work: Work) -> None:
        self.loop.call_soon_threadsafe(self.spawn, work)

    def spawn(self, work: Work) -> None:
        if self.ending:
            work.close()
            return
        task = self.loop.create_task(self.guarded(work))
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

    async def guarded(self, work: Work) -> None:
        try:
            await work
        except BadInput as wrong:
            log.error("%s", wrong)
        except Exception as wrong:
            self.mistake(wrong)

    def unforeseen(self, wrong: Exception) -> BadInput:
        self.mistake(wrong)
        return BadInput(f"the list of peers could not be changed: {wrong!r:.200}")


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
