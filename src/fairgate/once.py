"""A lock that Ctrl-C cannot lose.

Until Python 3.13 `with lock` was enough: between the call of a lock's `__enter__`, which is written in C, and the body
no signal was handled. Since 3.14 one may be, and nothing would release the lock. In a loop of `with lock: pass` every
third Ctrl-C left it locked. Between the next item of a `for` and the body no signal is handled:

    for _ in once(lock):  # as `with lock`
        ...

No `return` or `break` in it: Python would end the generator by itself, and swallow a Ctrl-C that came at that moment.

So all threads that handle signals, that is, those that may be the main thread, use it for locks that others wait for.
"""

from __future__ import annotations

from functools import partial
from itertools import islice

TYPE_CHECKING = False  # see room/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Lock(Protocol):
        def acquire(self, blocking: bool = True) -> bool: ...
        def release(self) -> None: ...


def once(lock: Lock) -> Iterator[None]:
    """One turn, with the lock. If it ends by an exception, its iterator is dropped, which releases the lock."""
    for _ in islice(iter(lock.acquire, None), 1):
        try:
            yield
        finally:
            lock.release()


def once_if_free(lock: Lock) -> Iterator[None]:
    """No turn if somebody else has the lock."""
    for taken in islice(iter(partial(lock.acquire, False), None), 1):
        if taken:
            try:
                yield
            finally:
                lock.release()
