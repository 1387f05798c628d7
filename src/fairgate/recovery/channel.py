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

from fairgate.core.declare import Option, message, node, record
from fairgate.core.layers import Layer
from fairgate.core.message import Message

RESEND = 200_000_000  # ns until the first resend: the option `channel_resend`
CAP = 16  # times the first delay
TIMER = "resend:"


@message("ch.data")
class Data(Message):
    """Message number `number` from you to me, and what it says.

    It counts no tokens, whatever it carries: it is one of many copies of a message that its sender
    keeps until it is acknowledged, and that the receiver may have taken long before.
    """

    number: int
    inner: Message


@message("ch.ack")
class Ack(Message):
    """I have taken everything from you up to this number."""

    number: int


@record
class Link:
    """One end of the channel to one peer."""

    delay: int  # of the next resend
    sent: int = 0  # number of the last message sent
    unacknowledged: dict[int, Message] = {}  # by number, and in that order
    taken: int = 0  # every number up to this one was taken
    early: dict[int, Message] = {}  # came before their turn


@node
class Channel(Layer):
    """Carries one node over a network that loses, duplicates and reorders.

    Tokens cannot be counted node by node under a channel: one that is unacknowledged at its sender may
    have been taken as well. A census needs both ends: a kept message counts while its number is past
    what the receiver has taken (`untaken`).
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
        self.out.send(dst, Data(link.sent, msg))
        if len(link.unacknowledged) == 1:
            self.set_timer(f"{TIMER}{dst}", link.delay)

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
        link.delay = self.channel_resend
        if link.unacknowledged:
            self.set_timer(f"{TIMER}{src}", link.delay)
        else:
            self.cancel_timer(f"{TIMER}{src}")

    def on_layer_timer(self, name: str) -> None:
        peer = int(name.removeprefix(TIMER))
        link = self.link(peer)
        for number, msg in link.unacknowledged.items():
            self.out.send(peer, Data(number, msg))
        link.delay = min(2 * link.delay, CAP * self.channel_resend)
        self.set_timer(name, link.delay)

    def on_crash(self, peer: int) -> None:
        """What waits for a dead peer is dropped. What was taken is not forgotten: a copy may still come."""
        link = self.link(peer)
        link.unacknowledged.clear()
        link.delay = self.channel_resend
        self.cancel_timer(f"{TIMER}{peer}")
        self.lift().on_crash(peer)

    def untaken(self, peer: int, taken: int) -> list[Message]:
        """What is still this side's, given the last number that the peer took: for a census."""
        return [msg for number, msg in self.links[peer].unacknowledged.items() if number > taken]
