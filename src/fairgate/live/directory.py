"""Whom to ask: the peers of this host, or those of a cluster between hosts (inspect.py asks them).

On one host the members file says who there is. Of a cluster any of its peers does: who asks for the roster (`look`)
need not be a member, so looking changes nothing, and goes on when the peer that keeps the roster is gone. Who may ask
is for TLS to say, as with everything between hosts.
"""

import asyncio
from typing import Protocol

import msgspec

from fairgate.errors import BadInput
from fairgate.live.in_cluster import LOOK, MEMBERS, ClusterMembership, ClusterOptions, check_tcp, why_not
from fairgate.live.on_host import CLUSTER, NEWS, HostMembership, beside
from fairgate.net import occupancy
from fairgate.net.access import Access
from fairgate.net.address import Address, UnixAddress, parse_address
from fairgate.net.codec import CodecError, Frame
from fairgate.net.members import make_change, remove_dead
from fairgate.net.roster import Members, PeerRecord, Rise
from fairgate.net.transport import Handler, Transport


class Directory(Protocol):
    guarantee: str

    def where(self) -> str:
        """For people: the peers are there."""

    def named(self) -> dict[str, str]:
        """The same for programs."""

    def begin(self, me: int, handler: Handler) -> Transport: ...

    async def members(self) -> Members:
        """BadInput if nobody can say."""

    def address(self, peer: PeerRecord) -> Address: ...

    def ghosts(self) -> dict[int, tuple[occupancy.Held, float]]:
        """What outlived its peer, by its seat, and since when. It reads files."""

    async def end_ghost(self, gate: str, ident: int) -> Members: ...

    # What the transport tells.

    def on_up(self, peer: int) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None:
        """No answer to what peers are asked. CodecError if it is nothing at all."""


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
                continue  # it is over just now
        return found

    async def end_ghost(self, gate: str, ident: int) -> Members:
        members = await beside(lambda: make_change(self.rule, Rise(gate, (ident,))))
        occupancy.path_of(self.rule.folder, ident).unlink(missing_ok=True)
        return members

    def on_up(self, peer: int) -> None:
        pass

    def on_frame(self, peer: int, frame: Frame) -> None:
        if frame[0] != NEWS:  # which is told to everybody who comes; we read the roster ourselves
            raise CodecError(f"{frame[0]!r:.20} is no answer")


class ClusterDirectory:
    guarantee = ClusterMembership.guarantee

    def __init__(self, network: ClusterOptions) -> None:
        self.network = network
        self.seeds = [parse_address(seed) for seed in network.seeds]
        check_tcp(*self.seeds)
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
        """From whoever answers first, of the seeds and of all that we have come to know since."""
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
            raise CodecError(f"{frame[0]!r:.20} is no answer")
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(msgspec.json.decode(frame[2], type=Members))
