"""Work that is shared out to other processes of this machine, and Ctrl-C while they are at it."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """How many processors this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """The results, in the order in which they are done. Stopping the iteration terminates the workers."""
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        min(workers, len(items)), mp_context=multiprocessing.get_context("fork"), initializer=leave_ctrl_c_to_the_parent
    )
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
    except BaseException:  # Ctrl-C, most often
        for worker in multiprocessing.active_children():
            if worker not in others:  # one item can last for hours
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
