"""Layers: a protocol above an overlay above a channel is one composite node.

A `Layer` is a node that carries another node, its `upper`. The upper node speaks to its outbox, which
is the layer's `door`: messages go down through `send_down`, the rest straight on. What comes for the
upper node goes up by a plain call on `lift()`. All of it happens inside one atomic step of the
composite. Messages nest (a layer's message carries the upper one), keys nest (a layer's key ends with
the upper key), and a timer of the upper node carries its way up in its name: "upper/retry".

A layer that offers more than sending (an overlay: `route(msg)`, core/kbr.py) gives its upper node a door with
those calls; what it asks of its upper node (`forward`, `deliver`) are methods of
the kind of node that it carries.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

MakeNode = Callable[[int, Setup, Outbox], Node]

UP = "upper/"


class Layer(Node):
    """Owns `upper`, drives it as a driver would, and is driven as one node itself."""

    timed = True  # the upper node may be, and a layer passes its time on

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        Node.__init__(self, me, setup, out)
        self.upper = upper(me, setup, self.door())

    # What a layer writes, besides `on_message`.

    def door(self) -> Outbox:
        """The outbox of the upper node. What it holds back or adds is the layer's choice."""
        return Down(self)

    def send_down(self, dst: int, msg: Message) -> None:
        raise NotImplementedError

    def on_layer_timer(self, name: str) -> None:
        pass

    def layer_key(self) -> Key:
        raise NotImplementedError

    def load_layer(self, key: Key) -> None:
        raise NotImplementedError

    def finish_step(self) -> None:
        """After every input: what the layer put off until the upper node's handler was over."""

    # The upper node's inputs pass through.

    def lift(self) -> Node:
        """The upper node, with its clock set: how every input goes up."""
        self.upper.now = self.now
        return self.upper

    def on_start(self) -> None:
        self.lift().on_start()
        self.finish_step()

    def on_acquire(self, request: int) -> None:
        self.lift().on_acquire(request)
        self.finish_step()

    def on_release(self, request: int) -> None:
        self.lift().on_release(request)
        self.finish_step()

    def on_cancel(self, request: int) -> None:
        self.lift().on_cancel(request)
        self.finish_step()

    def on_view(self, number: int, members: tuple[int, ...]) -> None:
        self.lift().on_view(number, members)
        self.finish_step()

    def on_suspect(self, peer: int, detector: str) -> None:
        self.lift().on_suspect(peer, detector)
        self.finish_step()

    def on_trust(self, peer: int, detector: str) -> None:
        self.lift().on_trust(peer, detector)
        self.finish_step()

    def on_crash(self, peer: int) -> None:
        self.lift().on_crash(peer)
        self.finish_step()

    def on_join(self, contact: int) -> None:
        self.lift().on_join(contact)
        self.finish_step()

    def on_leave(self) -> None:
        self.lift().on_leave()
        self.finish_step()

    def on_timer(self, name: str) -> None:
        if name.startswith(UP):
            self.lift().timer_due(name.removeprefix(UP))
        else:
            self.on_layer_timer(name)
        self.finish_step()

    # Keys nest. The timers of each part stand in its own key, under their short names.

    def key(self) -> Key:
        return (self.version, self.layer_key(), self.timers_key(), self.lift().key())

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, mine, timers, upper = key
        self.load_layer(tuple(mine))
        self.load_timers(tuple(timers))
        self.lift().load(tuple(upper))

    # What the upper node itself has: a layer that keeps messages of its own cannot say whether they count.

    def tokens(self) -> int:
        return self.upper.tokens()

    def coordinators(self) -> int:
        return self.upper.coordinators()

    def show(self) -> dict[str, Any]:
        return self.upper.show()


class Through(Outbox):
    """The outbox of a node within another one: all goes on through its owner's outbox, timers under a longer name."""

    def __init__(self, owner: Node, prefix: str) -> None:
        self.owner = owner
        self.prefix = prefix

    def send(self, dst: int, msg: Message) -> None:
        self.owner.out.send(dst, msg)

    def set_timer(self, name: str, delay: int) -> None:
        self.owner.out.set_timer(self.prefix + name, delay)

    def cancel_timer(self, name: str) -> None:
        self.owner.out.cancel_timer(self.prefix + name)

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.owner.out.granted(request, slot, fence)

    def lost(self, request: int, why: str) -> None:
        self.owner.out.lost(request, why)

    def note(self, mark: str) -> None:
        self.owner.out.note(mark)

    def choose(self, n: int) -> int:
        return self.owner.out.choose(n)


class Down(Through):
    """The outbox of what a layer carries: messages go through the layer."""

    def __init__(self, layer: Layer) -> None:
        Through.__init__(self, layer, UP)
        self.layer = layer

    def send(self, dst: int, msg: Message) -> None:
        self.layer.send_down(dst, msg)


def over(layer: Callable[..., Node], upper: MakeNode) -> MakeNode:
    """How to make `upper` over `layer`: itself a MakeNode, so stacks are built from the top down."""
    return partial(layer, upper=upper)
