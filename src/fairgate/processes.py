"""Distributes work to a pool of worker processes that end cleanly on Ctrl-C."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """The number of processors that this process may use; all of them where the system cannot restrict it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """Yields the results of `work(item)` in order of completion. Stopping the iteration terminates the workers."""
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        min(workers, len(items)), mp_context=multiprocessing.get_context("fork"), initializer=leave_ctrl_c_to_the_parent
    )
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
    except BaseException:  # usually Ctrl-C
        for worker in multiprocessing.active_children():
            if worker not in others:  # do not wait for it: one item can take hours
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_own_processes(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[tuple[T, R | None]]:
    """Yields (item, work(item)) in order of completion. Each item has a process of its own.

    The result is None if that process died. Stopping the iteration terminates the processes.
    """
    fork = multiprocessing.get_context("fork")
    left = list(reversed(items))
    busy: dict[Connection, tuple[T, ForkProcess]] = {}
    try:
        while left or busy:
            while left and len(busy) < workers:
                here, there = fork.Pipe(duplex=False)
                process = fork.Process(target=report_result, args=(there, work, left[-1]))
                process.start()
                there.close()  # so that a process that dies closes the pipe
                busy[here] = (left.pop(), process)
            for done in wait(list(busy)):
                assert isinstance(done, Connection)
                item, process = busy[done]
                yield item, received(done)
                del busy[done]
                process.join()
    finally:
        for _, process in busy.values():
            process.terminate()
            process.join()


def report_result(there: Connection, work: Callable[[T], R], item: T) -> None:
    leave_ctrl_c_to_the_parent()
    there.send(work(item))


def received(here: Connection) -> Any:
    with here:
        try:
            return here.recv()
        except EOFError:
            return None


def leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
