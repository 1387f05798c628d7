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
from threading import get_ident
from time import monotonic
from typing import Protocol

from fairgate.net.codec import Frame
from fairgate.net.pipe import Pipe
from fairgate.net.system import Latch, Poller, heed

LOOK_SECONDS = 0.5
CLOSE_SECONDS = 1.0  # that the end of a peer waits for a thread which is kept from leaving
NO_BELL = -1


class ReaderOwner(Protocol):
    """The transport, as it is seen here."""

    loop: asyncio.AbstractEventLoop
    receiving: bool

    def flush(self) -> None: ...

    def on_quiet(self) -> None: ...


class Waiting(Protocol):
    """What a user's thread reads for."""

    def is_over(self) -> bool: ...


class Reader:
    def __init__(self, owner: ReaderOwner, elsewhere: Callable[[int, Frame], bool]) -> None:
        self.owner = owner
        self.on_quiet = owner.on_quiet
        self.elsewhere = elsewhere
        self.loop = owner.loop
        self.connections: dict[int, Pipe] = {}  # by their sockets' numbers
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.sockets = Poller()
        self.sockets.add(self.bell)
        self.inner = self.sockets.fileno()
        self.shown = Poller()
        self.shown.add(self.inner)
        self.reading = Latch()
        self.place = Latch()  # of the one user's thread that reads
        self.user = 0  # which that is
        self.loop.add_reader(self.shown.fileno(), self.look)
        self.timer = self.loop.call_later(LOOK_SECONDS, self.look_again)

    def add(self, connection: Pipe, number: int) -> None:
        with self.reading:
            self.connections[number] = connection
            self.sockets.add(number)

    def remove(self, number: int) -> None:
        """Before its socket is closed."""
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
        """Who reads has been told to end. The epolls are left to who looks at them last; numbers must be closed, and
        nobody may write to one that is."""
        self.timer.cancel()
        self.loop.remove_reader(self.shown.fileno())
        if self.place.acquire(True, CLOSE_SECONDS):
            bell, self.bell = self.bell, NO_BELL
            os.close(bell)
            self.place.release()

    # In a user's thread.

    def read_for(self, what: Waiting, timeout: float | None) -> bool:
        """Until it is over, or the time is. False: somebody else reads already."""
        if not self.place.acquire(False):
            return False
        try:
            self.user = get_ident()
            self.shown.hide(self.inner, True)
            self.read_on(what, timeout)
        finally:
            self.user = 0
            self.shown.hide(self.inner, False)
            self.place.release()
        return True

    def read_on(self, what: Waiting, timeout: float | None) -> None:
        """Signals are heard where Python code runs, so one that came while this did would not break the sleep off:
        hence `heed`, and no sleep is longer than the loop's."""
        deadline = None if timeout is None else monotonic() + timeout
        while not what.is_over():
            left = LOOK_SECONDS if deadline is None else min(deadline - monotonic(), LOOK_SECONDS)
            if left <= 0:
                return
            heed()
            self.read(left)

    def read(self, timeout: float) -> None:
        """What has come, or what comes first within that time."""
        try:
            self.take(self.sockets.wait(timeout), self.elsewhere)
        finally:
            self.on_quiet()

    def ring(self) -> None:
        """It may be over: by something that was not read by that thread itself."""
        if self.user and self.user != get_ident():
            with suppress(OSError):  # it is closed: nobody waits any more
                os.eventfd_write(self.bell, 1)

    # In both.

    def take(self, ready: list[int], elsewhere: Callable[[int, Frame], bool] | None) -> None:
        with self.reading:  # in plain code a signal could be heard between `acquire()` and `try`
            for number in ready:
                connection = self.connections.get(number)
                if connection is not None:
                    if not connection.read(elsewhere):
                        self.sockets.remove(number)
                        del self.connections[number]
                elif number == self.bell:
                    self.silence()

    def silence(self) -> None:
        with suppress(BlockingIOError):  # the other one may have
            os.eventfd_read(self.bell)
