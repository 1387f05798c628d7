"""Drives the views of a peer (recovery/views.py): their messages, timers and clock.

Everything happens in steps of the engine, in its thread. After a pause (a stopped process, a suspended machine) timers
that are due run before anything that has arrived.

Messages of views are not sent over the reliable channel: they are repeated until they are answered. While a connection
is being made, the latest message of each kind is kept for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from random import SystemRandom
from typing import Any, Protocol

from fairgate.arguments import SECOND
from fairgate.core.message import Key, Message, decode
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.live.links import Links
from fairgate.net.codec import Frame
from fairgate.net.connection import Connection
from fairgate.net.system import clock
from fairgate.net.transport import Transport
from fairgate.recovery.agreed import Above, Chosen
from fairgate.recovery.roster import RosterBook
from fairgate.recovery.views import Views

PREFIX = "vw."
NOBODY = 0  # no peer has this id
BEATS_PER_LEASE = 20
SLOWEST_BEAT = SECOND // 4  # a minority finds out within a second
PATIENCE = 4  # a peer is excluded after it was silent for this part of a lease
TELL_AGAIN = SECOND
SHORTEST_PATIENCE = SECOND // 2
JUMP = 60  # seconds: a change of the system clock by this much is reported
chance = SystemRandom()

log = logging.getLogger("fairgate.live")


class DriverOwner(Protocol):
    """What this module needs of the membership."""

    transport: Transport

    @property
    def links(self) -> Links: ...

    def step(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Calls it in a step of the engine, with `now` set, and looks at what has changed afterwards."""


def setup_of(founder: int | None, lease: int, drift: int) -> Setup:
    period = min(lease // BEATS_PER_LEASE, SLOWEST_BEAT)
    patience = max(lease // PATIENCE, min(SHORTEST_PATIENCE, lease // 2))
    options = {"lease": lease, "drift": drift, "period": period, "patience": patience}
    return Setup((NOBODY if founder is None else founder,), options=options)


class ViewsDriver:
    def __init__(self, owner: DriverOwner, me: int, setup: Setup, book: RosterBook, above: Above) -> None:
        self.owner = owner
        self.book = book
        self.views = Views(me, setup, ViewsOutbox(self), book, above)
        self.loop = asyncio.get_running_loop()
        self.timer: asyncio.TimerHandle | None = None
        self.unsent: dict[int, dict[str, Frame]] = {}  # by peer and kind
        self.heard: dict[int, int] = {}  # peer -> when it last sent a message of views
        self.told: dict[int, tuple[Connection, int, int]] = {}  # peer -> the roster last sent to it: where, which, when
        self.ahead = int(time.time()) - clock() // SECOND  # the system clock, of CLOCK_BOOTTIME
        self.ended = False

    # Steps.

    def begin(self) -> None:
        """Call it before everything else of a step."""
        views = self.views
        late = clock() - views.now
        views.now = clock()
        self.read_system_clock()
        if 2 * late > views.patience:  # this process did not run, so the others were not silent: wait for them anew
            views.led = views.now
            views.watch()
        while due := self.due():
            self.views.timer_due(due)

    def read_system_clock(self) -> None:
        """It makes fences rise even if a cluster is made again without its saved state."""
        self.book.seconds = int(time.time())
        ahead = self.book.seconds - self.views.now // SECOND
        if abs(ahead - self.ahead) > JUMP:
            log.warning(
                "the system clock jumped by %d s: permits and leases do not depend on it, and fences go on rising",
                ahead - self.ahead,
            )
            self.ahead = ahead

    def due(self) -> str | None:
        """The timer that has been due for longest."""
        timers = self.views.timers or {}
        return min([name for name, at in timers.items() if at <= self.views.now], key=timers.__getitem__, default=None)

    def finish(self) -> None:
        """Call it at the end of a step."""
        if self.timer is not None:
            self.timer.cancel()
        timers = self.views.timers
        if timers and not self.ended:
            self.timer = self.loop.call_later(max(min(timers.values()) - clock(), 0) / SECOND, self.wake)

    def wake(self) -> None:
        self.timer = None
        self.owner.step(nothing)

    def end(self) -> None:
        self.ended = True
        if self.timer is not None:
            self.timer.cancel()

    # Messages.

    def take(self, peer: int, frame: Frame) -> bool:
        """Handles a frame of views; False for any other. ValueError if it is not valid."""
        if not (isinstance(frame[0], str) and frame[0].startswith(PREFIX)):
            return False
        msg = decode(frame)
        if not self.ended:
            self.heard[peer] = clock()
            self.owner.step(self.views.on_message, peer, msg)
        return True

    def send(self, peer: int, frame: Key) -> None:
        if frame[0] == Chosen.tag and self.was_just_told(peer, frame[1]):
            return
        if not self.owner.transport.send(peer, frame):
            self.unsent.setdefault(peer, {})[frame[0]] = frame
            self.owner.links.dial(peer)  # if it is a member

    def was_just_told(self, peer: int, version: int) -> bool:
        """Whether this roster was sent to the peer a moment ago. Many messages of a peer that is behind may ask for
        it, and it may be large."""
        connection, told = self.owner.transport.up.get(peer), self.told.get(peer)
        if told is not None and told[:2] == (connection, version) and clock() - told[2] < TELL_AGAIN:
            return True
        if connection is not None:
            self.told[peer] = (connection, version, clock())
        return False

    def on_up(self, peer: int) -> None:
        for frame in self.unsent.pop(peer, {}).values():
            self.owner.transport.send(peer, frame)

    def on_down(self, peer: int) -> None:
        """Keeps nothing of an id that is gone: one key may take any number, and a connection may have large buffers."""
        self.told.pop(peer, None)
        if peer not in self.owner.links.addresses:
            self.heard.pop(peer, None)

    def known(self) -> None:
        """There is a new roster: sends to peers whose addresses were not known before."""
        known = self.owner.links.addresses
        self.unsent = {peer: frames for peer, frames in self.unsent.items() if peer in known}
        self.told = {peer: told for peer, told in self.told.items() if peer in known}
        for peer in self.unsent:
            self.owner.links.dial(peer)


def nothing() -> None:
    pass


class ViewsOutbox(Outbox):
    """Timers are read from the node itself (`Node.timers`)."""

    def __init__(self, driver: ViewsDriver) -> None:
        self.driver = driver

    def send(self, dst: int, msg: Message) -> None:
        self.driver.send(dst, msg.key())

    def set_timer(self, name: str, delay: int) -> None:
        pass

    def cancel_timer(self, name: str) -> None:
        pass

    def choose(self, n: int) -> int:
        return chance.randrange(n)
