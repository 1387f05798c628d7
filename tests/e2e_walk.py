"""Small systems of a protocol on a DHT, run in virtual time: every message takes a random time, so they overtake.

Faults, where asked for: messages lost or doubled, nodes that crash for ever, nodes that lose their memory, nodes that
leave the ring and come back new. What went wrong is answered, not raised: `Outcome`.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.layers import MakeNode
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.overlay.ring import ring_of

MS = 1_000_000


@dataclass(frozen=True)
class Load:
    """What is asked of a system, and what befalls it."""

    requests: int = 3  # of each client
    latency: tuple[int, int] = (1, 100)  # ms
    think: tuple[int, int] = (0, 300)
    hold: tuple[int, int] = (0, 100)
    cancels: float = 0.0
    loss: float = 0.0
    duplication: float = 0.0
    crashes: int = 0
    resets: int = 0
    churn: int = 0  # so many nodes leave the ring, and as many join
    calm: int = 4_000  # ms: no fault comes later
    limit: int = 60_000  # ms of virtual time, by which all must be over
    steps: int = 60_000


@dataclass
class Outcome:
    broken: str = ""  # "k: ..." or "liveness: ..."
    entries: int = 0
    lost: int = 0
    sent: int = 0
    marks: set[str] = field(default_factory=set)


class Walk:
    def __init__(
        self, make: MakeNode, setup: Setup, load: Load, rng: random.Random, spare: tuple[int, ...] = ()
    ) -> None:
        self.make, self.setup, self.load, self.rng = make, setup, load, rng
        self.now = 0
        self.events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.pushed = 0
        self.outcome = Outcome()
        self.spare = list(spare)
        self.ring = ring_of(setup)
        self.outboxes: dict[int, Collected] = {}
        self.nodes: dict[int, Any] = {}
        self.timers: dict[tuple[int, str], int] = {}  # -> number of the event that is the valid one
        self.life: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.waiting: dict[int, int] = {}
        self.inside: dict[int, int] = {}
        self.number = 0
        for me in setup.members:
            self.left[me] = load.requests
            self.start(me)
            self.think(me)

    def start(self, me: int) -> None:
        self.life[me] = self.life.get(me, 0) + 1
        self.outboxes[me] = Collected(from_floats(self.rng.random))
        self.nodes[me] = self.make(me, self.setup, self.outboxes[me])
        self.step(me, "on_start")

    def at(self, delay: int, what: Callable[..., None], *arguments: Any) -> int:
        self.pushed += 1
        heapq.heappush(self.events, (self.now + delay, self.pushed, what, arguments))
        return self.pushed

    def ms(self, span: tuple[int, int]) -> int:
        return int(self.rng.uniform(span[0] * MS, span[1] * MS))

    def think(self, me: int) -> None:
        if self.left.get(me, 0):
            self.at(self.ms(self.load.think), self.acquire, me, self.life[me])

    # Events.

    def acquire(self, me: int, life: int) -> None:
        if self.life[me] != life or me not in self.nodes:
            return
        self.left[me] -= 1
        self.number += 1
        self.waiting[me] = self.number
        if self.rng.random() < self.load.cancels:
            self.at(self.ms(self.load.think), self.cancel, me, self.number)
        self.step(me, "on_acquire", self.number)

    def cancel(self, me: int, request: int) -> None:
        if self.waiting.get(me) == request or self.inside.get(me) == request:
            self.waiting.pop(me, None)
            self.inside.pop(me, None)
            self.step(me, "on_cancel", request)
            self.think(me)

    def release(self, me: int, request: int) -> None:
        if self.inside.get(me) == request:
            del self.inside[me]
            self.step(me, "on_release", request)
            self.think(me)

    def deliver(self, src: int, dst: int, msg: Any) -> None:
        if dst in self.nodes:
            self.step(dst, "on_message", src, msg)

    def fire(self, me: int, name: str, life: int) -> None:
        if self.life.get(me) == life and self.timers.get((me, name)) == life * 10**9 + self.now:
            del self.timers[me, name]
            self.step(me, "timer_due", name)

    def crash(self, me: int) -> None:
        """For ever. The overlay mends its tables a little later."""
        if me in self.nodes and len(self.nodes) > 2:
            del self.nodes[me]
            self.waiting.pop(me, None)
            self.inside.pop(me, None)
            self.left[me] = 0
            self.at(self.ms(self.load.latency), self.ring.remove, me)

    def reset(self, me: int) -> None:
        if me in self.nodes:
            self.waiting.pop(me, None)
            self.inside.pop(me, None)
            self.start(me)
            self.think(me)

    def join(self, me: int) -> None:
        self.left[me] = 1
        self.start(me)
        self.ring.add(me)
        self.think(me)

    # A step, and what it did.

    def step(self, me: int, call: str, *arguments: Any) -> None:
        node = self.nodes[me]
        node.now = self.now
        getattr(node, call)(*arguments)
        for kind, *effect in self.outboxes[me].drain():
            getattr(self, f"do_{kind}")(me, *effect)

    def do_send(self, me: int, dst: int, msg: Any) -> None:
        self.outcome.sent += 1
        if self.rng.random() < self.load.loss:
            return
        self.at(self.ms(self.load.latency), self.deliver, me, dst, msg)
        if self.rng.random() < self.load.duplication:
            self.at(self.ms(self.load.latency) * 3, self.deliver, me, dst, msg)

    def do_timer(self, me: int, name: str, delay: int) -> None:
        self.timers[me, name] = self.life[me] * 10**9 + self.now + delay
        self.at(delay, self.fire, me, name, self.life[me])

    def do_untimer(self, me: int, name: str) -> None:
        self.timers.pop((me, name), None)

    def do_granted(self, me: int, request: int, slot: int, fence: int) -> None:
        if self.waiting.pop(me, None) != request:
            self.outcome.broken = self.outcome.broken or f"grant: {me} was let in twice"
            return
        self.inside[me] = request
        self.outcome.entries += 1
        if len(self.inside) > 1 and not self.outcome.broken:
            self.outcome.broken = f"k: {sorted(self.inside)} are inside"
        self.at(self.ms(self.load.hold), self.release, me, request)

    def do_lost(self, me: int, request: int, why: str) -> None:
        self.outcome.lost += 1
        self.inside.pop(me, None)
        self.waiting.pop(me, None)
        self.think(me)

    def do_note(self, me: int, mark: str) -> None:
        self.outcome.marks.add(mark)

    # The run.

    def plan_faults(self) -> None:
        members = [*self.setup.members]
        for _ in range(self.load.crashes):
            self.at(self.ms((0, self.load.calm)), self.crash, self.rng.choice(members))
        for _ in range(self.load.resets):
            self.at(self.ms((0, self.load.calm)), self.reset, self.rng.choice(members))
        for _ in range(self.load.churn):
            self.at(self.ms((0, self.load.calm)), self.crash, self.rng.choice(members))
            self.at(self.ms((0, self.load.calm)), self.join, self.spare.pop())

    def run(self) -> Outcome:
        self.plan_faults()
        for _ in range(self.load.steps):
            if self.outcome.broken or not self.events or self.over():
                break
            self.now, _, what, arguments = heapq.heappop(self.events)
            if self.now > self.load.limit * MS:
                break
            what(*arguments)
        if not self.outcome.broken and not self.over():
            self.outcome.broken = f"liveness: {sorted(self.waiting)} wait"
        return self.outcome

    def over(self) -> bool:
        busy = self.waiting or self.inside or (self.now <= self.load.calm * MS and self.faulty())
        return not busy and not any(self.left[me] for me in self.nodes)

    def faulty(self) -> bool:
        return bool(self.load.crashes or self.load.resets or self.load.churn)
