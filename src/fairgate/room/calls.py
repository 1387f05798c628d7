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

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fairgate.room.table import Change

    T = TypeVar("T")

YIELDS = 3  # attempts at the lock that only let others run; later ones sleep in between
SHORTEST, LONGEST = 20e-6, 2e-3  # seconds of these sleeps
DEAD, REMOVED, UNSEEN = -1, -2, -3
Mutex = threading.Lock


def clock() -> int:
    """Nanoseconds. CLOCK_BOOTTIME goes on while the machine sleeps, as whatever a lease protects does."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


# The lock.


class Exclusive:
    """Lets one thread at a time make a change. flock does not exclude the threads of one process."""

    def __init__(self) -> None:
        self.mutex = Mutex()

    def change(self, step: Callable[[Change], T]) -> T:
        with self.mutex:
            return self.change_alone(step)

    def change_alone(self, step: Callable[[Change], T]) -> T:
        raise NotImplementedError


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(fd: int, patience: int) -> bool:
    """Try for this many nanoseconds. It never blocks in the kernel, because the holder of the lock may be stopped."""
    if try_lock(fd):
        return True
    end = clock() + patience
    pause = SHORTEST
    for attempt in range(1 << 62):
        if attempt < YIELDS:
            os.sched_yield()
        else:
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST)
        if try_lock(fd):
            return True
        if clock() > end:
            break
    return False


def unlock(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)


# Pipes.


def ring(fd: int, ticket: int) -> bool:
    """Write to a bell. False if nobody reads there any more; a full pipe has rung already.

    A program that wants to be ended by SIGPIPE is not ended by this one.
    """
    mortal = signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL
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
    except OSError as wrong:
        return {errno.ENXIO: DEAD, errno.ENOENT: REMOVED}.get(wrong.errno or 0, UNSEEN)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        return UNSEEN
    return fd


def read_tickets(bell: int) -> list[int]:
    try:
        data = os.read(bell, 4096)
    except BlockingIOError:
        return []
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
