"""The words of a table, as they are in the mapped file; `words.pyx` reads and stores them in C.

Compiled stores are volatile, and every access checks the bounds: a damaged table raises IndexError. The plain modules
work on any sequence of integers, compiled ones only on this one.
"""

from __future__ import annotations

import mmap
import os

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from typing import Any


ATOMIC = False  # is `swap`?


def swap(m: Any, at: int, old: int, new: int) -> bool:
    """Store a word if it has the old value. Returns whether it had."""
    if m[at] != old:
        return False
    m[at] = new
    return True


def barrier() -> None:
    """Make what was stored before visible to other processes, before anything is read after it.

    Linux has a full memory barrier where it chooses the next process to run.
    """
    os.sched_yield()


def mapped(fd: int, size: int) -> Any:
    """The table in the first `size` bytes of a file."""
    return memoryview(mmap.mmap(fd, size)).cast("q")


def copied(data: bytes) -> Any:
    """A table of its own with these contents, as far as they are whole words."""
    return memoryview(bytearray(data[: len(data) // 8 * 8])).cast("q")
