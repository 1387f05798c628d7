"""Journals of a live peer: every step of its nodes, in the simulator's format, for `fairgate replay`.

    fairgate.join(journal="run.ndjson")         # for the one gate that this peer opens
    fairgate.join(journal="run-{gate}.ndjson")  # one file per gate

A journal only covers the seats of this peer. What other peers do is in their journals, and in the messages received
here. A node does not start in its initial state: it waits for its first view, or stands for a holder admitted
elsewhere. So its first line is a `load` with its whole state. Every other change outside a step is a `load` too, such
as what remains of a step that Ctrl-C interrupted. With a journal, retaking (gate.py) is disabled, so that every entry
is a step.

A line is written when its step ends, with one system call, so no line is missing if the process is killed.
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
from fairgate.live.gate import LiveGate
from fairgate.live.live_protocols import options_of
from fairgate.live.no_journals import NoJournals
from fairgate.recovery.regenerate import Regenerate
from fairgate.trace.journal import JournalWriter, RecordingOutbox, Step

GATE = "{gate}"
STACK = ("regenerate",)

log = logging.getLogger("fairgate.live")
begun: dict[str, tuple[str, int]] = {}  # files that this process has written: protocol and k


class Journals(NoJournals):
    """The journals of one peer, by gate. Used under the engine's lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.of: dict[str, Journal] = {}

    def opened(self, gate: LiveGate) -> Callable[[int, Setup, Outbox, MakeNode], Regenerate]:
        """The factory for the gate's nodes. A gate that is opened again continues its file."""
        path = self.path.replace(GATE, quote(gate.name, safe=""))
        known = self.of.get(gate.name)
        if known is None and self.of and GATE not in self.path:
            raise BadInput(f"{path} is the journal of gate {next(iter(self.of))}: put {GATE} in the name for several")
        if known is not None and known.what != (gate.protocol, gate.k):
            raise BadInput(f"{path} is a journal of {known.what[0]} with k={known.what[1]}: use another file")
        if known is None:
            known = self.of[gate.name] = Journal(path, gate.protocol, gate.k)
        return partial(Recorded, journal=known)

    def close(self) -> None:
        for journal in self.of.values():
            journal.close()


class Journal:
    """One file. If writing fails, the gate continues without it.

    A process that joins again appends to it; `fairgate run` does so if it was stopped while it waited.
    """

    def __init__(self, path: str, protocol: str, k: int) -> None:
        self.path = path
        self.what = (protocol, k)
        again = begun.get(os.path.abspath(path)) == self.what
        try:
            self.file = FileIO(path, "a" if again else "w")
            self.writer = JournalWriter(self.file)
            if not again or not os.path.getsize(path):
                self.write_header()
        except OSError as wrong:
            raise BadInput(f"cannot write the journal {path}: {wrong.strerror}") from wrong
        begun[os.path.abspath(path)] = self.what

    def write_header(self) -> None:
        protocol, k = self.what
        setup = Setup(tuple(range(k)), k, options=options_of(protocol))
        try:
            self.writer.header(protocol, setup, "net", stack=STACK)
        except OSError:
            self.close()
            raise

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
    """A node that writes its steps to a journal."""

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode, journal: Journal) -> None:
        self.journal = journal
        self.recorder = RecordingOutbox(out)
        self.known: Key = ()  # the state that the journal has last
        self.known_at = NIL
        self.within = False  # inside a step: calls of the node to itself belong to it
        Regenerate.__init__(self, me, setup, self.recorder, upper)

    def alone(self) -> bool:
        """Disables retaking, by which users would enter without a step."""
        return False

    def on_acquire(self, request: int) -> None:
        self.step("acquire", Regenerate.on_acquire, request)

    def on_release(self, request: int) -> None:
        self.step("release", Regenerate.on_release, request)

    def on_again(self, released: int, request: int) -> None:
        self.step("again", Regenerate.on_again, released, request)

    def on_cancel(self, request: int) -> None:
        self.step("cancel", Regenerate.on_cancel, request)

    def on_message(self, src: int, msg: Message) -> None:
        self.step("message", Regenerate.on_message, src, msg)

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        self.step("view", Regenerate.on_view, number, members, ghosts)

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
        """Whether the state changed outside a step. Keys contain relative times, so both must be of the same moment."""
        now, self.now = self.now, self.known_at
        changed = self.known_at == NIL or self.key() != self.known
        self.now = now
        return changed

    def write(self, step: Step) -> None:
        self.known = step.key
        self.known_at = step.now
        self.journal.step(step)
