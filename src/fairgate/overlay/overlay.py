"""The base of all overlays: a layer that routes Keyed messages and passes all others to its rider.

A subclass provides `next_hop`, the routing rule, and maintains its tables. Messages that a node routes or sends to
itself wait in `local` until the current handler has finished, and are handled within the same step. So a handler never
runs inside another handler of the same node, and `local` is always empty when the state's key is taken.
"""

from fairgate.core.ids import NIL
from fairgate.core.kbr import Door, Rider
from fairgate.core.keyed import Keyed
from fairgate.core.layers import UP, Layer, MakeNode
from fairgate.core.message import Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.messages import Found, Lookup, Upkeep

MOST_HOPS = 1_000  # after which a lookup is dropped: inconsistent tables may send it in circles


class Overlay(Layer):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.local: list[Message] | None = None  # None rather than empty, which would be a list to fetch from memory
        Layer.__init__(self, me, setup, out, upper)
        assert isinstance(self.upper, Rider), "an overlay carries riders: put gates between it and a protocol"
        self.rider = self.upper
        self.asks: bool = self.rider.intercepts

    def door(self) -> Outbox:
        return OverlayDoor(self)

    # What a subclass provides.

    def next_hop(self, key: int) -> int:
        """The next node on the route to this key; NIL if this node is the owner."""
        raise NotImplementedError

    def neighbours(self, count: int) -> tuple[int, ...]:
        """Up to `count` nodes that come next: they own this node's keys if it fails."""
        raise NotImplementedError

    def serves(self, key: int) -> bool:
        """May this node serve the key?"""
        return self.next_hop(key) == NIL

    def own_range(self) -> tuple[int, int]:
        """The range of keys that this node owns: (start, end]."""
        raise NotImplementedError

    def zone(self) -> tuple[int, ...]:
        """The keys around its own place that this node serves: (start, end], or nothing."""
        return self.own_range()

    def names_for(self, m: Lookup) -> tuple[int, ...]:
        """The nodes to name in the answer to a lookup."""
        return ()

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        """Tell the rider the view and its range of keys: the members of the settled ring have changed."""
        self.rider.now = self.now
        start, end = self.own_range()
        self.rider.on_range(start, end)
        self.rider.on_view(number, members, ghosts)
        self.finish_step()

    # Routing.

    def on_message(self, src: int, msg: Message) -> None:
        self.take(src, msg)
        if self.local is not None:
            self.finish_step()

    def take(self, src: int, msg: Message) -> None:
        if isinstance(msg, Keyed):
            self.arrive(src, msg)
            return
        self.rider.now = self.now
        if isinstance(msg, Upkeep):
            self.on_upkeep(src, msg)
        else:
            self.rider.on_message(src, msg)

    def arrive(self, src: int, msg: Keyed) -> None:
        """Handle a message at one hop: deliver it if this node is the owner, else forward what the rider lets pass."""
        next_hop = self.next_hop(msg.target)
        onward: Keyed | None = msg
        if next_hop == NIL:
            self.rider.now = self.now
            self.rider.deliver(src, msg)
            return
        if self.asks:  # otherwise leave the rider alone, which would have to be fetched from memory
            self.rider.now = self.now
            onward = self.rider.forward(src, msg, next_hop)
        if onward is None:
            return
        if src == self.me:
            self.out.send(next_hop, onward)
        else:
            self.out.pass_on(next_hop, onward)

    # Lookups.

    def lookup(self, key: int) -> None:
        """Look up the owner of a key for the rider."""
        self.later(Lookup(key, self.me, False, 0))

    def on_upkeep(self, src: int, msg: Upkeep) -> None:
        if isinstance(msg, Lookup):
            self.on_lookup(src, msg)
        elif isinstance(msg, Found):
            self.on_found(src, msg)

    def on_lookup(self, src: int, m: Lookup) -> None:
        next_hop = self.next_hop(m.target)
        if next_hop == NIL:
            self.send_down(m.asker, Found(m.target, m.upkeep, m.hops, self.names_for(m)))
        elif m.hops < MOST_HOPS:
            onward = Lookup(m.target, m.asker, m.upkeep, m.hops + 1)
            if src == self.me:
                self.out.send(next_hop, onward)
            else:
                self.out.pass_on(next_hop, onward)

    def on_found(self, src: int, m: Found) -> None:
        self.rider.on_found(m.target, src)

    # Messages from a node to itself.

    def send_down(self, dst: int, msg: Message) -> None:
        if dst == self.me:
            self.later(msg)
        else:
            self.out.send(dst, msg)

    def later(self, msg: Message) -> None:
        if self.local is None:
            self.local = [msg]
        else:
            self.local.append(msg)

    def finish_step(self) -> None:
        while self.local is not None:
            waiting = self.local
            self.local = None
            for msg in waiting:
                self.take(self.me, msg)


class OverlayDoor(Door):
    def __init__(self, overlay: Overlay) -> None:
        Door.__init__(self, overlay, UP)
        self.overlay = overlay

    def send(self, dst: int, msg: Message) -> None:
        self.overlay.send_down(dst, msg)

    def route(self, msg: Keyed) -> None:
        self.overlay.later(msg)

    def lookup(self, key: int) -> None:
        self.overlay.lookup(key)

    def next_hop(self, key: int) -> int:
        return self.overlay.next_hop(key)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return self.overlay.neighbours(count)

    def serves(self, key: int) -> bool:
        return self.overlay.serves(key)

    def zone(self) -> tuple[int, ...]:
        return self.overlay.zone()
