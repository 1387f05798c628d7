"""A `ManualNetwork` that writes a journal as it goes."""

from typing import Any

from fairgate.core.choose import Chooser
from fairgate.core.inputs import CALLS
from fairgate.core.layers import MakeNode
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.scenario.manual import ManualNetwork, Violation
from fairgate.trace.journal import JournalWriter, RecordingOutbox, Step

EVENTS = {call: event for event, call in CALLS.items()}


class RecordedNetwork(ManualNetwork):
    def __init__(
        self,
        journal: JournalWriter,
        make: MakeNode,
        setup: Setup,
        slots: bool,
        chooser: Chooser | None = None,
        census: bool = True,
        start: bool = True,
    ) -> None:
        """As ManualNetwork. The caller must have written the header of `journal`."""
        self.journal = journal
        self.recorders: dict[int, RecordingOutbox] = {}

        def make_recorded(me: int, setup: Setup, out: Outbox) -> Node:
            self.recorders[me] = RecordingOutbox(out)
            return make(me, setup, self.recorders[me])

        super().__init__(make_recorded, setup, slots, chooser, census, start)

    def step(self, me: int, call: str, *arguments: Any) -> None:
        if me in self.crashed:
            return
        self.recorders[me].begin()
        try:
            super().step(me, call, *arguments)
        except Violation:
            self.record(me, call, *arguments)  # the step that broke a property must be in the journal too
            raise
        self.record(me, call, *arguments)

    def record(self, me: int, call: str, *arguments: Any) -> None:
        self.journal.step(self.recorders[me].taken(self.now, self.nodes[me], EVENTS[call], *arguments))

    def crash(self, me: int) -> None:
        super().crash(me)
        self.journal.step(Step(self.now, me, "crash"))
