"""A lock that Ctrl-C cannot lose.

Until Python 3.13 `with lock` was enough: between the call of a lock's `__enter__`, which is written in C, and the body
no signal was handled. Since 3.14 one may be, and nothing would release the lock. In a loop of `with lock: pass` every
third Ctrl-C left it locked. Between the next item of a `for` and the body no signal is handled:

    for _ in once(lock):  # as `with lock`
        ...

So all threads that handle signals, that is, those that may be the main thread, use it for locks that others wait for.
"""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False  # see room/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Lock(Protocol):
        def acquire(self) -> bool: ...
        def release(self) -> None: ...


def once(lock: Lock) -> Iterator[None]:
    """One turn, with the lock. However the turn ends, its iterator is dropped, which releases the lock."""
    for _ in islice(iter(lock.acquire, None), 1):
        try:
            yield
        finally:
            lock.release()
