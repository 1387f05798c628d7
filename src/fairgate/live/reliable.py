"""Links between hosts: a connection can break while both peers live, so frames go over the papers' reliable channel.

The channel (recovery/channel.py) is one node for the whole peer, between peers and not between seats: a peer's id is
fresh at every start, as the channel wants it, and a seat's need not be.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from fairgate.core.message import Key, Message, decode, register
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.live.links import Links
from fairgate.net.address import parse_address
from fairgate.net.codec import Frame
from fairgate.net.roster import Members
from fairgate.net.system import clock
from fairgate.net.transport import Transport
from fairgate.recovery.channel import TIMER, Ack, Channel, Data

MISSED_SECONDS = 1.0

log = logging.getLogger("fairgate.live")


class Letter(Message):
    """A frame, as the channel's upper node says it."""

    __slots__ = ("frame",)
    tag = "letter"

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def key(self) -> Key:
        return (self.tag, *self.frame)

    @classmethod
    def from_fields(cls, *fields: Any) -> "Letter":
        return cls(fields)


register(Letter)


class Desk(Node):
    """What the channel carries: it only passes letters on, when the step that brought them is over."""

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        super().__init__(me, setup, out)
        self.arrived: list[tuple[int, Frame]] = []

    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Letter)
        self.arrived.append((src, msg.frame))

    def on_crash(self, peer: int) -> None:
        pass


class ReliableLinks(Links):
    def __init__(
        self, transport: Transport, lock: AbstractContextManager[object], deliver: Callable[[int, Frame], None]
    ) -> None:
        super().__init__(transport, lock)
        self.deliver = deliver
        self.channel = Channel(transport.me, Setup((transport.me,)), ChannelOutbox(self), Desk)
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.missed: set[int] = set()  # is it still so in a moment?

    def send(self, peer: int, frame: Frame) -> None:
        """Who only looks in, and is no member, gets it once: nobody would ever say that it is gone."""
        if peer not in self.addresses:
            self.send_bare(peer, frame)
            return
        self.channel.now = clock()
        self.channel.send_down(peer, Letter(frame))

    def send_bare(self, peer: int, frame: Frame) -> None:
        """What the channel itself says. What does not get through it says again."""
        super().send(peer, frame)

    def keep(self, peer: int, frame: Frame) -> None:
        """Nothing is kept here: the channel does."""

    def known(self, members: Members) -> None:
        gone = self.addresses.keys() - {peer.id for peer in members.peers}
        super().known(members)
        for peer in gone:
            self.channel.now = clock()
            self.channel.on_crash(peer)

    def dial_now(self, peer: int, address: str) -> None:
        """Who came after us may be where only the others may dial: they have keys, or do without."""
        if peer in self.dialled:
            try:
                self.transport.dial(parse_address(address), peer, quiet=True)
            except BadInput as wrong:
                log.error("cannot dial peer %d: %s", peer, wrong)
            else:
                self.is_missed(peer, "it does not answer")

    def is_missed(self, peer: int, why: str) -> None:
        """Who leaves in order hangs up before everybody has heard that it left: it is told of later, if at all."""
        if peer not in self.missed:
            self.missed.add(peer)
            self.loop.call_later(MISSED_SECONDS, self.tell_of, peer, why)

    def tell_of(self, peer: int, why: str) -> None:
        self.missed.discard(peer)
        if peer in self.addresses and peer not in self.transport.up and not self.transport.closing:
            found = [dial.why for dial in self.transport.dials if dial.peer == peer and dial.why]
            log.warning("cannot reach peer %d at %s: %s", peer, self.addresses[peer], "; ".join(found) or why)

    def on_up(self, peer: int) -> None:
        """Now, rather than when the next resend is due."""
        self.due(f"{TIMER}{peer}")

    def take(self, peer: int, frame: Frame) -> bool:
        """Was it the channel's? What it carried is delivered. ValueError if it is nothing."""
        if frame[0] not in (Data.tag, Ack.tag):
            return False
        msg = decode(frame)
        desk = self.channel.upper
        assert isinstance(desk, Desk)
        with self.lock:
            self.channel.now = clock()
            self.channel.on_message(peer, msg)
            arrived, desk.arrived = desk.arrived, []
        for src, letter in arrived:
            self.deliver(src, letter)
        return True

    # Timers, on the loop.

    def set_timer(self, name: str, delay: int) -> None:
        self.loop.call_soon_threadsafe(self.arm, name, delay / 1e9)

    def cancel_timer(self, name: str) -> None:
        self.loop.call_soon_threadsafe(self.disarm, name)

    def arm(self, name: str, seconds: float) -> None:
        self.disarm(name)
        self.timers[name] = self.loop.call_later(seconds, self.due, name)

    def disarm(self, name: str) -> None:
        timer = self.timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def due(self, name: str) -> None:
        with self.lock:
            self.channel.now = clock()
            if self.channel.is_armed(name):
                self.channel.timer_due(name)


class ChannelOutbox(Outbox):
    """The channel's outbox."""

    def __init__(self, links: ReliableLinks) -> None:
        self.links = links

    def send(self, dst: int, msg: Message) -> None:
        self.links.send_bare(dst, msg.key())

    def set_timer(self, name: str, delay: int) -> None:
        self.links.set_timer(name, delay)

    def cancel_timer(self, name: str) -> None:
        self.links.cancel_timer(name)
