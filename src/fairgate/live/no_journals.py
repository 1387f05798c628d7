"""For peers that write no journals; journals.py has those that do."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairgate.core.layers import MakeNode
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.regenerate import Regenerate

if TYPE_CHECKING:
    from fairgate.live.gate import LiveGate


class NoJournals:
    def opened(self, gate: "LiveGate") -> Callable[[int, Setup, Outbox, MakeNode], Regenerate]:
        """The factory for the gate's nodes."""
        return Regenerate

    def close(self) -> None:
        pass


NO_JOURNALS = NoJournals()
