"""Decides which thread reads from the sockets: the loop's, or that of a user who waits for a message.

If the loop's thread reads, a message wakes it, and if the message grants a request, it wakes the user's thread: two
thread switches, which cost more than everything else. So a waiting user's thread reads by itself (`read_for`), for all
requests of the process, while the loop's thread sleeps.

The sockets of all connections are in one epoll, `sockets`. The loop watches another one, `shown`, which contains the
first unless a user's thread reads. So switching takes one system call and wakes no thread. Both threads may read at the
same time: each piece is read, decoded and handled under one lock, so nothing is handled twice or out of order.

A user's thread can be kept from reading, because a signal handler may run in it for any length of time. So the loop's
thread looks every `LOOK_SECONDS` in any case.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from time import monotonic
from typing import Protocol

from fairgate.errors import ReentrantCall
from fairgate.net.codec import Frame
from fairgate.net.pipe import Pipe
from fairgate.net.system import IN_A_STEP, Latch, Poller, heed, once, once_if_free

LOOK_SECONDS = 0.5
CLOSE_SECONDS = 1.0  # how long close() waits for a user's thread to stop reading
NO_BELL = -1


class ReaderOwner(Protocol):
    """What a reader needs of the transport."""

    loop: asyncio.AbstractEventLoop
    receiving: bool

    def flush(self) -> None: ...

    def on_quiet(self) -> None: ...


class Waiting(Protocol):
    """What a user's thread is waiting for."""

    def is_over(self) -> bool: ...


class Reader:
    def __init__(self, owner: ReaderOwner, elsewhere: Callable[[int, Frame], bool]) -> None:
        self.owner = owner
        self.on_quiet = owner.on_quiet
        self.elsewhere = elsewhere
        self.loop = owner.loop
        self.connections: dict[int, Pipe] = {}  # by file descriptor
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.sockets = Poller()
        self.sockets.add(self.bell)
        self.inner = self.sockets.fileno()
        self.shown = Poller()
        self.shown.add(self.inner)
        self.reading = Latch()
        self.place = Latch()  # held by the one user's thread that reads
        self.user = 0  # the identifier of that thread
        self.loop.add_reader(self.shown.fileno(), self.look)
        self.timer = self.loop.call_later(LOOK_SECONDS, self.look_again)

    def add(self, connection: Pipe, number: int) -> None:
        with self.reading:
            self.connections[number] = connection
            self.sockets.add(number)

    def remove(self, number: int) -> None:
        """Must be called before the socket is closed."""
        with self.reading:
            if self.connections.pop(number, None) is not None:
                self.sockets.remove(number)

    # In the loop's thread.

    def look(self) -> None:
        self.owner.receiving = True
        try:
            self.take(self.sockets.wait(0), None)
        finally:
            self.owner.receiving = False
            self.owner.flush()
            self.on_quiet()

    def look_again(self) -> None:
        self.timer = self.loop.call_later(LOOK_SECONDS, self.look_again)
        self.look()

    def close(self) -> None:
        """The reading thread has been told to stop. The epolls are closed by their last user; the bell is closed here,
        once no thread can ring it any more."""
        self.timer.cancel()
        self.loop.remove_reader(self.shown.fileno())
        if self.place.acquire(True, CLOSE_SECONDS):
            bell, self.bell = self.bell, NO_BELL
            os.close(bell)
            self.place.release()

    # In a user's thread.

    def read_for(self, what: Waiting, timeout: float | None) -> bool:
        """Reads until the wait is over or the timeout passes. False if another user's thread already reads."""
        has_read = False
        for _ in once_if_free(self.place):
            has_read = True
            try:
                self.user = get_ident()
                self.shown.hide(self.inner, True)
                self.read_on(what, timeout)
            finally:
                self.user = 0
                self.shown.hide(self.inner, False)
        if not has_read and self.reading.is_mine():  # a signal handler: nobody would read until it ends
            raise ReentrantCall(IN_A_STEP)
        return has_read

    def read_on(self, what: Waiting, timeout: float | None) -> None:
        """Signals are only handled where Python code runs, so one that arrived while this compiled code ran would not
        interrupt the sleep. Hence the call of `heed`, and no sleep is longer than the loop's."""
        deadline = None if timeout is None else monotonic() + timeout
        while not what.is_over():
            left = LOOK_SECONDS if deadline is None else min(deadline - monotonic(), LOOK_SECONDS)
            if left <= 0:
                return
            heed()
            self.read(left)

    def read(self, timeout: float) -> None:
        """Reads what has arrived, or waits at most this long for something to arrive."""
        try:
            self.take(self.sockets.wait(timeout), self.elsewhere)
        finally:
            self.on_quiet()

    def ring(self) -> None:
        """Wakes the reading thread if its wait may be over because of something that it did not read itself."""
        if self.user and self.user != get_ident():
            with suppress(OSError):  # closed: no thread waits any more
                os.eventfd_write(self.bell, 1)

    # In both.

    def take(self, ready: list[int], elsewhere: Callable[[int, Frame], bool] | None) -> None:
        for _ in once(self.reading):
            for number in ready:
                connection = self.connections.get(number)
                if connection is not None:
                    if not connection.read(elsewhere):
                        self.sockets.remove(number)
                        del self.connections[number]
                elif number == self.bell:
                    self.silence()

    def silence(self) -> None:
        with suppress(BlockingIOError):  # the other thread may have done so
            os.eventfd_read(self.bell)
