"""The leader's part of a census: it plays a whole gate by itself until that is in the situation which was reported.

Every member gets a fresh node. First those inside request, and get their slots. Then those waiting request, longest
waiting first. Every message is delivered until none is left. The result is a state that the protocol could have reached
by itself.
"""

from collections import deque

from fairgate.core.ids import NIL
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup

PLACE = 0  # number of a placeholder request, which exists only in this simulation


def epoch_setup(setup: Setup, epoch: int, members: tuple[int, ...], permits: int) -> Setup:
    """The setup of this epoch. Its fences are higher than those of all earlier epochs."""
    if epoch <= 0:
        return setup
    return Setup(members, permits, members[0], setup.epoch + epoch, setup.options)


class Game:
    """A simulation of a whole gate, run until no message is in flight."""

    def __init__(self, make: MakeNode, setup: Setup, requests: dict[int, int]) -> None:
        self.members = setup.members
        self.requests = requests  # of members inside or waiting
        self.outboxes = {member: Collected(first) for member in self.members}
        self.nodes: dict[int, Node] = {member: make(member, setup, self.outboxes[member]) for member in self.members}
        self.flight: deque[tuple[int, int, Message]] = deque()
        self.grants: dict[int, tuple[int, int]] = {}  # member -> slot and fence
        self.latest = 0  # the highest logical time of any node

    def play(self, inside: dict[int, int], waiting: list[int]) -> None:
        """`inside`: member -> its place among the members, if the protocol has slots, or NIL."""
        for member in self.members:
            self.nodes[member].on_start()
            self.collect(member)
        last = max(inside.values(), default=NIL)
        places = [member for member in self.members[: last + 1] if member not in inside]
        for member in self.members[: last + 1]:
            self.take_place(member, inside.get(member, NIL), self.requests[member] if member in inside else PLACE)
        for member, place in inside.items():
            if place == NIL:
                self.take_place(member, NIL, self.requests[member])
        for member in places:
            self.do(member, "on_release", PLACE)
        for member in waiting:
            self.synchronise(member)
            self.do(member, "on_acquire", self.requests[member])

    def take_place(self, member: int, place: int, request: int) -> None:
        """Let the member enter. Slots are granted in order, so a free slot below an occupied one gets a placeholder,
        which `play` releases afterwards."""
        self.do(member, "on_acquire", request)
        slot, _ = self.grants.pop(member, (NIL, NIL))
        assert place in (NIL, slot), f"{member} is in slot {place}, but was given {slot}"

    def synchronise(self, member: int) -> None:
        """Tell the member the latest logical time, so that its request is later than all before it."""
        node = self.nodes[member]
        if isinstance(node, Mutex):
            node.hear_time(self.latest)

    def do(self, member: int, call: str, request: int) -> None:
        getattr(self.nodes[member], call)(request)
        self.collect(member)
        while self.flight:
            src, dst, msg = self.flight.popleft()
            self.nodes[dst].on_message(src, msg)
            self.collect(dst)

    def collect(self, member: int) -> None:
        for effect in self.outboxes[member].drain():
            if effect[0] == "send":
                self.flight.append((member, effect[1], effect[2]))
            elif effect[0] == "granted":
                self.grants[member] = (effect[2], effect[3])
        node = self.nodes[member]
        if isinstance(node, Mutex):
            self.latest = max(self.latest, node.logical_time())


def first(n: int) -> int:
    """A chooser for the simulation, where any choice will do."""
    return 0
