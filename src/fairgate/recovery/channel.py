"""The papers' reliable channel: between two identities each message is taken once, and in order.

Theory of operation. Every message to a peer gets the next number and is kept until it is
acknowledged; while anything to a peer is unacknowledged, one timer for that peer runs, and sends all
of it again. The delay doubles from time to time until a cap, and starts afresh when an acknowledgement
brings news. The receiver takes numbers one by one, keeps those that come early, and answers every
message, old or new, with the last number that it took: an `Ack` covers all before it, so the next one
makes up for one that was lost.

An acknowledgement is an output of the step that took the message. Whoever holds a step's outputs back
until the step is safe (backups) holds the acknowledgement back with them; until then the message is
still the sender's.

Ids are fresh at every start: a restarted peer is another identity, and its channels begin with number
1 on both sides. So numbers need no incarnation.
"""

from typing import Any

from fairgate.core.layers import Layer, MakeNode
from fairgate.core.message import Key, Message, decode, register
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

RESEND = 200_000_000  # ns until the first resend: the option `channel_resend`
CAP = 16  # times the first delay
TIMER = "resend:"


class Data(Message):
    """Message number `number` from you to me, and what it says.

    It counts no tokens, whatever it carries: it is one of many copies of a message that its sender
    keeps until it is acknowledged, and that the receiver may have taken long before.
    """

    __slots__ = ("inner", "number")
    tag = "ch.data"

    def __init__(self, number: int, inner: Message) -> None:
        self.number = number
        self.inner = inner

    def key(self) -> Key:
        return (self.tag, self.number, self.inner.key())

    @classmethod
    def from_fields(cls, *fields: Any) -> "Data":
        number, inner = fields
        return cls(number, decode(tuple(inner)))


class Ack(Message):
    """I have taken everything from you up to this number."""

    __slots__ = ("number",)
    tag = "ch.ack"

    def __init__(self, number: int) -> None:
        self.number = number

    def key(self) -> Key:
        return (self.tag, self.number)


register(Data, Ack)


class Link:
    """One end of the channel to one peer."""

    __slots__ = ("delay", "early", "sent", "taken", "unacknowledged")

    def __init__(self, delay: int) -> None:
        self.sent = 0  # number of the last message sent
        self.unacknowledged: dict[int, Message] = {}  # by number, and in that order
        self.delay = delay  # of the next resend
        self.taken = 0  # every number up to this one was taken
        self.early: dict[int, Message] = {}  # came before their turn

    def key(self) -> Key:
        return (self.sent, messages_key(self.unacknowledged), self.delay, self.taken, messages_key(self.early))

    def load(self, key: Key) -> None:
        self.sent, unacknowledged, self.delay, self.taken, early = key
        self.unacknowledged = load_messages(unacknowledged)
        self.early = load_messages(early)


class Channel(Layer):
    """Carries one node over a network that loses, duplicates and reorders.

    Tokens cannot be counted node by node under a channel: one that is unacknowledged at its sender may
    have been taken as well. A census needs both ends: a kept message counts while its number is past
    what the receiver has taken (`untaken`).
    """

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        Layer.__init__(self, me, setup, out, upper)
        self.resend: int = setup.options.get("channel_resend", RESEND)
        self.links: dict[int, Link] = {}

    def link(self, peer: int) -> Link:
        link = self.links.get(peer)
        if link is None:
            link = self.links[peer] = Link(self.resend)
        return link

    def send_down(self, dst: int, msg: Message) -> None:
        link = self.link(dst)
        link.sent += 1
        link.unacknowledged[link.sent] = msg
        self.out.send(dst, Data(link.sent, msg))
        if len(link.unacknowledged) == 1:
            self.set_timer(f"{TIMER}{dst}", link.delay)

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Data):
            self.on_data(src, msg)
        elif isinstance(msg, Ack):
            self.on_ack(src, msg)

    def on_data(self, src: int, m: Data) -> None:
        link = self.link(src)
        if m.number > link.taken:
            link.early[m.number] = m.inner
        else:
            self.out.note("a message came again")
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
        link.delay = self.resend
        if link.unacknowledged:
            self.set_timer(f"{TIMER}{src}", link.delay)
        else:
            self.cancel_timer(f"{TIMER}{src}")

    def on_layer_timer(self, name: str) -> None:
        peer = int(name.removeprefix(TIMER))
        link = self.link(peer)
        for number, msg in link.unacknowledged.items():
            self.out.send(peer, Data(number, msg))
        link.delay = min(2 * link.delay, CAP * self.resend)
        self.set_timer(name, link.delay)

    def on_crash(self, peer: int) -> None:
        """What waits for a dead peer is dropped. What was taken is not forgotten: a copy may still come."""
        link = self.link(peer)
        link.unacknowledged.clear()
        link.delay = self.resend
        self.cancel_timer(f"{TIMER}{peer}")
        self.lift().on_crash(peer)

    def untaken(self, peer: int, taken: int) -> list[Message]:
        """What is still this side's, given the last number that the peer took: for a census."""
        return [msg for number, msg in self.links[peer].unacknowledged.items() if number > taken]

    def layer_key(self) -> Key:
        return tuple([(peer, *link.key()) for peer, link in sorted(self.links.items())])

    def load_layer(self, key: Key) -> None:
        for peer, *link in key:
            self.link(peer).load(tuple(link))


def messages_key(messages: dict[int, Message]) -> Key:
    return tuple([(number, msg.key()) for number, msg in sorted(messages.items())])


def load_messages(key: Key) -> dict[int, Message]:
    return {number: decode(tuple(msg)) for number, msg in key}
