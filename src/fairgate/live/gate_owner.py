"""What a gate needs of the engine."""

from typing import TYPE_CHECKING, Protocol

from fairgate.live.ticket import Ticket
from fairgate.live.uplink import Uplink

if TYPE_CHECKING:
    from fairgate.live.gate import LiveGate
    from fairgate.live.no_journals import NoJournals


class GateOwner(Protocol):
    """The engine, as a gate sees it."""

    journals: "NoJournals"

    @property
    def traffic(self) -> Uplink: ...

    def sit(self, gate: "LiveGate") -> None:
        """The gate has new seats that must be added to the roster."""

    def renew(self, gate: "LiveGate") -> None: ...

    def spoiled(self, gate: "LiveGate") -> None:
        """The gate has to be repaired soon, but not within this step."""

    def lease_begins(self, gate: "LiveGate", ticket: Ticket) -> None: ...

    def census_is_over(self) -> None:
        """A seat of this peer led it."""
