"""Fair-k on SimPy, written for speed: a Timeout with a callback for every message, no processes.

bench/speed.py compares our simulator with this. It has the same algorithm and workload, only the simplest metrics (mean
and maximum wait, messages) and no invariants: every doubt is resolved in SimPy's favour.
"""

from __future__ import annotations

from random import Random
from typing import Any

from simpy import Environment
from simpy.events import Timeout

NIL = -1
REQUEST, TOKEN, CHILD, LOCATIONS = range(4)


class Node:
    __slots__ = ("child", "counter", "is_coordinator", "locations", "me", "next", "parent", "requesting", "token")

    def __init__(self, me: int, k: int) -> None:
        self.me = me
        self.parent = 0 if me else NIL
        self.next = NIL
        self.child = NIL
        self.token = me < k
        self.requesting = False
        self.is_coordinator = me == 0
        self.locations: list[int] = list(range(k)) if me == 0 else []
        self.counter = 0


class SimpyFairK:
    def __init__(self, n: int, k: int, rate: float, requests: int, cs: float, latency: float, seed: int) -> None:
        self.env = Environment()
        self.k, self.rate, self.cs, self.latency = k, rate, cs, latency
        self.nodes = [Node(me, k) for me in range(n)]
        self.left = [requests] * n
        self.asked = [0.0] * n
        self.rng = Random(seed)
        self.entries = 0
        self.messages = 0
        self.wait_total = 0.0
        self.wait_max = 0.0

    def run(self) -> None:
        for node in self.nodes:
            self.think(node)
        self.env.run()

    def think(self, node: Node) -> None:
        if self.left[node.me]:
            self.left[node.me] -= 1
            event = Timeout(self.env, self.rng.expovariate(self.rate), node)
            event.callbacks.append(self.ask)

    def send(self, dst: int, kind: int, value: Any) -> None:
        self.messages += 1
        event = Timeout(self.env, self.latency, (self.nodes[dst], kind, value))
        event.callbacks.append(self.deliver)

    def deliver(self, event: Any) -> None:
        node, kind, value = event.value
        if kind == REQUEST:
            if node.parent != NIL:
                self.send(node.parent, REQUEST, value)
            elif node.is_coordinator:
                self.assign(node, value)
            else:
                node.next = value
            node.parent = value
        elif kind == TOKEN:
            node.token = True
            self.enter(node)
        elif kind == CHILD:
            if node.requesting:
                node.child = value
            else:
                node.token = False
                self.send(value, TOKEN, None)
            node.parent = value
        else:
            node.locations, node.counter = value
            node.is_coordinator = True
            if node.next != NIL:
                self.assign(node, node.next)
                node.parent, node.next = node.next, NIL

    def assign(self, node: Node, r: int) -> None:
        locations, counter = node.locations, node.counter
        self.send(locations[counter], CHILD, r)
        locations[counter] = r
        node.is_coordinator = False
        self.send(r, LOCATIONS, (locations, (counter + 1) % self.k))

    def ask(self, event: Any) -> None:
        node = event.value
        self.asked[node.me] = self.env.now
        node.requesting = True
        if node.token:
            self.enter(node)
        else:
            self.send(node.parent, REQUEST, node.me)
            node.parent = NIL

    def enter(self, node: Node) -> None:
        wait = self.env.now - self.asked[node.me]
        self.wait_total += wait
        if wait > self.wait_max:
            self.wait_max = wait
        self.entries += 1
        event = Timeout(self.env, self.cs, node)
        event.callbacks.append(self.leave)

    def leave(self, event: Any) -> None:
        node = event.value
        node.requesting = False
        if node.child != NIL:
            node.token = False
            self.send(node.child, TOKEN, None)
            node.child = NIL
        self.think(node)


class MeasuredFairK(SimpyFairK):
    """The bare port, plus the measurements and invariants of fairgate's own runs."""

    def __init__(self, n: int, k: int, rate: float, requests: int, cs: float, latency: float, seed: int) -> None:
        super().__init__(n, k, rate, requests, cs, latency, seed)
        self.by_kind = [0, 0, 0, 0]
        self.load = [0] * n
        self.waits: list[float] = []
        self.node_max = [0.0] * n
        self.node_entries = [0] * n
        self.line: dict[int, None] = {}  # waiting nodes, in the order of their requests
        self.overtakes = 0
        self.inside = 0
        self.broken = 0

    def send(self, dst: int, kind: int, value: Any) -> None:
        self.by_kind[kind] += 1
        super().send(dst, kind, value)

    def deliver(self, event: Any) -> None:
        self.load[event.value[0].me] += 1
        super().deliver(event)

    def ask(self, event: Any) -> None:
        self.line[event.value.me] = None
        super().ask(event)

    def enter(self, node: Node) -> None:
        me = node.me
        wait = self.env.now - self.asked[me]
        self.node_entries[me] += 1
        if self.node_entries[me] > 5:
            self.waits.append(wait)
            self.node_max[me] = max(self.node_max[me], wait)
        for other in self.line:
            if other == me:
                break
            self.overtakes += 1
        del self.line[me]
        self.inside += 1
        if self.inside > self.k:
            self.broken += 1
        super().enter(node)

    def leave(self, event: Any) -> None:
        self.inside -= 1
        super().leave(event)
