"""The file of a room: created, checked, mapped, grown and locked.

The lock is an flock that is tried again and again, not waited for in the kernel. If it cannot be had for a while and
the process that has it is stopped, that process is continued, so that it can finish its change. It then stops itself
again (STOP in the header).
"""

from __future__ import annotations

import mmap
import os
import signal
import stat
import time
from contextlib import suppress

from fairgate.core.fences import FENCE_COUNT_BITS
from fairgate.errors import BadInput
from fairgate.room import calls, links, system, table
from fairgate.room.layout import (
    BOOT,
    CAPACITY,
    DIRTY,
    MAGIC,
    MOST_SEATS,
    MOST_SLOTS,
    REBUILT,
    RESCUED,
    SEATS,
    STOP,
    K,
)
from fairgate.room.links import Table
from fairgate.room.table import Change
from fairgate.room.words import over

PATIENCE = 30_000_000  # ns for the lock, before its owner is looked up
FIRST_SEATS = 64
LARGEST = 8 * links.size(MOST_SLOTS, MOST_SEATS)
MILLISECOND = 1_000_000  # ns
EPOCH = 1_704_067_200  # 2024 began


class RoomFile:
    """One gate's file. `m` is its table, which may be used only with the lock."""

    m: Table

    def __init__(self, path: str, k: int, create: bool = True) -> None:
        """Open the file, or create it with this k (1 if it is 0). Raises BadInput if it cannot be used."""
        if not 0 <= k <= MOST_SLOTS:
            raise BadInput(f"k must be 1..{MOST_SLOTS}, not {k}")
        self.path = path
        self.pid = os.getpid()
        self.fd = -1
        self.seats = 0
        self.capacity = 0
        self.mapped = False
        self.locked = False  # perhaps, if it is True
        self.linked = 0  # when the file was there last
        while True:
            self.fd = open_file(path, create)
            self.take_lock()
            try:
                if os.fstat(self.fd).st_nlink:  # else it was swept between open and lock
                    self.use(k)
                    self.unlock()
                    return
            except BaseException:
                os.close(self.fd)  # which also unlocks it
                raise
            os.close(self.fd)

    def use(self, k: int) -> None:
        """With the lock: create the table, or check it. A table of another boot has no living process."""
        found = os.fstat(self.fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise BadInput(f"{self.path} is not a gate file: remove it, or use another name")
        size = 8 * links.size(MOST_SLOTS, FIRST_SEATS)
        if found.st_size == 0:
            self.allocate(size)
        elif found.st_size < size:
            raise BadInput(f"{self.path} is not a gate file: it is cut off; remove it if nobody uses the gate")
        self.map()
        boot = system.boot_id()
        if self.m[MAGIC] == 0:  # new, or its creator died
            table.create(self.m, MOST_SLOTS, FIRST_SEATS, k or 1, first_fence(), boot)
        self.check()
        if self.m[BOOT] != boot:
            table.create(self.m, self.capacity, self.seats, k or self.m[K], first_fence(), boot)

    def allocate(self, size: int) -> None:
        """Reserve the space on the disk: a store into a full disk would end the process by SIGBUS."""
        try:
            os.posix_fallocate(self.fd, 0, size)
        except OSError as wrong:
            raise BadInput(f"cannot create {self.path}: {wrong.strerror}") from wrong

    def map(self) -> None:
        """Map the file through a descriptor of its own: mmap keeps a copy of it, which a forked child inherits.

        A copy of `fd` would keep the lock taken when this process dies.
        """
        other = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)
        try:
            self.m = over(mmap.mmap(other, os.fstat(other).st_size))
        finally:
            os.close(other)
        self.mapped = True

    def grow(self) -> None:
        """With the lock: make room for twice as many seats."""
        seats = 2 * self.m[SEATS]
        if seats > MOST_SEATS:
            raise BadInput(f"{self.path} is full: {self.m[SEATS]} requests")
        self.allocate(8 * links.size(self.m[CAPACITY], seats))
        self.map()
        table.grow(self.m, seats)
        self.seats = seats

    # The lock.

    def prepare(self, change: Change) -> None:
        """With the lock: map what has grown, and repair the table if a process died while it changed it."""
        if self.m[STOP] not in (0, self.pid):  # it has unlocked, or died
            self.m[STOP] = 0
        if self.m[SEATS] != self.seats or self.m[CAPACITY] != self.capacity:
            self.map()
            self.check()
        if self.m[DIRTY]:
            self.rebuild(change)

    def check(self) -> None:
        """Raises BadInput if the header cannot be used."""
        wrong = table.why_unusable(self.m)
        if wrong:
            raise BadInput(f"cannot use {self.path}: {wrong}; remove it if nobody uses the gate")
        self.seats = self.m[SEATS]
        self.capacity = self.m[CAPACITY]

    def rebuild(self, change: Change) -> None:
        table.rebuild(self.m, change)
        self.m[REBUILT] = self.m[REBUILT] + 1

    def take_lock(self) -> None:
        self.locked = True  # an interrupt may come at any moment: unlocking in vain is harmless
        while not calls.lock(self.fd, PATIENCE):
            self.continue_owner()

    def continue_owner(self) -> None:
        """If the process that has the lock is stopped, let it finish its change."""
        pid = system.lock_owner(self.fd)
        if pid and pid != self.pid and system.is_stopped(pid):
            if self.mapped:
                self.m[STOP] = pid
                if system.lock_owner(self.fd) != pid or not system.is_stopped(pid):  # somebody else continued it
                    self.m[STOP] = 0
                    return
                self.m[RESCUED] = self.m[RESCUED] + 1
            with suppress(PermissionError, ProcessLookupError):  # another user's: all have to wait for it
                os.kill(pid, signal.SIGCONT)

    def try_lock(self) -> bool:
        self.locked = True
        self.locked = calls.try_lock(self.fd)
        return self.locked

    def unlock(self) -> None:
        calls.unlock(self.fd)
        self.locked = False

    def stop_again(self) -> None:
        """After the change and its rings: a process that was continued to finish them stops itself again."""
        if self.m[STOP] == self.pid:
            self.m[STOP] = 0
            os.kill(self.pid, signal.SIGSTOP)

    def is_linked(self, now: int) -> bool:
        """Has nobody removed the file? The kernel is asked at most every millisecond."""
        if now - self.linked > MILLISECOND:
            if not os.fstat(self.fd).st_nlink:
                return False
            self.linked = now
        return True

    def close(self) -> None:
        os.close(self.fd)
        self.fd = -1


def open_file(path: str, create: bool) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    try:
        return os.open(path, flags, 0o600)
    except OSError as wrong:
        raise BadInput(f"cannot open {path}: {wrong.strerror}") from wrong


def first_fence() -> int:
    """Seconds in the upper half: the fences of a gate that is created again are above its earlier ones."""
    return max(int(time.time()) - EPOCH, 1) << FENCE_COUNT_BITS
