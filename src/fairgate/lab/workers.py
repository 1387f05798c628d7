"""Where the runs of a sweep happen: in this process, in worker processes, or on a cluster."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from typing import TypeVar

from fairgate.processes import in_processes

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], items: Sequence[T], workers: int, executor: Executor | None) -> Iterator[R]:
    """Yields the results of `work(item)` in order of completion, from the executor if there is one."""
    if executor is not None:
        futures = [executor.submit(work, item) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:  # after Ctrl-C nothing new begins
            for future in futures:
                future.cancel()
    elif workers == 1 or len(items) < 2:
        yield from map(work, items)
    else:
        yield from in_processes(work, items, workers)
