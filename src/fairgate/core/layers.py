"""Layers: a stack of nodes, such as a protocol above an overlay above a channel, that is driven as one node.

A `Layer` is a node that carries another node, its `upper`. The upper node's outbox is the layer's `door`. Messages
sent through it go down by `send_down`; all other effects pass straight through. Inputs for the upper node go up by
plain method calls on `lift()`. All of this happens within one atomic step of the composite node.

Messages nest: a layer's message contains the upper node's message. Keys nest: a layer's key ends with the upper node's
key. A timer of the upper node has a prefix in its name for each layer below it: "upper/retry".

A layer that offers more than sending, such as an overlay with `route(msg)` (core/kbr.py), gives its upper node a door
with additional methods. What it calls on the upper node (`forward`, `deliver`) is declared by that node's base class.
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
    """A node that owns and drives another node, `upper`."""

    timed = True  # because the upper node may be: the layer passes its clock on

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        Node.__init__(self, me, setup, out)
        self.upper = upper(me, setup, self.door())

    # What a layer implements, in addition to `on_message`.

    def door(self) -> Outbox:
        """Create the outbox of the upper node. A layer may override this to withhold or add effects."""
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
        """Called after every input, for work that had to wait until the upper node's handler returned."""

    # Inputs are passed up.

    def lift(self) -> Node:
        """Set the upper node's clock and return the node. Every input to the upper node goes through here."""
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

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        self.lift().on_view(number, members, ghosts)
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

    # Keys nest. Each node's timers are in its own part of the key, without the prefix.

    def key(self) -> Key:
        return (self.version, self.layer_key(), self.timers_key(), self.lift().key())

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, mine, timers, upper = key
        self.load_layer(tuple(mine))
        self.load_timers(tuple(timers))
        self.lift().load(tuple(upper))

    # Counts for the invariants. They cover the upper node only: a layer that stores messages cannot know whether the
    # tokens in them have arrived elsewhere.

    def slots(self) -> tuple[int, ...]:
        return self.upper.slots()

    def tokens(self) -> int:
        return self.upper.tokens()

    def coordinators(self) -> int:
        return self.upper.coordinators()

    def show(self) -> dict[str, Any]:
        return self.upper.show()


class Through(Outbox):
    """The outbox of a node inside another node: it forwards all effects to the owner's outbox, and prefixes timers."""

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
    """The outbox of a layer's upper node: messages go through the layer."""

    def __init__(self, layer: Layer) -> None:
        Through.__init__(self, layer, UP)
        self.layer = layer

    def send(self, dst: int, msg: Message) -> None:
        self.layer.send_down(dst, msg)


def over(layer: Callable[..., Node], upper: MakeNode) -> MakeNode:
    """A function that creates `upper` on top of `layer`. The result is a MakeNode, so a stack is built top down."""
    return partial(layer, upper=upper)
