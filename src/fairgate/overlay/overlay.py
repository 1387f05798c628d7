"""What every overlay shares: a layer that routes Keyed messages and leaves the rest to what it carries.

An overlay writes `next_hop`, the rule of routing, and what keeps its tables. What this node routes or sends to
itself waits in `local` until the handler that said so is over, and is taken within the same step: no handler is ever
entered while another one of the same node runs, and a key never holds anything of `local`.
"""

from fairgate.core.ids import NIL
from fairgate.core.kbr import Door, Keyed, Rider
from fairgate.core.layers import UP, Layer, MakeNode
from fairgate.core.message import Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup


class Upkeep(Message):
    """A message of the overlay itself: about tables, not about gates."""

    __slots__ = ()


class Overlay(Layer):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.local: list[Message] = []
        Layer.__init__(self, me, setup, out, upper)
        assert isinstance(self.upper, Rider), "an overlay carries riders: put gates between it and a protocol"
        self.rider = self.upper

    def door(self) -> Outbox:
        return OverlayDoor(self)

    # What an overlay writes.

    def next_hop(self, key: int) -> int:
        """Where a message to this key goes from here; NIL: this node is the owner."""
        raise NotImplementedError

    def neighbours(self, count: int) -> tuple[int, ...]:
        """Up to so many nodes that come next: they own this node's keys if it fails."""
        raise NotImplementedError

    def own_range(self) -> tuple[int, int]:
        """This node owns the keys in (start, end]."""
        raise NotImplementedError

    def on_upkeep(self, src: int, msg: Upkeep) -> None:
        raise NotImplementedError

    def on_view(self, number: int, members: tuple[int, ...]) -> None:
        """The members of a settled ring are others now."""
        self.rider.now = self.now
        start, end = self.own_range()
        self.rider.on_range(start, end)
        self.settle()

    # Routing.

    def on_message(self, src: int, msg: Message) -> None:
        self.take(src, msg)
        if self.local:
            self.settle()

    def take(self, src: int, msg: Message) -> None:
        self.rider.now = self.now
        if isinstance(msg, Keyed):
            self.arrive(src, msg)
        elif isinstance(msg, Upkeep):
            self.on_upkeep(src, msg)
        else:
            self.rider.on_message(src, msg)

    def arrive(self, src: int, msg: Keyed) -> None:
        """One hop done: deliver it, or ask the rider and pass on what it leaves."""
        next_hop = self.next_hop(msg.target)
        if next_hop == NIL:
            self.rider.deliver(src, msg)
            return
        onward = self.rider.forward(src, msg, next_hop)
        if onward is None:
            return
        if src == self.me:
            self.out.send(next_hop, onward)
        else:
            self.out.pass_on(next_hop, onward)

    def send_down(self, dst: int, msg: Message) -> None:
        if dst == self.me:
            self.local.append(msg)
        else:
            self.out.send(dst, msg)

    def settle(self) -> None:
        while self.local:
            self.take(self.me, self.local.pop(0))


class OverlayDoor(Door):
    def __init__(self, overlay: Overlay) -> None:
        Door.__init__(self, overlay, UP)
        self.overlay = overlay

    def send(self, dst: int, msg: Message) -> None:
        self.overlay.send_down(dst, msg)

    def route(self, msg: Keyed) -> None:
        self.overlay.local.append(msg)

    def next_hop(self, key: int) -> int:
        return self.overlay.next_hop(key)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return self.overlay.neighbours(count)
