"""A layer between a channel and a protocol that checks the channel's promise."""

from __future__ import annotations

from fairgate.core.layers import Layer, MakeNode, over
from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.channel import Channel
from fairgate.scenario.manual import Violation
from fairgate.walks.stacks import Stack


class Witnessed(Message):
    """A message with its number in the order in which its sender sent them to the same node."""

    __slots__ = ("inner", "number")
    tag = "test.witnessed"

    def __init__(self, number: int, inner: Message) -> None:
        self.number = number
        self.inner = inner

    def key(self) -> Key:
        return (self.tag, self.number, self.inner.key())

    def tokens(self) -> int:
        return self.inner.tokens()

    def coordinators(self) -> int:
        return self.inner.coordinators()


class Witness(Layer):
    """Between a channel and a protocol: checks that each message arrives once and in order."""

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        Layer.__init__(self, me, setup, out, upper)
        self.sent: dict[int, int] = {}
        self.came: dict[int, int] = {}

    def send_down(self, dst: int, msg: Message) -> None:
        self.sent[dst] = self.sent.get(dst, 0) + 1
        self.out.send(dst, Witnessed(self.sent[dst], msg))

    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Witnessed)
        expected = self.came.get(src, 0) + 1
        if msg.number != expected:
            raise Violation(f"order: node {self.me} got message {msg.number} from {src} instead of {expected}")
        self.came[src] = expected
        self.lift().on_message(src, msg.inner)


def witnessed(protocol: Stack, channel: type[Layer] = Channel) -> Stack:
    """Three layers: the channel, the witness, the protocol."""
    return Stack(f"{protocol.name} witnessed", over(channel, over(Witness, protocol.make)), protocol.about)
