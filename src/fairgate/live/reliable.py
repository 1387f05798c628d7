"""Links of a cluster. A connection can break while both peers live, so frames go over a reliable channel.

The channel (recovery/channel.py) is one node for the whole peer. It connects peers rather than seats because it needs
ids that are fresh at every start: those of peers are, those of seats need not be.

Acknowledgements are cumulative, and nobody waits for them. So they are not sent message by message, which would double
the number of frames, but together (`owe`). For the same reason one timer of the loop serves all timers of the channel:
it is set when it would be late, and not touched when a message is acknowledged.

A connection keeps the order of frames, and a sender repeats everything that was not acknowledged when there is another
one. So a message that comes before its turn is dropped: to keep it would let anyone who is admitted fill our memory.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import get_ident

from fairgate.arguments import SECOND
from fairgate.core.message import Key, Message, decode, register_decoder
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.live.links import Links
from fairgate.live.traffic import MESSAGE
from fairgate.net.address import parse_address
from fairgate.net.codec import Frame
from fairgate.net.rationed_log import RationedLog
from fairgate.net.system import clock
from fairgate.net.transport import Transport
from fairgate.recovery.channel import MOST, TIMER, WINDOW, Ack, Channel, Data
from fairgate.recovery.roster import Members

MISSED_SECONDS = 1.0
ACK_SECONDS = 0.05  # an acknowledgement waits this long for others to join it; the sender waits four times as long
MOST_OWED = WINDOW // 4  # but it does not wait once this many messages are unacknowledged
MOST_OUTSIDERS = 1024  # ids of newcomers, inspectors and former members that the channel remembers
NEVER = 1 << 62

log = logging.getLogger("fairgate.live")


class Letter(Message):
    """A frame, as the message that the channel carries."""

    __slots__ = ("frame",)
    tag = "letter"

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def key(self) -> Key:
        return (self.tag, *self.frame)


register_decoder(Letter, lambda *fields: Letter(fields))


class Desk(Node):
    """The node above the channel: it collects the frames of a step, to be delivered when the step ends."""

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        super().__init__(me, setup, out)
        self.arrived: list[tuple[int, Frame]] = []

    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Letter)
        self.arrived.append((src, msg.frame))

    def on_crash(self, peer: int) -> None:
        pass


class ReliableLinks(Links):
    loses_nothing = True  # not even if a connection breaks

    def __init__(
        self, transport: Transport, lock: AbstractContextManager[object], deliver: Callable[[int, Frame], None]
    ) -> None:
        super().__init__(transport, lock)
        self.deliver = deliver
        self.channel = Channel(transport.me, Setup((transport.me,)), ChannelOutbox(self), Desk)
        self.alarm: asyncio.TimerHandle | None = None  # for all timers of the channel
        self.alarm_at = NEVER  # ns
        self.owed: dict[int, int] = {}  # by peer: the number to acknowledge
        self.acked: dict[int, int] = {}  # by peer: the number last acknowledged
        self.full: set[int] = set()  # peers that have acknowledged too little to be sent anything more
        self.log = RationedLog(log)  # a member may come and vanish again and again
        self.missed: set[int] = set()  # peers that are down and may have to be reported
        self.outsiders: dict[int, None] = {}  # ids that are not members', the one that was heard last is last
        self.patience = 0  # ns without an acknowledgement after which a connection is made anew; 0: never

    def send(self, peer: int, frame: Frame) -> None:
        """Sends over the channel, but only once to a non-member (an inspector): its end would never be reported."""
        if peer not in self.addresses:
            self.send_bare(peer, frame)
            return
        if peer in self.full:
            return
        self.channel.now = clock()
        self.channel.send_down(peer, Letter(frame))
        if self.channel.is_full(peer):
            self.give_up(peer)

    def give_up(self, peer: int) -> None:
        """The peer acknowledges nothing. It gets nothing any more until the others have removed it."""
        self.log.error("peer %d has not acknowledged %d messages: closing its connection", peer, MOST)
        self.full.add(peer)
        self.channel.on_crash(peer)
        self.loop.call_soon_threadsafe(self.transport.hang_up, peer, "it acknowledges nothing")

    def send_bare(self, peer: int, frame: Frame) -> None:
        """Sends without the channel: for the frames of the channel itself, which it repeats if they are lost."""
        Links.send(self, peer, frame)

    def keep(self, peer: int, frame: Frame) -> None:
        """A no-op: the channel keeps frames until they are acknowledged."""

    def known(self, members: Members) -> None:
        gone = self.addresses.keys() - {peer.id for peer in members.peers}
        super().known(members)
        self.full &= self.addresses.keys()
        self.acked = {peer: number for peer, number in self.acked.items() if peer in self.addresses}
        for peer in gone:
            self.channel.now = clock()
            self.channel.on_crash(peer)
            self.remember(peer)
        self.outsiders = {peer: None for peer in self.outsiders if peer not in self.addresses}

    def remember(self, outsider: int) -> None:
        """Forget what the channel knows of the oldest, if there are too many: one key may take any number of ids."""
        self.outsiders.pop(outsider, None)
        self.outsiders[outsider] = None
        if len(self.outsiders) > MOST_OUTSIDERS:
            for peer in self.outsiders:
                if peer not in self.up:
                    del self.outsiders[peer]
                    self.channel.links.pop(peer, None)
                    break

    def dial_now(self, peer: int, address: str) -> None:
        """Dials a member. We may not be allowed to: a newer member can be off this host while we have no TLS."""
        if peer in self.dialled:
            try:
                self.transport.dial(parse_address(address), peer, quiet=True)
            except BadInput as wrong:
                self.log.error("cannot connect to peer %d: %s", peer, wrong)
            else:
                self.is_missed(peer, "it does not answer")

    def is_missed(self, peer: int, why: str) -> None:
        """Reports an unreachable peer after a delay: one that leaves cleanly disconnects before we hear of it."""
        if peer not in self.missed:
            self.missed.add(peer)
            self.loop.call_later(MISSED_SECONDS, self.tell_of, peer, why)

    def tell_of(self, peer: int, why: str) -> None:
        self.missed.discard(peer)
        if peer in self.addresses and peer not in self.transport.up and not self.transport.closing:
            found = [dial.why for dial in self.transport.dials if dial.peer == peer and dial.why]
            self.log.warning("cannot reach peer %d at %s: %s", peer, self.addresses[peer], "; ".join(found) or why)

    def on_up(self, peer: int) -> None:
        """Resends at once instead of when the timer is due."""
        name = f"{TIMER}{peer}"
        with self.lock:
            self.channel.now = clock()
            if peer in self.channel.links:
                self.channel.links[peer].delay = self.channel.channel_resend
            if self.channel.is_armed(name):
                self.channel.timer_due(name)

    def take(self, peer: int, frame: Frame) -> bool:
        """Handles a frame of the channel and delivers its contents; False for any other. ValueError if invalid."""
        if frame[0] not in (Data.tag, Ack.tag):
            return False
        msg = decode(frame)
        desk = self.channel.upper
        assert isinstance(desk, Desk)
        with self.lock:
            if peer not in self.addresses:
                self.remember(peer)
            link = self.channel.link(peer)
            if isinstance(msg, Data) and msg.number > link.taken + 1:
                return True
            self.channel.now = clock()
            self.channel.on_message(peer, msg)
            arrived, desk.arrived = desk.arrived, []
        for src, letter in arrived:
            self.deliver(src, letter)
        return True

    def end(self) -> None:
        """This peer takes another id. Whatever the channel would repeat was sent under the old one: the receivers would
        take it for messages of the new one; and so with acknowledgements."""
        with self.lock:
            self.addresses = {}
            self.outgoing.clear()
            self.waiting.clear()
            self.owed.clear()
            for peer in list(self.channel.links):
                self.channel.now = clock()
                self.channel.on_crash(peer)

    # Acknowledgements.

    def owe(self, peer: int, number: int) -> None:
        """Acknowledges all messages of this peer up to this number, soon. Only the loop's thread receives messages."""
        if not self.owed:
            self.loop.call_later(ACK_SECONDS, self.acknowledge)
        self.owed[peer] = number
        if number - self.acked.get(peer, 0) >= MOST_OWED:
            self.loop.call_soon(self.acknowledge)

    def acknowledge(self) -> None:
        with self.lock:
            owed, self.owed = self.owed, {}
            for peer, number in owed.items():
                self.acked[peer] = number
                self.send_bare(peer, Ack(number).key())

    # Timers of the channel.

    def set_timer(self, delay: int) -> None:
        """Call it under the lock, from any thread."""
        at = self.channel.now + delay
        if at < self.alarm_at:
            self.alarm_at = at
            if get_ident() == self.thread:
                self.set_alarm()
            else:
                self.loop.call_soon_threadsafe(self.set_alarm)

    def set_alarm(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm = self.loop.call_later(max(self.alarm_at - clock(), 0) / SECOND, self.ring)

    def ring(self) -> None:
        with self.lock:
            now = self.channel.now = clock()
            timers = self.channel.timers or {}
            self.alarm_at = 0  # so that none of them sets it
            for name in [name for name, at in timers.items() if at <= now]:
                self.channel.timer_due(name)
                self.check_progress(int(name.removeprefix(TIMER)))
            self.alarm_at = min(timers.values(), default=NEVER)
            if timers:
                self.set_alarm()

    def check_progress(self, peer: int) -> None:
        """Drops a connection that delivers nothing. TCP would wait longer and longer before it tries again, even if the
        network is back. If the peer does not answer then, that is noticed (reach.py)."""
        link, connection = self.channel.links[peer], self.transport.up.get(peer)
        without_ack = link.delay - self.channel.channel_resend  # the delay doubles with every attempt
        if 0 < self.patience <= without_ack and connection is not None:
            self.loop.call_soon(connection.drop, "it acknowledges nothing")


class DirectLinks(ReliableLinks):
    """Links over Unix sockets: the messages of gates bypass the channel, which would double their number.

    So users' threads can send and read them (net/reader.py). They are lost if a connection breaks, which the kernel
    never does by itself: one side has dropped it, because Ctrl-C interrupted a reading thread, for example.
    """

    loses_nothing = False

    def send(self, peer: int, frame: Frame) -> None:
        if frame[0] == MESSAGE:
            self.send_bare(peer, frame)
        else:
            ReliableLinks.send(self, peer, frame)

    def keep(self, peer: int, frame: Frame) -> None:
        if frame[0] == MESSAGE:
            Links.keep(self, peer, frame)

    def on_up(self, peer: int) -> None:
        super().on_up(peer)
        self.send_waiting(peer)


class ChannelOutbox(Outbox):
    def __init__(self, links: ReliableLinks) -> None:
        self.links = links

    def send(self, dst: int, msg: Message) -> None:
        if isinstance(msg, Ack):
            self.links.owe(dst, msg.number)
        else:
            self.links.send_bare(dst, msg.key())

    def set_timer(self, name: str, delay: int) -> None:
        self.links.set_timer(delay)

    def cancel_timer(self, name: str) -> None:
        """A no-op: what is no longer armed is not due when the alarm rings."""
