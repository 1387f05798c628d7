"""The interface between the engine and the membership: where peers meet and agree on the roster.

in_cluster.py implements it with one peer that keeps the roster. Agreed views, which depend on no single peer, would be
another implementation.
"""

from typing import Protocol

from fairgate.net.codec import Frame
from fairgate.net.roster import Change, Members


class Membership(Protocol):
    guarantee: str  # what happens to a gate when a peer dies, in one word, for Statistics

    async def begin(self) -> Members:
        """Joins, and tells the engine its identity (`becomes`). BadInput if that fails."""

    # The roster. Each method returns it as it is afterwards.

    async def change(self, change: Change) -> Members: ...

    async def look(self) -> Members: ...

    async def leave(self) -> Members: ...

    # Called by the engine.

    def spread(self, members: Members) -> None:
        """Sends a new roster to the others. Called under the engine's lock."""

    def adopted(self, members: Members) -> None:
        """This roster is in force here now. Called under the engine's lock."""

    def opened(self, gate: str) -> None:
        """A gate was opened here."""

    def may_be(self, peer: int, principal: str) -> bool:
        """Whether whoever has proved to be this principal (net/principal.py) may have the id of this peer."""

    def on_up(self, peer: int) -> None: ...

    def on_down(self, peer: int, why: str) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None:
        """A frame about the membership. CodecError if it is not valid."""

    def close(self) -> None: ...
