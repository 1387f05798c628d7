"""Finds the peers of a cluster, so that inspect.py can query them.

Any peer answers a request for the roster (`look`), even from a process that is not a member. So inspecting changes
nothing, and works even if no majority of the voters is left. TLS decides who may ask, as for everything between hosts.
"""

import asyncio

import msgspec

from fairgate.errors import BadInput
from fairgate.live.cluster_options import ClusterOptions
from fairgate.live.entrance import LOOK, ROSTER, answered, why_not
from fairgate.net.address import Address, check_one_kind, parse_address
from fairgate.net.codec import CodecError, Frame
from fairgate.net.transport import Handler, Transport
from fairgate.recovery.roster import Members, PeerRecord


class Roster(msgspec.Struct, frozen=True, array_like=True):
    """The roster as one peer knows it."""

    version: int
    voters: tuple[int, ...]
    lingering: tuple[int, ...]  # excluded peers whose leases may not be over
    members: Members
    leader: int


class ClusterDirectory:
    def __init__(self, network: ClusterOptions) -> None:
        self.network = network
        self.seeds = [parse_address(seed) for seed in network.seeds]
        check_one_kind(self.seeds)
        self.answer: asyncio.Future[Roster] | None = None

    def where(self) -> str:
        """Where the peers are, in words."""
        return f"of cluster {self.network.cluster}"

    def named(self) -> dict[str, str]:
        """The same for JSON output."""
        return {"cluster": self.network.cluster}

    def begin(self, me: int, handler: Handler) -> Transport:
        network = self.network
        self.transport = Transport(
            me, network.cluster, handler, tls=network.tls, insecure=network.insecure, secret=network.secret
        )
        self.dials = [self.transport.dial(address) for address in self.seeds]
        return self.transport

    async def roster(self) -> Roster:
        """From the first peer to answer: a seed, or a peer we have connected to since."""
        self.answer = asyncio.get_running_loop().create_future()
        for peer in list(self.transport.up):
            self.transport.send(peer, (LOOK,))
        seconds, nobody = self.network.join_timeout, f"no peer of cluster {self.network.cluster} answered"
        try:
            async with asyncio.timeout(seconds):
                return await answered(self.answer, self.transport, self.dials, nobody)
        except TimeoutError:
            raise BadInput(f"{nobody} within {seconds:g} s: {why_not(self.dials)}") from None

    def address(self, peer: PeerRecord) -> Address:
        return parse_address(peer.address)

    # Events from the transport.

    def on_up(self, peer: int) -> None:
        if self.answer is not None and not self.answer.done():
            self.transport.send(peer, (LOOK,))

    def on_frame(self, peer: int, frame: Frame) -> None:
        """A frame that is not a peer's report. CodecError or ValueError if it is not valid."""
        if frame[0] != ROSTER:
            raise CodecError(f"{frame[0]!r:.20} is not a valid answer")
        found = msgspec.convert(frame[1:], Roster)
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(found)
