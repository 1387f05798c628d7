"""Replay: runs the journal of any driver again, step by step, and compares the results.

Nodes are deterministic, so the same events with the same choices must give the same effects and the same state keys.
If they do not, either the code or the journal has changed, or a node is not deterministic.
"""

import os
from collections.abc import Iterator
from typing import Any

from fairgate.core.choose import scripted
from fairgate.core.inputs import CALLS
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message, decode
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.trace.journal import Effect, Step, read


class ReplayError(Exception):
    """A step gave another result (`came`) than the journal has (`expected`)."""

    def __init__(self, line: int, node: int, what: str, expected: Any, came: Any) -> None:
        super().__init__(f"line {line}, node {node}: {what}: expected {expected}, got {came}")
        self.line = line
        self.node = node
        self.what = what
        self.expected = expected
        self.came = came


def replay(path: str | os.PathLike[str], make: MakeNode) -> Iterator[Step]:
    """The steps of a journal; each is run again before it is yielded.

    Raises JournalError at a line that is not valid, and ReplayError at a step with another result.
    """
    header, steps = read(path)
    again = Replay(make, Setup.of(header.setup))
    for line, step in enumerate(steps, 2):
        again.step(line, step)
        yield step


class Replay:
    """The nodes of a journal. Each is made at its first step, since some join late."""

    def __init__(self, make: MakeNode, setup: Setup) -> None:
        self.make = make
        self.setup = setup
        self.nodes: dict[int, Node] = {}
        self.outboxes: dict[int, Collected] = {}
        self.crashed: set[int] = set()

    def step(self, line: int, step: Step) -> None:
        me = step.node
        if me in self.crashed and step.event != "reset":
            raise ReplayError(line, me, "event", "no event, because the node has crashed", step.event)
        if step.event == "crash":
            self.crashed.add(me)
            return
        if step.event == "load":
            self.load(line, step)
            return
        if step.event == "reset" or me not in self.nodes:
            self.make_anew(me, self.setup)
        effects = self.call(line, step) if step.event in CALLS else ()
        if effects != step.effects:
            raise ReplayError(line, me, "effects", step.effects, effects)
        self.compare_keys(line, step)

    def compare_keys(self, line: int, step: Step) -> None:
        key = self.nodes[step.node].key()
        if key != step.key:
            raise ReplayError(line, step.node, "state key", step.key, key)

    def make_anew(self, me: int, setup: Setup) -> None:
        self.crashed.discard(me)
        self.outboxes[me] = Collected()
        self.nodes[me] = self.make(me, setup, self.outboxes[me])

    def load(self, line: int, step: Step) -> None:
        """The driver set the node's state. The timers that loading arms are part of that state, not effects."""
        members, key = step.arguments
        try:
            self.make_anew(step.node, Setup(members, self.setup.k, None, self.setup.epoch, self.setup.options))
            node = self.nodes[step.node]
            if node.timed:
                node.now = step.now
            node.load(key)
        except (ValueError, TypeError) as wrong:
            raise ReplayError(line, step.node, step.event, "a state", f"{type(wrong).__name__}: {wrong}") from wrong
        self.outboxes[step.node].drain()
        self.compare_keys(line, step)

    def call(self, line: int, step: Step) -> tuple[Effect, ...]:
        """Let the node take the step; returns its effects in the journal's form."""
        node = self.nodes[step.node]
        outbox = self.outboxes[step.node]
        choices = iter(step.choices)
        outbox.chooser = scripted(choices)
        if node.timed:
            node.now = step.now
        try:
            arguments = (step.source, decode(step.message)) if step.event == "message" else step.arguments
            getattr(node, CALLS[step.event])(*arguments)
        except Exception as error:
            raise ReplayError(line, step.node, step.event, "a step", f"{type(error).__name__}: {error}") from error
        unused = tuple(choices)
        if unused:
            raise ReplayError(line, step.node, "choices", step.choices, step.choices[: -len(unused)])
        return tuple(map(journalled, outbox.drain()))


def journalled(effect: Effect) -> Effect:
    """An effect in the journal's form: messages are replaced by their keys."""
    return tuple(part.key() if isinstance(part, Message) else part for part in effect)
