"""What the engine needs of the membership: where peers meet and agree on the roster. in_cluster.py implements it."""

from typing import Protocol

from fairgate.net.codec import Frame
from fairgate.recovery.roster import Change


class Membership(Protocol):
    @property
    def guarantee(self) -> str:
        """What happens to a gate when a peer dies, in a word or two, for Statistics."""

    @property
    def why(self) -> str:
        """Why nobody is let in at present; empty if that is not so."""

    async def begin(self) -> None:
        """Joins. Tells the engine its identity (`becomes`), rosters (`adopt`) and lease. BadInput if that fails."""

    async def entered(self) -> None:
        """Returns once this peer is a member: after `begin`, and after it has joined again."""

    async def change(self, change: Change) -> None:
        """Changes the roster. BadInput or KMismatch if that is refused."""

    async def leave(self) -> None:
        """TimeoutError if the others did not answer in time."""

    def census_is_over(self) -> None:
        """A census that this peer led is over. Called on the loop."""

    def may_be(self, peer: int, principal: str) -> bool:
        """Whether whoever has proved to be this principal (net/principal.py) may have the id of this peer."""

    def on_up(self, peer: int) -> None: ...

    def on_down(self, peer: int, why: str) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None:
        """A frame about the membership. CodecError if it is not valid."""

    def close(self) -> None: ...
