"""The reliable channel that the papers assume: each message is delivered exactly once, and in order.

Theory of operation. Messages to a peer are numbered, and each is kept until it is acknowledged. While any message to a
peer is unacknowledged, a timer for that peer runs; when it fires, all of them are sent again. The delay doubles each
time, up to a cap, and is reset when an acknowledgement makes progress. The receiver delivers messages in the order of
their numbers and stores those that arrive early. It answers every message, old or new, with the number of the last one
delivered. An `Ack` is cumulative, so a later one makes up for one that was lost.

Memory is bounded. Only the first `WINDOW` unacknowledged messages are on their way at any time, and a receiver stores
none beyond that. How many wait behind them is limited by the driver, which stops sending to a peer that `is_full`.

An acknowledgement is an effect of the step that delivered the message. A driver that withholds a step's effects until
the step is backed up withholds the acknowledgement with them; until then the sender keeps the message.

Ids are fresh at every start: a restarted peer is another identity, and its channels start at number 1 on both sides. So
the numbers need no incarnation.
"""

from fairgate.core.declare import Option, message, node, record
from fairgate.core.layers import Layer
from fairgate.core.message import Message

RESEND = 200_000_000  # default of the option `channel_resend`: ns until the first resend
CAP = 16  # the longest delay, as a multiple of the first
TIMER = "resend:"
WINDOW = 1024  # messages on their way to one peer
MOST = 1 << 16  # unacknowledged messages to one peer


@message("ch.data")
class Data(Message):
    """Message number `number` from the sender to the receiver, with its content.

    It counts no tokens, whatever its content: it is only a copy of a message that the sender keeps until it is
    acknowledged, and that the receiver may already have delivered.
    """

    number: int
    inner: Message


@message("ch.ack")
class Ack(Message):
    """The sender has delivered all messages from the receiver up to this number."""

    number: int


@record
class Link:
    """One end of the channel to one peer."""

    delay: int  # until the next resend
    sent: int = 0  # number of the last message sent
    unacknowledged: dict[int, Message] = {}  # by number, in ascending order
    taken: int = 0  # every message up to this number was delivered
    early: dict[int, Message] = {}  # arrived out of order, by number


@node
class Channel(Layer):
    """A layer that carries a node over a network that loses, duplicates and reorders messages.

    Tokens cannot be counted node by node under a channel: a token in an unacknowledged message may also have been
    delivered. A census needs both ends: an unacknowledged message counts only if its number is higher than the last
    one that the receiver has delivered (`untaken`).
    """

    channel_resend: Option[int] = RESEND
    links: dict[int, Link] = {}

    def link(self, peer: int) -> Link:
        link = self.links.get(peer)
        if link is None:
            link = self.links[peer] = Link(self.channel_resend)
        return link

    def send_down(self, dst: int, msg: Message) -> None:
        link = self.link(dst)
        link.sent += 1
        link.unacknowledged[link.sent] = msg
        if len(link.unacknowledged) <= WINDOW:
            self.out.send(dst, Data(link.sent, msg))
        if len(link.unacknowledged) == 1:
            self.set_timer(f"{TIMER}{dst}", link.delay)

    def on_data(self, src: int, m: Data) -> None:
        link = self.link(src)
        if m.number <= link.taken:
            self.out.note("a message came again")
        elif m.number <= link.taken + WINDOW:  # correct senders send none beyond it
            link.early[m.number] = m.inner
        while link.taken + 1 in link.early:
            link.taken += 1
            self.lift().on_message(src, link.early.pop(link.taken))
        self.out.send(src, Ack(link.taken))

    def on_ack(self, src: int, m: Ack) -> None:
        link = self.link(src)
        news = [number for number in link.unacknowledged if number <= m.number]
        if not news:
            return
        for number in news:
            del link.unacknowledged[number]
        self.send_from(src, link, len(news))
        link.delay = self.channel_resend
        if link.unacknowledged:
            self.set_timer(f"{TIMER}{src}", link.delay)
        else:
            self.cancel_timer(f"{TIMER}{src}")

    def send_from(self, peer: int, link: Link, count: int) -> None:
        """The window has moved on by so many messages: send those that have come into it."""
        first: int = link.sent - len(link.unacknowledged) + 1
        number: int
        for number in range(max(first, first + WINDOW - count), min(first + WINDOW, link.sent + 1)):
            self.out.send(peer, Data(number, link.unacknowledged[number]))

    def is_full(self, peer: int) -> bool:
        """Has the peer left so many messages unacknowledged that it must be taken for dead?"""
        link = self.links.get(peer)
        return link is not None and len(link.unacknowledged) >= MOST

    def on_layer_timer(self, name: str) -> None:
        peer = int(name.removeprefix(TIMER))
        link = self.link(peer)
        first: int = link.sent - len(link.unacknowledged) + 1
        number: int
        for number in range(first, min(first + WINDOW, link.sent + 1)):
            self.out.send(peer, Data(number, link.unacknowledged[number]))
        link.delay = min(2 * link.delay, CAP * self.channel_resend)
        self.set_timer(name, link.delay)

    def on_crash(self, peer: int) -> None:
        """Drop messages to the dead peer. Remember what it has sent, because late copies may still arrive."""
        link = self.links.get(peer)
        if link is not None:
            link.unacknowledged.clear()
            link.delay = self.channel_resend
            self.cancel_timer(f"{TIMER}{peer}")
        self.lift().on_crash(peer)

    def untaken(self, peer: int, taken: int) -> list[Message]:
        """Messages to the peer that it has not delivered, given the number of the last one it did. For a census."""
        return [msg for number, msg in self.links[peer].unacknowledged.items() if number > taken]
