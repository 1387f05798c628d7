"""Checks the law of the contract after every step: a node loaded from a key behaves exactly like the original.

`Lawful` is a ManualNetwork in which every step is taken twice: by the node, and by a clone that was just made from its
key. The clone has another clock, and is discarded after the step. A breach raises `Lawless`, whose text begins with
what broke: state, clone, effects, message.
"""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

from fairgate.core.choose import Chooser, from_floats, scripted
from fairgate.core.clock import Clocks
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, Message, decode
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.scenario.manual import Violation
from fairgate.walks.lossy import LossyNetwork, one_move, random_system
from fairgate.walks.stacks import Stack

OTHER_CLOCK = 7_000_000_007  # how far a clone's clock is ahead: a key must not depend on the clock


class Lawless(AssertionError):
    """The law is broken."""


class Recorded(Collected):
    """Remembers the effects that were drained last, and the choices that led to them."""

    def __init__(self, chooser: Chooser) -> None:
        Collected.__init__(self, self.record)
        self.original = chooser
        self.choices: list[int] = []
        self.last: list[tuple[Any, ...]] = []

    def record(self, n: int) -> int:
        self.choices.append(self.original(n))
        return self.choices[-1]

    def drain(self) -> list[tuple[Any, ...]]:
        self.last = Collected.drain(self)
        return self.last


class Lawful(LossyNetwork):
    def __init__(self, make: MakeNode, setup: Setup, slots: bool, chooser: Chooser, clocks: Clocks) -> None:
        super().__init__(make, setup, slots, start=False, census=False, clocks=clocks)
        self.make = make
        self.records = {me: Recorded(chooser) for me in setup.members}
        self.outboxes.update(self.records)
        for me, node in self.nodes.items():
            node.out = self.records[me]
            self.step(me, "on_start")

    def step(self, me: int, call: str, *arguments: Any) -> None:
        record = self.records[me]
        record.choices.clear()
        messages = [(argument, argument.key()) for argument in arguments if isinstance(argument, Message)]
        clone = self.clone(me)
        super().step(me, call, *arguments)
        clone.now = self.nodes[me].now + OTHER_CLOCK
        outbox = clone.out = Collected(scripted(record.choices))
        getattr(clone, call)(*arguments)
        step = f"after {call}{arguments}"
        if outbox.effects != record.last:
            raise Lawless(f"effects: {step} the clone did\n  {outbox.effects}, the original\n  {record.last}")
        same(f"state: {step}", clone.key(), self.nodes[me].key())
        for msg, key in messages:
            check_message(msg, key)

    def clone(self, me: int) -> Node:
        """A clone made from the node's key after a round trip through JSON, with lists in place of tuples.

        A clone made from the key itself is checked as well.
        """
        key = self.nodes[me].key()
        only_plain(key)
        same("clone: loaded", self.loaded(me, key).key(), key)
        clone = self.loaded(me, tuple(json.loads(json.dumps(key))))
        same("clone: loaded from JSON", clone.key(), key)
        return clone

    def loaded(self, me: int, key: Key) -> Node:
        """A node loaded with the key. The timers that `load` arms are ignored."""
        node = self.make(me, self.setup, Collected())
        node.now = self.nodes[me].now + OTHER_CLOCK
        node.load(key)
        return node


def only_plain(key: Any) -> None:
    if isinstance(key, tuple):
        for part in key:
            only_plain(part)
    elif type(key) not in (int, str, bool):
        raise Lawless(f"state: {key!r} in a key is {type(key).__name__}")


def same(what: str, mine: Key, original: Key) -> None:
    if mine != original:
        raise Lawless(f"{what}\n  {mine}, the original is\n  {original}")


def check_message(msg: Message, key: Key) -> None:
    """The message was not changed by its receiver, and survives encoding and decoding."""
    only_plain(key)
    if msg.key() != key:
        raise Lawless(f"message: its receiver changed {key} to {msg.key()}")
    if decode(key) != msg or decode(json.loads(json.dumps(key))) != msg:
        raise Lawless(f"message: {msg} is decoded as {decode(key)}")


def law_walks(stack: Stack, seeds: range, lossy: bool = False, steps: int = 120) -> None:
    """Random walks that check only the law. Violations are ignored: a literal protocol may break its properties."""
    for seed in seeds:
        rng = random.Random(seed)
        setup, clocks = random_system(stack, rng)
        network = Lawful(stack.make, setup, stack.about.slots, from_floats(rng.random), clocks)
        left = dict.fromkeys(setup.members, 3)
        with contextlib.suppress(Violation):
            for _ in range(steps):
                one_move(network, rng, left, (network.drop, network.duplicate) if lossy else ())
