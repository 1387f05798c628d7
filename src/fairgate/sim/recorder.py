"""Writes the journal of a simulated run."""

from typing import Any

from fairgate.core.inputs import CALLS
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.trace.journal import JournalWriter, RecordingOutbox, Step


class EngineRecorder:
    """Runs every step with a recording outbox, and writes its effects to the journal."""

    def __init__(self, writer: JournalWriter, engine: Outbox) -> None:
        self.writer = writer
        self.outbox = RecordingOutbox(engine)

    def step(self, now: int, node: Node, event: str, *arguments: Any) -> None:
        if event == "crash":
            self.writer.step(Step(now, node.me, event))
        elif event == "reset":
            self.writer.step(Step(now, node.me, event, key=node.key()))
        else:
            node.out = self.outbox
            self.outbox.begin()
            getattr(node, CALLS[event])(*arguments)
            self.writer.step(self.outbox.taken(now, node, event, *arguments))
