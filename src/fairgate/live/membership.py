"""Where the peers of a cluster meet, and where they agree on who is there: the engine's view of it.

on_host.py is one host: a runtime directory. in_cluster.py is several: one of them keeps the roster. Agreed views,
without a keeper that must live, would be another one.
"""

from typing import Protocol

from fairgate.net.codec import Frame
from fairgate.net.roster import Change, Members


class Membership(Protocol):
    guarantee: str  # what becomes of a gate when a peer dies, in one word: Statistics has it

    async def begin(self) -> Members:
        """Become a peer, and tell the engine (`becomes`). BadInput if it cannot be."""

    # The roster. Each gives it as it is afterwards.

    async def change(self, change: Change) -> Members: ...

    async def look(self) -> Members: ...

    async def check(self) -> Members:
        """Without the dead, if it can be known who is."""

    async def leave(self) -> Members: ...

    # What the engine tells.

    def spread(self, members: Members) -> None:
        """This roster is news to others. Under the engine's lock."""

    def adopted(self, members: Members) -> None:
        """It counts here now. Under the engine's lock."""

    def opened(self, gate: str) -> None:
        """A gate was opened here."""

    def on_up(self, peer: int) -> None: ...

    def on_down(self, peer: int, why: str) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None:
        """One that is not about gates. CodecError if it is nothing at all."""

    def close(self) -> None: ...
