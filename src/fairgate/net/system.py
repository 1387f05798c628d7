"""What is asked of the kernel for every message, plain; `system.pyx` asks without the objects of Python's around it.

A process that waits its turn finds nothing in the processor's caches when it wakes up, so what a message takes is above
all how much code and how many objects are touched on its way.
"""

import select
import socket
import threading
import time
from struct import Struct

NOW = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
PIECE = 1 << 12  # bytes read at once
MOST_READY = 64  # sockets at once
HEAD = Struct(">IB")

Latch = threading.Lock


class Wire:
    """A socket of ours, which never waits. It is closed by us alone, so its number cannot be another's."""

    def __init__(self, number: int) -> None:
        self.socket = socket.socket(fileno=number)

    def fileno(self) -> int:
        return self.socket.fileno()

    def take(self) -> bytes:
        """What has come; nothing at the end. BlockingIOError: nothing yet."""
        return self.socket.recv(PIECE, NOW)

    def give(self, data: bytes | bytearray) -> int:
        """How many bytes of it were taken."""
        return self.socket.send(data, NOW)

    def close(self) -> None:
        self.socket.close()


class Poller:
    """Of many sockets, those from which something can be read."""

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
    """KeyboardInterrupt comes from here, if Ctrl-C was pressed while compiled code ran: any call of Python code hears
    the signals that have come."""


def clock() -> int:
    """ns. It runs on while the machine sleeps, as whatever a lease protects does."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def headed(version: int, body: bytes) -> bytes:
    """The length of what follows, the version, the body."""
    return HEAD.pack(len(body) + 1, version) + body
