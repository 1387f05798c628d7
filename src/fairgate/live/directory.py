"""Finds the peers of this host or of a cluster, so that inspect.py can query them.

On one host the members file lists the peers. In a cluster any peer answers a request for the roster (`look`), even from
a process that is not a member. So inspecting changes nothing, and works even when the peer that keeps the roster is
gone. TLS decides who may ask, as for everything between hosts.
"""

import asyncio
from typing import Protocol

import msgspec

from fairgate.errors import BadInput
from fairgate.live.in_cluster import LOOK, MEMBERS, ClusterMembership, ClusterOptions, why_not
from fairgate.live.on_host import CLUSTER, NEWS, HostMembership, beside
from fairgate.net import occupancy
from fairgate.net.access import Access
from fairgate.net.address import Address, UnixAddress, check_one_kind, parse_address
from fairgate.net.codec import CodecError, Frame
from fairgate.net.members import make_change, remove_dead
from fairgate.net.roster import Members, PeerRecord, Rise
from fairgate.net.transport import Handler, Transport


class Directory(Protocol):
    guarantee: str

    def where(self) -> str:
        """Where the peers are, in words."""

    def named(self) -> dict[str, str]:
        """The same for JSON output."""

    def begin(self, me: int, handler: Handler) -> Transport: ...

    async def members(self) -> Members:
        """The current roster. BadInput if it cannot be had."""

    def address(self, peer: PeerRecord) -> Address: ...

    def ghosts(self) -> dict[int, tuple[occupancy.Held, float]]:
        """The ghosts by seat, each with the time since when it exists. Reads files."""

    async def end_ghost(self, gate: str, ident: int) -> Members: ...

    # Events from the transport.

    def on_up(self, peer: int) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None:
        """A frame that is not a peer's report. CodecError if it is not valid."""


class HostDirectory:
    guarantee = HostMembership.guarantee

    def __init__(self, rule: Access) -> None:
        self.rule = rule

    def where(self) -> str:
        return f"in {self.rule.folder}"

    def named(self) -> dict[str, str]:
        return {"folder": str(self.rule.folder)}

    def begin(self, me: int, handler: Handler) -> Transport:
        return Transport(me, CLUSTER, handler)

    async def members(self) -> Members:
        members, _ = await beside(lambda: remove_dead(self.rule))
        return members

    def address(self, peer: PeerRecord) -> Address:
        return UnixAddress(peer.socket)

    def ghosts(self) -> dict[int, tuple[occupancy.Held, float]]:
        found = {}
        for held in occupancy.found(self.rule.folder):
            try:
                found[held.ident] = (held, occupancy.path_of(self.rule.folder, held.ident).stat().st_mtime)
            except OSError:
                continue  # it has just ended
        return found

    async def end_ghost(self, gate: str, ident: int) -> Members:
        members = await beside(lambda: make_change(self.rule, Rise(gate, (ident,))))
        occupancy.path_of(self.rule.folder, ident).unlink(missing_ok=True)
        return members

    def on_up(self, peer: int) -> None:
        pass

    def on_frame(self, peer: int, frame: Frame) -> None:
        if frame[0] != NEWS:  # peers send it to every new connection; we read the roster from the file
            raise CodecError(f"{frame[0]!r:.20} is not a valid answer")


class ClusterDirectory:
    guarantee = ClusterMembership.guarantee

    def __init__(self, network: ClusterOptions) -> None:
        self.network = network
        self.seeds = [parse_address(seed) for seed in network.seeds]
        check_one_kind(self.seeds)
        self.answer: asyncio.Future[Members] | None = None

    def where(self) -> str:
        return f"of cluster {self.network.cluster}"

    def named(self) -> dict[str, str]:
        return {"cluster": self.network.cluster}

    def begin(self, me: int, handler: Handler) -> Transport:
        network = self.network
        self.transport = Transport(me, network.cluster, handler, tls=network.tls, insecure=network.insecure)
        self.dials = [self.transport.dial(address) for address in self.seeds]
        return self.transport

    async def members(self) -> Members:
        """From the first peer to answer: a seed, or a peer we have connected to since."""
        self.answer = asyncio.get_running_loop().create_future()
        for peer in list(self.transport.up):
            self.transport.send(peer, (LOOK,))
        seconds = self.network.join_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self.answer
        except TimeoutError:
            name = self.network.cluster
            raise BadInput(f"no peer of cluster {name} answered within {seconds:g} s: {why_not(self.dials)}") from None

    def address(self, peer: PeerRecord) -> Address:
        return parse_address(peer.socket)

    def ghosts(self) -> dict[int, tuple[occupancy.Held, float]]:
        return {}

    async def end_ghost(self, gate: str, ident: int) -> Members:
        raise NotImplementedError("between hosts there are no ghosts")

    def on_up(self, peer: int) -> None:
        if self.answer is not None and not self.answer.done():
            self.transport.send(peer, (LOOK,))

    def on_frame(self, peer: int, frame: Frame) -> None:
        if frame[0] != MEMBERS or [type(part) for part in frame] != [str, int, bytes]:
            raise CodecError(f"{frame[0]!r:.20} is not a valid answer")
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(msgspec.json.decode(frame[2], type=Members))
