"""A module as users write them: its gates are created when it is imported, and its functions run in other processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import fairgate
from fairgate import sync

report = sync.lock("report")
in_tasks = fairgate.lock("report")


def be_alone(folder: Path) -> int:
    """Raises FileExistsError if another process is in here."""
    inside = folder / "inside"
    inside.mkdir()
    os.sched_yield()
    inside.rmdir()
    return os.getpid()


@report
def visit(folder: Path) -> int:
    return be_alone(folder)


@in_tasks
async def visit_in_task(folder: Path) -> int:
    return be_alone(folder)


def visit_in_loop(folder: Path) -> int:
    return asyncio.run(visit_in_task(folder))


def visit_by(gate: sync.Semaphore, folder: Path) -> int:
    with gate:
        return be_alone(folder)


def try_to_enter() -> bool:
    return report.acquire(timeout=0) is not None


def use_pool(start: str, name: str, folder: Path) -> None:
    """Before it makes the pool, this process uses the gate itself; then it takes part."""
    calls: dict[str, Callable[..., int]] = {"threads": visit, "asyncio": visit_in_loop, "sent": visit_by}
    arguments: tuple[object, ...] = (sync.lock("report"), folder) if name == "sent" else (folder,)
    call = calls[name]
    with report:
        pass
    with ProcessPoolExecutor(3, multiprocessing.get_context(start)) as pool:
        found = [pool.submit(call, *arguments) for _ in range(60)]
        call(*arguments)
        print(len([one for one in found if one.result(60) != os.getpid()]))
