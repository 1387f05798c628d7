"""fasteners' tests of its locks: of processes, and of readers and writers.

A gate beside the file is the lock of processes. A reader takes one of many slots, a writer all of them.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

import fasteners
import fasteners.lock
import fasteners.process_lock

from fairgate.sync import Permit, Semaphore
from tests.peers.adapters.gates import READERS, file_gate, gate, new_name


def gate_beside(path: Any, k: int = 1) -> Semaphore:
    """The gate of a file, which is created if necessary."""
    found = file_gate(f"{os.fsdecode(path)}.gate", k)
    Path(os.fsdecode(path)).touch()
    return found


class InterProcessLock(fasteners.process_lock.InterProcessLock):  # type: ignore[misc]
    acquired: bool
    permit: Permit | None = None

    def take(self, timeout: float | None) -> bool:
        self.permit = gate_beside(self.path).acquire(timeout) or self.permit
        return self.permit is not None

    def acquire(self, blocking: bool = True, timeout: float | None = None, **pauses: Any) -> bool:
        self.acquired = self.acquired or self.take(timeout if blocking else 0)
        return self.acquired

    def trylock(self) -> None:
        if not self.take(0):
            raise OSError(errno.EAGAIN, "taken")

    def unlock(self) -> None:
        assert self.permit is not None
        self.permit.release()


class Mine(threading.local):
    """What this thread holds of one lock."""

    permit: Permit | None = None


class ReaderWriterLock:
    READER, WRITER = "r", "w"

    def __init__(self, path: str = "") -> None:
        self.gate = gate_beside(path, READERS) if path else gate(new_name(), READERS)
        self.mine = Mine()

    def take(self, n: int, blocking: bool = True, timeout: float | None = None, **pauses: Any) -> bool:
        permit = self.gate.acquire(timeout if blocking else 0, n=n)
        self.mine.permit = permit or self.mine.permit
        return permit is not None

    acquire_read_lock = partialmethod(take, 1)
    acquire_write_lock = partialmethod(take, READERS)

    def give_back(self) -> None:
        permit, self.mine.permit = self.mine.permit, None
        if permit is None:
            raise RuntimeError("not held")
        permit.release()

    release_read_lock = release_write_lock = give_back

    def is_reader(self) -> bool:
        return self.mine.permit is not None and len(self.mine.permit.slots) == 1

    def is_writer(self) -> bool:
        return self.mine.permit is not None and len(self.mine.permit.slots) == READERS

    @property
    def owner(self) -> str | None:
        slots = [len(one.slots) for one in self.gate.holders()]
        return None if not slots else self.WRITER if slots[0] == READERS else self.READER

    @contextmanager
    def read_lock(self) -> Iterator[None]:
        self.acquire_read_lock()
        try:
            yield
        finally:
            self.give_back()

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        self.acquire_write_lock()
        try:
            yield
        finally:
            self.give_back()


fasteners.InterProcessLock = fasteners.process_lock.InterProcessLock = InterProcessLock
fasteners.process_lock.InterProcessReaderWriterLock = ReaderWriterLock
fasteners.ReaderWriterLock = fasteners.lock.ReaderWriterLock = ReaderWriterLock
