"""The model of a property "in finite time", other than that every request is granted.

A property of this kind says of each node that something about it does not last forever: it waits in a queue, or its
request is on the way. So the checker's whole search for nodes that wait forever applies, with "waits" replaced by that
something: in states from which nothing moves on, in states that can never be left, and in fair cycles.
"""

from collections.abc import Callable

from fairgate.check.case import Case
from fairgate.check.model import Model, State
from fairgate.core.message import Message, decode
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node

Flight = list[tuple[int, int, Message]]  # source, destination, message
Pending = Callable[[list[Node], Flight], set[int]]  # the nodes to which something still has to happen


class Eventually(Model):
    def __init__(self, case: Case, pending: Pending, protocol: type[Mutex] | None = None) -> None:
        super().__init__(case, protocol)
        self.pending = pending
        self.masks: dict[State, int] = {}  # of the nodes and messages of a state

    def waiting(self, state: State) -> int:
        nodes, flight = state[: self.n], state[self.at_flight :]
        mask = self.masks.get((*nodes, *flight))
        if mask is None:
            messages = [(src, dst, decode(fields)) for src, dst, fields in (self.things[one] for one in flight)]
            found = self.pending([self.node_of(number) for number in nodes], messages)
            mask = self.masks[*nodes, *flight] = sum(1 << me for me in found)
        return mask

    def node_of(self, number: int) -> Node:
        _, node, out = self.steps.loaded(number)
        out.drain()
        return node
