"""Timed nodes on a network and with clocks that fail in every way they can, driven by a seed.

Messages are lost, doubled, delayed and cut off: between two halves, in one direction only, or between two nodes that
others still reach. Nodes pause, and wake up to everything at once. Clocks drift apart. A node is told, some time later,
which peers it cannot reach (`on_suspect`), and also when it can again (`on_trust`).

Subclasses make the nodes and judge what they do (`stepped`).
"""

from __future__ import annotations

import heapq
import random
from typing import Any

from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.outbox import Collected

MILLION = 1_000_000
FAST, SLOW = 500_000, 30_000_000  # ns that a message takes on a good day, at least and at most
LATE = 3_000_000_000  # and at most on a bad one
NOTICE = 50_000_000  # ns until a node notices that it cannot reach a peer, at most

Link = tuple[int, int]  # from one node to another


class Unreliable:
    def __init__(self, seed: int, drift: int) -> None:
        self.rng = random.Random(seed)
        self.drift = drift  # of two clocks, at most, in parts per million
        self.now = 0  # true time
        self.count = 0
        self.queue: list[tuple[int, int, int, str, Any]] = []  # when, order, node, event, arguments
        self.nodes: dict[int, Node] = {}
        self.outboxes: dict[int, Collected] = {}
        self.clocks: dict[int, tuple[int, int]] = {}  # node -> rate in parts per million of true time, and offset
        self.stopped: set[int] = set()
        self.paused: dict[int, int] = {}  # node -> until when
        self.cuts: set[Link] = set()
        self.loss = self.rng.choice((0.0, 0.05, 0.3))
        self.doubling = self.rng.choice((0.0, 0.2))
        self.delaying = self.rng.choice((0.02, 0.2))

    # Nodes.

    def add(self, me: int, make: Any) -> None:
        """Add the node that `make(outbox)` returns."""
        self.outboxes[me] = Collected(self.rng.randrange)
        rate = MILLION + self.rng.choice((-1, 0, 1)) * self.drift * 47 // 100
        self.clocks[me] = (rate, self.rng.randrange(10**15))
        self.nodes[me] = make(self.outboxes[me])

    def local(self, me: int) -> int:
        """What the node's clock says."""
        rate, offset = self.clocks[me]
        return offset + self.now * rate // MILLION

    def alive(self) -> list[int]:
        return [me for me in self.nodes if me not in self.stopped]

    def at(self, me: int) -> Node:
        """The node, with its clock set."""
        node = self.nodes[me]
        node.now = self.local(me)
        return node

    def do(self, me: int, call: str, *arguments: Any) -> None:
        """One step of a node."""
        if me in self.stopped:
            return
        getattr(self.at(me), call)(*arguments)
        self.collect(me)
        self.stepped(me)

    def collect(self, me: int) -> None:
        for effect in self.outboxes[me].drain():
            if effect[0] == "send":
                self.post(me, effect[1], effect[2])
            elif effect[0] == "timer":
                due = (self.nodes[me].timers or {})[effect[1]]
                self.push(-(-effect[2] * MILLION // self.clocks[me][0]), me, "timer", (effect[1], due))

    def stepped(self, me: int) -> None:
        """Judge a step that this node has just taken."""
        raise NotImplementedError

    # The network.

    def push(self, delay: int, me: int, event: str, arguments: Any) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now + delay, self.count, me, event, arguments))

    def post(self, src: int, dst: int, msg: Message) -> None:
        rng = self.rng
        if dst not in self.nodes or rng.random() < self.loss or (src, dst) in self.cuts:
            return
        for _ in range(1 + (rng.random() < self.doubling)):
            delay = rng.randint(0, LATE) if rng.random() < self.delaying else rng.randint(FAST, SLOW)
            self.push(delay, dst, "message", (src, msg))

    def cut(self, links: set[Link]) -> None:
        """Cut these links instead of those that are cut now. Both ends of a link will notice, soon or late."""
        for me, peer in sorted({*links, *self.cuts}):
            for one, other in ((me, peer), (peer, me)):
                self.push(self.rng.randint(0, NOTICE), one, "notice", (other,))
        self.cuts = links

    def notice(self, me: int, peer: int) -> None:
        lost = peer in self.stopped or bool({(me, peer), (peer, me)} & self.cuts)
        self.do(me, "on_suspect" if lost else "on_trust", peer, "")

    def stop(self, me: int) -> None:
        """The node stops forever, and the others will notice."""
        self.stopped.add(me)
        for other in self.alive():
            self.push(self.rng.randint(0, NOTICE), other, "notice", (me,))

    def random_cut(self) -> set[Link]:
        """Between two halves, in one direction or both, or between two nodes that others reach."""
        alive = self.alive()
        rng = self.rng
        if len(alive) < 2:
            return set()
        if rng.random() < 0.4:
            one, other = rng.sample(alive, 2)
            return {(one, other), (other, one)}
        half = set(rng.sample(alive, len(alive) // 2))
        out = {(me, peer) for me in half for peer in alive if peer not in half}
        return out if rng.random() < 0.3 else out | {(peer, me) for me, peer in out}

    # Time.

    def run(self, until: int) -> None:
        """Let everything happen that is due until then."""
        while self.queue and self.queue[0][0] <= until:
            when, _, me, event, arguments = heapq.heappop(self.queue)
            self.now = max(self.now, when)
            if me in self.stopped:
                continue
            if self.paused.get(me, 0) > self.now:
                self.push(self.paused[me] - self.now, me, event, arguments)
            else:
                self.happen(me, event, arguments)
        self.now = until

    def happen(self, me: int, event: str, arguments: Any) -> None:
        if event == "message":
            self.do(me, "on_message", *arguments)
        elif event == "notice":
            self.notice(me, *arguments)
        elif (self.nodes[me].timers or {}).get(arguments[0]) == arguments[1]:
            self.do(me, "timer_due", arguments[0])

    def calm_down(self) -> None:
        """From now on nothing fails any more."""
        self.loss = self.doubling = self.delaying = 0.0
        self.paused = {}
        self.cut(set())
