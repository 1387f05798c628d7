"""Layers: a protocol above an overlay above a channel is one composite node.

A `Layer` is a node that carries another node. What the upper node sends goes down through
`Layer.send_down`, what comes for it goes up by a plain call, all inside one atomic step of the
composite. Messages nest (a layer's message carries the upper one), keys nest (a layer's key ends with
the upper key), and a timer of the upper node carries its layer's name: "upper/retry".
"""

from typing import Any

from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

UP = "upper/"


class Layer(Node):
    """Owns `upper`, drives it as a driver would, and is driven as one node itself."""

    timed = True  # the upper node may be, and a layer passes its time on

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Node.__init__(self, me, setup, out)
        self.upper = Node(me, setup, out)  # until `carry`

    def carry(self, upper: Node) -> None:
        """Put the upper node in place; its outbox becomes this layer."""
        upper.out = Down(self)
        self.upper = upper

    # What a layer writes.

    def send_down(self, dst: int, msg: Message) -> None:
        raise NotImplementedError

    def on_layer_timer(self, name: str) -> None:
        pass

    def layer_key(self) -> Key:
        raise NotImplementedError

    def load_layer(self, key: Key) -> None:
        raise NotImplementedError

    # The upper node's inputs pass through.

    def lift(self) -> Node:
        """The upper node, with its clock set: how every input goes up."""
        self.upper.now = self.now
        return self.upper

    def on_start(self) -> None:
        self.lift().on_start()

    def on_acquire(self, request: int) -> None:
        self.lift().on_acquire(request)

    def on_release(self, request: int) -> None:
        self.lift().on_release(request)

    def on_cancel(self, request: int) -> None:
        self.lift().on_cancel(request)

    def on_view(self, members: tuple[int, ...]) -> None:
        self.lift().on_view(members)

    def on_suspect(self, peer: int, detector: str) -> None:
        self.lift().on_suspect(peer, detector)

    def on_trust(self, peer: int, detector: str) -> None:
        self.lift().on_trust(peer, detector)

    def on_crash(self, peer: int) -> None:
        self.lift().on_crash(peer)

    def on_join(self, contact: int) -> None:
        self.lift().on_join(contact)

    def on_timer(self, name: str) -> None:
        if name.startswith(UP):
            self.lift().timer_due(name.removeprefix(UP))
        else:
            self.on_layer_timer(name)

    # Keys nest.

    def key(self) -> Key:
        return (self.version, self.layer_key(), self.timers_key(), self.lift().key())

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, mine, timers, upper = key
        self.load_layer(mine)
        self.load_timers(timers)
        self.lift().load(upper)

    def tokens(self) -> int:
        return self.upper.tokens()

    def coordinators(self) -> int:
        return self.upper.coordinators()

    def show(self) -> dict[str, Any]:
        return self.upper.show()


class Down(Outbox):
    """The outbox of a carried node: messages go through the layer, the rest straight on."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def send(self, dst: int, msg: Message) -> None:
        self.layer.send_down(dst, msg)

    def set_timer(self, name: str, delay: int) -> None:
        self.layer.out.set_timer(UP + name, delay)

    def cancel_timer(self, name: str) -> None:
        self.layer.out.cancel_timer(UP + name)

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.layer.out.granted(request, slot, fence)

    def lost(self, request: int, why: str) -> None:
        self.layer.out.lost(request, why)

    def note(self, mark: str) -> None:
        self.layer.out.note(mark)

    def choose(self, n: int) -> int:
        return self.layer.out.choose(n)
