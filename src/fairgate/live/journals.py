"""Journals of a live peer: every step of its nodes, as the simulator writes them, for `fairgate replay`.

    fairgate.join(journal="run.ndjson")         # of the one gate that this peer opens
    fairgate.join(journal="run-{gate}.ndjson")  # of each gate its own

A journal has the nodes of this peer's seats alone: what others do shows in their journals, and in the messages that
come here. A node does not begin at the beginning: it waits for its first view, or stands for somebody who was let in
elsewhere. So its first line is a `load`, which has its whole state; so has every other change that is no step, such as
what is left of one that Ctrl-C broke off. While there is a journal, nobody comes in again without a step (gate.py).

A line is written when its step is over, by one call of the system, so that all are there if the process is killed.
"""

import logging
import os
from collections.abc import Callable
from functools import partial
from io import FileIO
from typing import Any
from urllib.parse import quote

from fairgate.core.ids import NIL
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.live.gate import LiveGate, NoJournals
from fairgate.live.live_protocols import options_of
from fairgate.recovery.regenerate import Regenerate
from fairgate.trace.journal import JournalWriter, RecordingOutbox, Step

GATE = "{gate}"
STACK = ("regenerate",)

log = logging.getLogger("fairgate.live")
begun: dict[str, tuple[str, int]] = {}  # files that this process has written, and what of


class Journals(NoJournals):
    """Of one peer, by gate. Under the engine's lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.of: dict[str, Journal] = {}

    def opened(self, gate: LiveGate) -> Callable[[int, Setup, Outbox, MakeNode], Regenerate]:
        """How to make the nodes of this gate. One that is opened again goes on in the same file."""
        path = self.path.replace(GATE, quote(gate.name, safe=""))
        known = self.of.get(gate.name)
        if known is None and self.of and GATE not in self.path:
            raise BadInput(f"{path} is the journal of gate {next(iter(self.of))}: for several write {GATE} in its name")
        if known is not None and known.what != (gate.protocol, gate.k):
            raise BadInput(f"{path} is a journal of {known.what[0]} with k={known.what[1]}: it cannot have another")
        if known is None:
            known = self.of[gate.name] = Journal(path, gate.protocol, gate.k)
        return partial(Recorded, journal=known)

    def close(self) -> None:
        for journal in self.of.values():
            journal.close()


class Journal:
    """One file. If it cannot be written any more, the gate goes on without it.

    A process that joins again goes on in it: so does `fairgate run`, if it was stopped while it waited.
    """

    def __init__(self, path: str, protocol: str, k: int) -> None:
        self.path = path
        self.what = (protocol, k)
        again = begun.get(os.path.abspath(path)) == self.what
        try:
            self.file = FileIO(path, "a" if again else "w")
            self.writer = JournalWriter(self.file)
            if not again or not os.path.getsize(path):
                setup = Setup(tuple(range(k)), k, options=options_of(protocol))
                self.writer.header(protocol, setup, "net", stack=STACK)
        except OSError as wrong:
            raise BadInput(f"cannot write the journal {path}: {wrong.strerror}") from wrong
        begun[os.path.abspath(path)] = self.what

    def step(self, step: Step) -> None:
        try:
            self.writer.step(step)
        except OSError as wrong:
            log.error("the journal %s ends here: %s", self.path, wrong.strerror)
            self.close()

    @property
    def closed(self) -> bool:
        return self.file.closed

    def close(self) -> None:
        self.file.close()


class Recorded(Regenerate):
    """A node that writes its steps."""

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode, journal: Journal) -> None:
        self.journal = journal
        self.recorder = RecordingOutbox(out)
        self.known: Key = ()  # as the journal has it
        self.known_at = NIL
        self.within = False  # a step: what the node tells itself is a part of it
        Regenerate.__init__(self, me, setup, self.recorder, upper)

    def alone(self) -> bool:
        """Else users would come and go without a step."""
        return False

    def on_acquire(self, request: int) -> None:
        self.step("acquire", Regenerate.on_acquire, request)

    def on_release(self, request: int) -> None:
        self.step("release", Regenerate.on_release, request)

    def on_cancel(self, request: int) -> None:
        self.step("cancel", Regenerate.on_cancel, request)

    def on_message(self, src: int, msg: Message) -> None:
        self.step("message", Regenerate.on_message, src, msg)

    def on_view(self, number: int, members: tuple[int, ...]) -> None:
        self.step("view", Regenerate.on_view, number, members)

    def step(self, event: str, call: Callable[..., None], *arguments: Any) -> None:
        if self.within or self.journal.closed:
            call(self, *arguments)
            return
        if self.has_changed():
            key = self.key()
            self.write(Step(self.now, self.me, "load", arguments=(self.setup.members, key), key=key))
        self.recorder.begin()
        self.within = True
        try:
            call(self, *arguments)
        finally:
            self.within = False
        self.write(self.recorder.taken(self.now, self, event, *arguments))

    def has_changed(self) -> bool:
        """Without a step. Keys tell how long ago things were, so they are compared as of the same moment."""
        now, self.now = self.now, self.known_at
        changed = self.known_at == NIL or self.key() != self.known
        self.now = now
        return changed

    def write(self, step: Step) -> None:
        self.known = step.key
        self.known_at = step.now
        self.journal.step(step)
