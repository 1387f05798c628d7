"""Who reads what other peers send: the loop's thread, or the thread of a user that waits for just that.

A message wakes the loop's thread, and if it lets somebody in, that wakes the user's thread: two turns of the scheduler,
which cost more than all the rest. So a thread that waits reads by itself (`read_for`), all that comes, whomever it is
for, and the loop's thread sleeps meanwhile.

The sockets of all connections are in one epoll, `sockets`. The loop looks at another one, `shown`, which has that in it
unless a user reads. So to change places takes one system call and wakes nobody. Both may read at once: each piece is
read, taken apart and taken under one lock, so nothing is taken twice or in another order.

A user's thread can be kept from reading: a handler of signals may run in it for as long as it likes. So the loop's
thread looks every `LOOK_SECONDS` in any case.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from select import EPOLLIN, epoll
from threading import Lock, get_ident
from time import monotonic
from typing import Protocol

from fairgate.net.codec import Frame
from fairgate.net.pipe import Pipe

LOOK_SECONDS = 0.5
MOST_READY = 64  # at once; Python makes room for so many at each look


class Home(Protocol):
    """The transport, as it is seen here."""

    loop: asyncio.AbstractEventLoop
    receiving: bool

    def flush(self) -> None: ...

    def on_quiet(self) -> None: ...


class Waiting(Protocol):
    """What a user's thread reads for."""

    def is_over(self) -> bool: ...


class Reader:
    def __init__(self, home: Home, elsewhere: Callable[[int, Frame], bool]) -> None:
        self.home = home
        self.on_quiet = home.on_quiet
        self.elsewhere = elsewhere
        self.loop = home.loop
        self.connections: dict[int, Pipe] = {}  # by their sockets' numbers
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.sockets = epoll()
        self.sockets.register(self.bell, EPOLLIN)
        self.inner = self.sockets.fileno()
        self.shown = epoll()
        self.shown.register(self.inner, EPOLLIN)
        self.reading = Lock()
        self.place = Lock()  # of the one user's thread that reads
        self.user = 0  # which that is
        self.loop.add_reader(self.shown.fileno(), self.look)
        self.timer = self.loop.call_later(LOOK_SECONDS, self.look_again)

    def add(self, connection: Pipe, number: int) -> None:
        with self.reading:
            self.connections[number] = connection
            self.sockets.register(number, EPOLLIN)

    def remove(self, number: int) -> None:
        """Before its socket is closed."""
        with self.reading:
            if self.connections.pop(number, None) is not None:
                self.sockets.unregister(number)

    # In the loop's thread.

    def look(self) -> None:
        self.home.receiving = True
        try:
            self.take(self.sockets.poll(0, MOST_READY), None)
        finally:
            self.home.receiving = False
            self.home.flush()
            self.on_quiet()

    def look_again(self) -> None:
        self.timer = self.loop.call_later(LOOK_SECONDS, self.look_again)
        self.look()

    def close(self) -> None:
        """The epolls themselves are left: a user's thread may be about to look at them."""
        self.timer.cancel()
        self.loop.remove_reader(self.shown.fileno())

    # In a user's thread.

    def read_for(self, what: Waiting, timeout: float | None) -> bool:
        """Until it is over, or the time is. False: somebody else reads already."""
        if not self.place.acquire(False):
            return False
        try:
            self.user = get_ident()
            self.shown.modify(self.inner, 0)
            self.read_on(what, timeout)
        finally:
            self.user = 0
            self.shown.modify(self.inner, EPOLLIN)
            self.place.release()
        return True

    def read_on(self, what: Waiting, timeout: float | None) -> None:
        if timeout is None:
            while not what.is_over():
                self.read(-1)
            return
        deadline = monotonic() + timeout
        while not what.is_over() and (left := deadline - monotonic()) > 0:
            self.read(left)

    def read(self, timeout: float) -> None:
        """What has come; -1: or what comes first."""
        try:
            self.take(self.sockets.poll(timeout, MOST_READY), self.elsewhere)
        finally:
            self.on_quiet()

    def ring(self) -> None:
        """It may be over: by something that was not read by that thread itself."""
        if self.user and self.user != get_ident():
            os.eventfd_write(self.bell, 1)

    # In both.

    def take(self, ready: list[tuple[int, int]], elsewhere: Callable[[int, Frame], bool] | None) -> None:
        with self.reading:
            for number, _ in ready:
                connection = self.connections.get(number)
                if connection is not None:
                    if not connection.read(elsewhere):
                        self.sockets.unregister(number)
                        del self.connections[number]
                elif number == self.bell:
                    self.silence()

    def silence(self) -> None:
        with suppress(BlockingIOError):  # the other one may have
            os.eventfd_read(self.bell)
