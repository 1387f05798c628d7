"""The system calls made for every message, in plain Python; `system.pyx` makes them without Python objects around them.

A process that was waiting finds the processor's caches cold when it wakes up, so the cost of a message depends above
all on how much code and how many objects it touches.
"""

import _thread
import select
import socket
import time
from collections.abc import Iterator
from struct import Struct

from fairgate import once as turns
from fairgate.errors import ReentrantCall

NOW = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
PIECE = 1 << 12  # bytes read at once
MOST_READY = 64  # sockets at once
HEAD = Struct(">IB")
NO_TURN: Iterator[None] = iter(())
IN_A_STEP = "a signal handler cannot use a peer of a cluster that its own thread is using at this moment"


class Latch(_thread.RLock):  # type: ignore[misc] # it is not final
    """Only `once` and `once_if_free` treat it as what it is, a lock that is not reentrant. Its `acquire` must be C's:
    Ctrl-C could strike at the end of one in Python, when the lock is already taken."""

    def is_mine(self) -> bool:
        return bool(self._is_owned())  # type: ignore[attr-defined]


def once(latch: Latch) -> Iterator[None]:
    """As once.py. ReentrantCall in a signal handler that has interrupted its own thread in such a turn: it would wait
    for itself."""
    if latch.is_mine():
        raise ReentrantCall(IN_A_STEP)
    return turns.once(latch)


def once_if_free(latch: Latch) -> Iterator[None]:
    return NO_TURN if latch.is_mine() else turns.once_if_free(latch)


class Wire:
    """A non-blocking socket. Only its owner closes it, so its descriptor cannot have been reused."""

    def __init__(self, number: int) -> None:
        self.socket = socket.socket(fileno=number)

    def fileno(self) -> int:
        return self.socket.fileno()

    def take(self) -> bytes:
        """The data that has arrived; empty at the end of the stream. BlockingIOError if there is none yet."""
        return self.socket.recv(PIECE, NOW)

    def give(self, data: bytes | bytearray) -> int:
        """Sends what the socket accepts, and returns the number of bytes."""
        return self.socket.send(data, NOW)

    def close(self) -> None:
        self.socket.close()


class Poller:
    """An epoll: which of many sockets can be read from."""

    def __init__(self) -> None:
        self.epoll = select.epoll()

    def fileno(self) -> int:
        return self.epoll.fileno()

    def add(self, number: int) -> None:
        self.epoll.register(number, select.EPOLLIN)

    def remove(self, number: int) -> None:
        self.epoll.unregister(number)

    def hide(self, number: int, hidden: bool) -> None:
        self.epoll.modify(number, 0 if hidden else select.EPOLLIN)

    def wait(self, seconds: float) -> list[int]:
        return [number for number, _ in self.epoll.poll(seconds, MOST_READY)]


def heed() -> None:
    """Handles pending signals; raises KeyboardInterrupt if Ctrl-C was pressed while compiled code ran. Plain Python
    code handles signals at every call, so there is nothing to do here."""


def clock() -> int:
    """CLOCK_BOOTTIME in ns. It keeps running while the machine is suspended, as leases must."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def headed(version: int, body: bytes) -> bytes:
    """The frame: the length of what follows, the version, the body."""
    return HEAD.pack(len(body) + 1, version) + body
