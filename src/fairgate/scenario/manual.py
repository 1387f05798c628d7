"""A network in which the caller decides what happens next: for scenarios, paper tests and random walks.

Messages stay in `flight` until the caller delivers them, in any order. Timers wait until the caller fires them or
calls `advance`, which moves the clock. The properties are checked after every step; a breach raises `Violation`.
"""

from dataclasses import dataclass
from typing import Any

from fairgate.core.choose import Chooser
from fairgate.core.clock import TRUE, Clock, Clocks
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.properties import Occupancy
from fairgate.core.setup import Setup


class Violation(AssertionError):
    """A property was violated. The text begins with its name, such as k, slot, fence, tokens, coordinator, liveness."""


@dataclass(frozen=True)
class Flight:
    """A message in flight."""

    src: int
    dst: int
    msg: Message


@dataclass(frozen=True)
class HeldPermit:
    request: int
    slot: int
    fence: int


class ManualNetwork:
    def __init__(
        self,
        make: MakeNode,
        setup: Setup,
        slots: bool,
        chooser: Chooser | None = None,
        census: bool = True,
        start: bool = True,
        clocks: Clocks | None = None,
    ) -> None:
        """`slots`: do grants carry slot and fence? `census`: check the number of tokens and coordinators as well?

        `clocks`: those that do not show true time.
        """
        self.setup = setup
        self.outboxes = {me: Collected(chooser) for me in setup.members}
        self.nodes = {me: make(me, setup, self.outboxes[me]) for me in setup.members}
        self.flight: list[Flight] = []
        self.timers: dict[tuple[int, str], int] = {}
        self.now = 0
        self.clocks = clocks or {}
        self.waiting: dict[int, int] = {}  # node -> request
        self.inside: dict[int, HeldPermit] = {}
        self.lost: list[tuple[int, int, str]] = []
        self.marks: set[str] = set()
        self.crashed: set[int] = set()
        self.grants: list[int] = []  # nodes in the order in which they entered
        self.occupancy = Occupancy(setup.k, slots)
        self.tokens = sum(node.tokens() for node in self.nodes.values())
        self.coordinators = sum(node.coordinators() for node in self.nodes.values())
        self.census = census
        self.requests = 0
        if start:
            for me in setup.members:
                self.step(me, "on_start")

    def clock(self, me: int) -> Clock:
        return self.clocks.get(me, TRUE)

    def step(self, me: int, call: str, *arguments: Any) -> None:
        """Let a node take one atomic step, and carry out its effects. A no-op if the node has crashed."""
        if me in self.crashed:
            return
        node = self.nodes[me]
        node.now = self.clock(me).reading(self.now)
        getattr(node, call)(*arguments)
        for effect in self.outboxes[me].drain():
            getattr(self, f"do_{effect[0]}")(me, *effect[1:])
        if wrong := node.broken():
            raise Violation(f"{wrong} (node {me})")
        self.count()

    # Decisions of the caller.

    def acquire(self, me: int) -> int:
        if me in self.crashed:
            raise ValueError(f"node {me} has crashed and cannot make a request")
        self.requests += 1
        self.waiting[me] = self.requests
        self.step(me, "on_acquire", self.requests)
        return self.requests

    def release(self, me: int) -> None:
        permit = self.inside.pop(me)
        self.occupancy.leave(me, permit.slot)
        self.step(me, "on_release", permit.request)

    def again(self, me: int) -> None:
        """Release, and acquire in the same step."""
        permit = self.inside.pop(me)
        self.occupancy.leave(me, permit.slot)
        self.requests += 1
        self.waiting[me] = self.requests
        self.step(me, "on_again", permit.request, self.requests)

    def cancel(self, me: int) -> None:
        if me in self.inside:
            permit = self.inside.pop(me)
            self.occupancy.leave(me, permit.slot)
            self.step(me, "on_cancel", permit.request)
        else:
            self.step(me, "on_cancel", self.waiting.pop(me))

    def deliver(self, index: int = 0) -> None:
        flight = self.flight.pop(index)
        self.step(flight.dst, "on_message", flight.src, flight.msg)

    def deliver_all(self) -> None:
        """Deliver messages, oldest first, until none is in flight."""
        while self.flight:
            self.deliver()

    def drop(self, index: int = 0) -> None:
        self.flight.pop(index)

    def duplicate(self, index: int = 0) -> None:
        self.flight.append(self.flight[index])

    def fire(self, me: int, name: str) -> None:
        """Fire a timer. If it is not due yet, the clock advances to when it is."""
        self.now = max(self.now, self.timers.pop((me, name)))
        self.step(me, "timer_due", name)

    def advance(self, delay: int) -> None:
        """Let time pass. Timers that become due fire in order."""
        end = self.now + delay
        while due := sorted((at, who) for who, at in self.timers.items() if at <= end):
            self.fire(*due[0][1])
        self.now = end

    def crash(self, me: int) -> None:
        """The node stops forever. Its permit is free again; its tokens and coordinator's role count as lost."""
        self.tokens -= self.nodes[me].tokens()
        self.coordinators -= self.nodes[me].coordinators()
        self.crashed.add(me)
        self.waiting.pop(me, None)
        for timer in [timer for timer in self.timers if timer[0] == me]:
            del self.timers[timer]
        permit = self.inside.pop(me, None)
        if permit is not None:
            self.occupancy.leave(me, permit.slot)

    def suspect(self, me: int, peer: int, detector: str = "T") -> None:
        self.step(me, "on_suspect", peer, detector)

    def trust(self, me: int, peer: int, detector: str = "T") -> None:
        self.step(me, "on_trust", peer, detector)

    # Effects of nodes.

    def do_send(self, me: int, dst: int, msg: Message) -> None:
        if dst not in self.nodes:
            raise Violation(f"send: node {me} sent {msg} to {dst}, which is no member")
        self.flight.append(Flight(me, dst, msg))

    def do_timer(self, me: int, name: str, delay: int) -> None:
        self.timers[me, name] = self.clock(me).time(self.nodes[me].now + delay)

    def do_untimer(self, me: int, name: str) -> None:
        self.timers.pop((me, name), None)

    def do_granted(self, me: int, request: int, slot: int, fence: int) -> None:
        if self.waiting.pop(me, None) != request:
            raise Violation(f"grant: node {me} was granted request {request}, which does not wait")
        self.inside[me] = HeldPermit(request, slot, fence)
        self.grants.append(me)
        broken = self.occupancy.enter(me, slot, fence)
        if broken:
            raise Violation(broken)

    def do_lost(self, me: int, request: int, why: str) -> None:
        self.lost.append((me, request, why))
        if self.waiting.get(me) == request:
            del self.waiting[me]
        permit = self.inside.pop(me, None)
        if permit is not None:
            self.occupancy.leave(me, permit.slot)

    def do_note(self, me: int, mark: str) -> None:
        self.marks.add(mark)

    # The census.

    def count(self) -> None:
        """Check the number of tokens and coordinators. Called after every step."""
        if not self.census:
            return
        parts: list[Node | Message] = [node for me, node in self.nodes.items() if me not in self.crashed]
        parts += [flight.msg for flight in self.flight]
        tokens = sum(part.tokens() for part in parts)
        coordinators = sum(part.coordinators() for part in parts)
        if tokens != self.tokens:
            raise Violation(f"tokens: {tokens} in the system, {self.tokens} were made")
        if coordinators != self.coordinators:
            raise Violation(f"coordinator: {coordinators} in the system, {self.coordinators} were made")
