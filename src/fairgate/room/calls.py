"""The system calls that every request makes: the clock, the file's lock and pipes; `calls.pyx` makes them in C."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import stat
import threading
import time
from _signal import SIG_DFL, SIGPIPE, getsignal  # type: ignore[import-not-found]  # without enums, which are slow
from functools import partial

from fairgate.once import once

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fairgate.room.table import Change

    T = TypeVar("T")

FOREVER = 1 << 62  # ns
SECOND = 10**9  # ns
YIELDS = 3  # attempts at the lock that only let others run; later ones sleep in between
SHORTEST, LONGEST = 20_000, 50_000_000  # ns of these sleeps
DEAD, REMOVED, UNSEEN = -1, -2, -3


# Nanoseconds. CLOCK_BOOTTIME goes on while the machine sleeps, as whatever a lease protects does.
clock = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


# The lock.


class Exclusive:
    """Lets one thread at a time make a change. flock does not exclude the threads of one process.

    A signal handler may run in the middle of a change of its own thread. What can be done then is done by `catch_up`,
    after the change.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """After a fork: another thread of the parent may have been in the middle of a change."""
        self.mutex = threading.RLock()  # `once` takes it, so that an interrupt cannot lose it
        self.changing = False  # only under the mutex
        self.postponed: list[Callable[[], object]] = []

    def change(self, step: Callable[[Change], T]) -> T:
        """Raises ReentrantCall in a signal handler, if its thread is in the middle of a change."""
        for _ in once(self.mutex):
            if self.changing:
                self.refuse()
            self.changing = True
            try:
                result = self.change_alone(step, FOREVER)
            finally:  # no call before the store: an interrupt may come at any call
                self.changing = False
                if self.postponed:
                    self.catch_up()
        return result

    def try_change(self, step: Callable[[Change], T], patience: int) -> T:
        """As `change`. Raises BlockingIOError if it would have to wait for more than this many ns."""
        if not self.mutex.acquire(blocking=False):
            raise BlockingIOError
        try:
            if self.changing:
                self.refuse()
            self.changing = True
            try:
                return self.change_alone(step, patience)
            finally:
                self.changing = False
                if self.postponed:
                    self.catch_up()
        finally:
            self.mutex.release()

    def exclude_changes(self, call: Callable[[], T]) -> T:
        """Do something else while no other thread makes a change."""
        for _ in once(self.mutex):
            if self.changing:
                self.refuse()
            self.changing = True
            try:
                result = call()
            finally:
                self.changing = False
                if self.postponed:
                    self.catch_up()
        return result

    def change_alone(self, step: Callable[[Change], T], patience: int) -> T:
        raise NotImplementedError

    def refuse(self) -> None:
        raise NotImplementedError

    def catch_up(self) -> None:
        raise NotImplementedError


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(fd: int, patience: int, since: int = 0) -> bool:
    """Try for this many nanoseconds. It never blocks in the kernel, because the holder of the lock may be stopped.

    `since` is when the caller began to wait, if it goes on until it has the lock. Another caller has other things to
    do, so it does not give its processor away: on a crowded machine it would have it back after a tenth of a second.
    """
    if try_lock(fd):
        return True
    now = clock()
    end = now + patience
    for attempt in range(1 << 62):
        if not since:
            pass
        elif attempt < YIELDS:
            os.sched_yield()
        else:
            time.sleep(pause_after(now - since) / SECOND)
        if try_lock(fd):
            return True
        now = clock()
        if now > end:
            break
    return False


def pause_after(waited: int) -> int:
    """How long to sleep before the next attempt at the lock, if others have failed for this many nanoseconds.

    It is proportional, because a thousand processes that try often leave no time to the one that has the lock.
    """
    return min(max(waited // 4, SHORTEST), LONGEST)


def unlock(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)


# Pipes.


def ring(fd: int, ticket: int) -> bool:
    """Write to a bell. False if nobody reads there any more; a full pipe has rung already.

    A program that wants to be ended by SIGPIPE is not ended by this one.
    """
    mortal = getsignal(SIGPIPE) == SIG_DFL
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE}) if mortal else set()
    try:
        os.write(fd, ticket.to_bytes(8, "little", signed=True))
    except BlockingIOError:
        pass
    except BrokenPipeError:
        if mortal:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
        return False
    finally:
        if mortal:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def open_to_ring(path: str) -> int:
    """The writing end of a bell.

    DEAD: no process has the other end. REMOVED: there is no such bell any more. UNSEEN: it cannot be opened, so its
    owner may be alive.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    except FileNotFoundError:
        return REMOVED
    except OSError as wrong:
        if wrong.errno == errno.ENXIO and is_pipe(path):  # opening a socket gives the same error
            return DEAD
    return UNSEEN


def is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:
        return False


def read_tickets(bell: int) -> list[int]:
    try:
        data = os.read(bell, 4096)
    except BlockingIOError:
        return []
    if len(data) == 8:
        return [int.from_bytes(data, "little", signed=True)]
    return memoryview(data[: len(data) // 8 * 8]).cast("q").tolist()


class Poll:
    """Waits for one's own bell, and for the death of the processes behind other bells."""

    def __init__(self, bell: int) -> None:
        self.bell = bell
        self.poll = select.poll()
        self.poll.register(bell, select.POLLIN)

    def watch(self, fd: int) -> None:
        self.poll.register(fd, 0)  # only POLLERR: nobody reads there any more

    def forget(self, fd: int) -> None:
        self.poll.unregister(fd)

    def wait(self, nanoseconds: int) -> tuple[list[int], list[int]]:
        """The tickets that were rung, and the descriptors whose processes are dead."""
        ready = [fd for fd, _ in self.poll.poll(max(0, nanoseconds) / 1e6)]
        if self.bell not in ready:
            return [], ready
        ready.remove(self.bell)
        return read_tickets(self.bell), ready


# Files, and other processes.


def is_same_file(path: str, fd: int) -> bool:
    """Is this the open file of that name? False if there is none of that name. Raises OSError."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_stopped(pid: int) -> bool:
    """Is this process stopped (SIGSTOP, a debugger)? False if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            text = file.read(512)
    except OSError:
        return False
    return text[text.rfind(b")") + 2 :][:1] in (b"T", b"t")
