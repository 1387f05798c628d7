"""Several hosts: peers dial each other by TCP, and the peer that made the cluster keeps the roster.

    joiner -> anybody    ("join", its address, its process, its host's name)
    keeper -> joiner     ("members", version, roster)              and to everybody else: somebody has come
    other  -> joiner     ("keeper", address)                       ask there; ("refused", 0, ...) if it has left
    member -> keeper     ("change", number, change)
    keeper -> member     ("changed", number, version, roster)      and ("members", ...) to everybody else
                         ("refused", number, kind, gate, asked, found, why)
    anybody -> member    ("look",)                                 and ("members", ...) is the answer: see directory.py

Rosters and changes travel as JSON in bytes. All of it but the first question goes over the reliable channel, so a
connection that breaks delays it and loses nothing. A peer that dies is not survived: whatever it had is lost to the
gate (`guarantee: none`), and if it is the keeper, nobody can come or go. Agreed views are to change that.
"""

import asyncio
import logging
import os
import secrets
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from fairgate.core.ids import NIL
from fairgate.errors import BadInput, FairgateError, KMismatch
from fairgate.live.reliable import ReliableLinks
from fairgate.net.address import Address, TcpAddress, UnixAddress, check_secure, parse_address
from fairgate.net.codec import CodecError, Frame
from fairgate.net.dial import Dial
from fairgate.net.members import PEERS
from fairgate.net.roster import At, Change, Go, Members, PeerRecord, changed
from fairgate.net.tls import Tls
from fairgate.net.transport import Transport
from fairgate.net.watch import start_time

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine

JOIN, KEEPER, MEMBERS, CHANGE, CHANGED, REFUSED = "join", "keeper", "members", "change", "changed", "refused"
LOOK = "look"
ANY = ("0.0.0.0", "::")
K_MISMATCH, BAD_INPUT = "k", "bad"
LEAVE_SECONDS = 2.0
NO_KEEPER = "the peer that kept the roster of this cluster has left: nobody can come or go any more"

log = logging.getLogger("fairgate.live")


@dataclass(frozen=True)
class ClusterOptions:
    """How to be a peer between hosts. Without seeds this peer makes the cluster, and must be told where to listen."""

    seeds: tuple[str, ...] = ()
    listen: str | None = None  # left out: any free port, where the seed can be reached from
    advertise: str | None = None  # where others reach us, if that is another address (NAT, containers)
    cluster: str = "fairgate"
    tls: Tls | None = None
    insecure: bool = False
    join_timeout: float = 30.0


class ClusterMembership:
    guarantee = "none"

    def __init__(self, engine: "LiveEngine", network: ClusterOptions) -> None:
        self.engine = engine
        self.network = network
        self.addresses = [parse_address(seed) for seed in network.seeds]
        self.bind = parse_address(network.listen) if network.listen else None
        if not self.addresses and self.bind is None:
            raise BadInput("whoever makes a cluster must say where to listen, such as --listen 10.0.0.5:7400")
        self.told = parse_address(network.advertise) if network.advertise else None
        check_tcp(*self.addresses, self.bind, self.told)
        for seed in self.addresses:
            self.check_secure(seed)
        self.members = Members()  # the keeper's
        self.keeper = NIL
        self.questions: dict[int, asyncio.Future[Members]] = {}
        self.asked = 0

    # Joining.

    async def begin(self) -> Members:
        engine, network = self.engine, self.network
        me = 1 + secrets.randbelow(PEERS - 1)
        transport = Transport(me, network.cluster, engine, tls=network.tls, insecure=network.insecure)
        self.joined: asyncio.Future[Members] = engine.loop.create_future()
        try:
            bind = self.bind or TcpAddress(await local_address(self.addresses), 0)
            identity = self.describe(me, transport.listen(bind), bind)
            self.links = ReliableLinks(transport, engine.lock, engine.on_frame)
            engine.becomes(identity, transport, self.links)
            if self.addresses:
                return await self.join(transport)
        except BaseException:
            self.take_back(transport, me)
            await transport.close()
            raise
        self.keeper = me
        self.members = Members(version=1, peers=(identity,))
        return self.members

    async def join(self, transport: Transport) -> Members:
        network = self.network
        self.dials = [transport.dial(address) for address in self.addresses]
        try:
            async with asyncio.timeout(network.join_timeout):
                return await self.joined
        except TimeoutError:
            raise BadInput(f"could not join within {network.join_timeout:g} s: {why_not(self.dials)}") from None

    def check_secure(self, address: Address) -> None:
        check_secure(address, self.network.tls is not None, self.network.insecure)

    def take_back(self, transport: Transport, me: int) -> None:
        """We may have been let in, and nobody has told us yet: else we would stay in the roster for ever."""
        for peer in list(transport.up):
            transport.send(peer, (CHANGE, 0, msgspec.json.encode(Go((me,)))))

    def describe(self, me: int, bound: Address, asked: Address) -> PeerRecord:
        assert isinstance(bound, TcpAddress)
        assert isinstance(asked, TcpAddress)
        if self.told is None and asked.host in ANY:
            raise BadInput(f"{asked} is no address for others to dial: say --advertise HOST:{bound.port} too")
        at = self.told or TcpAddress(asked.host, bound.port)
        pid = os.getpid()
        return PeerRecord(me, pid, start_time(pid), str(at), os.geteuid(), int(time.time()), socket.gethostname())

    def on_up(self, peer: int) -> None:
        """Whoever it is that we reached first: may we join?"""
        if not self.joined.done() and self.keeper == NIL and self.addresses:
            me = self.engine.identity
            self.engine.transport.send(peer, (JOIN, me.socket, me.pid, me.started, me.uid, me.since, me.host))

    # The roster.

    async def change(self, change: Change) -> Members:
        if self.keeper == self.engine.me:
            return self.apply(change)
        if self.engine.members.peer(self.keeper) is None:
            raise BadInput(NO_KEEPER)
        self.asked += 1
        answer: asyncio.Future[Members] = self.engine.loop.create_future()
        self.questions[self.asked] = answer
        with self.engine.lock:
            self.engine.links.send(self.keeper, (CHANGE, self.asked, msgspec.json.encode(change)))
        return await answer

    def apply(self, change: Change) -> Members:
        after = changed(self.members, change, At(int(time.time())))
        if after != self.members:
            self.members = msgspec.structs.replace(after, version=self.members.version + 1)
        return self.members

    async def look(self) -> Members:
        return self.members if self.keeper == self.engine.me else self.engine.members

    async def check(self) -> Members:
        return await self.look()

    async def leave(self) -> Members:
        if self.keeper == self.engine.me and len(self.members.peers) > 1:
            log.warning("the peer that keeps the roster leaves: nobody can come or go any more")
        return await asyncio.wait_for(self.change(Go((self.engine.me,))), LEAVE_SECONDS)

    def spread(self, members: Members) -> None:
        """The keeper's part."""
        if self.keeper == self.engine.me:
            data = msgspec.json.encode(members)
            for peer in members.peers:
                if peer.id != self.engine.me:
                    self.engine.links.send(peer.id, (MEMBERS, members.version, data))

    def adopted(self, members: Members) -> None:
        """All who share a gate dial each other, in case that only one of two can."""
        if members.peer(self.keeper) is None:
            for question in self.questions.values():
                if not question.done():
                    question.set_exception(BadInput(NO_KEEPER))
        for gate in members.gates:
            hosts = {seat.host for seat in gate.seats}
            if self.engine.me in hosts:
                for host in hosts - {self.engine.me}:
                    self.engine.links.dial(host)

    def opened(self, gate: str) -> None:
        log.info("gate %s: between hosts a peer that dies is not survived (guarantee: none)", gate)

    def on_down(self, peer: int, why: str) -> None:
        if self.engine.members.peer(peer) is not None and not self.engine.closed:
            log.debug("the connection with peer %d broke: %s", peer, why)
            with self.engine.lock:
                self.links.dial(peer)
            self.links.is_missed(peer, why)

    # Frames.

    def on_frame(self, peer: int, frame: Frame) -> None:
        if self.engine.links.take(peer, frame):
            return
        kind = frame[0]
        if kind == JOIN:
            self.on_join(peer, frame)
        elif kind == KEEPER:
            self.on_keeper(frame[1])
        elif kind == LOOK:
            self.on_look(peer)
        elif kind == MEMBERS:
            self.on_members(peer, msgspec.json.decode(frame[2], type=Members))
        elif kind == CHANGE:
            self.on_change(peer, frame[1], frame[2])
        elif kind == CHANGED:
            self.answered(frame[1], msgspec.json.decode(frame[3], type=Members))
        elif kind == REFUSED:
            self.on_refused(*frame[1:])
        else:
            raise CodecError(f"{kind!r:.20} is nothing a peer says")

    def on_join(self, peer: int, frame: Frame) -> None:
        engine = self.engine
        if self.keeper != engine.me:
            keeper = engine.members.peer(self.keeper)
            if keeper is not None:
                engine.transport.send(peer, (KEEPER, keeper.socket))
            elif engine.members.peers:  # else we are about to join ourselves
                engine.transport.send(peer, (REFUSED, 0, BAD_INPUT, "", 0, 0, NO_KEEPER))
            return
        if self.members.peer(peer) is None:
            new = PeerRecord(*msgspec.convert((peer, *fields_of(frame)), type=tuple[int, int, int, str, int, int, str]))
            try:
                self.check_secure(parse_address(new.socket))
            except BadInput as wrong:
                engine.transport.send(peer, (REFUSED, 0, BAD_INPUT, "", 0, 0, f"refused by the cluster: {wrong}"))
                return
            peers = (*self.members.peers, new)
            self.members = msgspec.structs.replace(self.members, version=self.members.version + 1, peers=peers)
        engine.spawn(engine.announce(self.members))

    def on_look(self, peer: int) -> None:
        members = self.members if self.keeper == self.engine.me else self.engine.members
        if members.peers:  # else we are about to join ourselves
            self.engine.transport.send(peer, (MEMBERS, members.version, msgspec.json.encode(members)))

    def on_keeper(self, address: str) -> None:
        known = [str(dial.address) for dial in self.dials]
        if not self.joined.done() and address not in known:
            self.dials.append(self.engine.transport.dial(parse_address(address)))

    def on_members(self, peer: int, members: Members) -> None:
        if not self.joined.done():
            self.keeper = peer
            try:
                for other in members.peers:
                    self.check_secure(parse_address(other.socket))
            except BadInput as wrong:
                self.joined.set_exception(wrong)
            else:
                self.joined.set_result(members)
            return
        with self.engine.step():
            self.engine.adopt(members)

    def on_change(self, peer: int, number: int, data: bytes) -> None:
        engine = self.engine
        try:
            if self.keeper != engine.me:
                raise BadInput("this peer does not keep the roster: ask who does")
            members = self.apply(msgspec.json.decode(data, type=Change))
        except KMismatch as wrong:
            answer: Frame = (REFUSED, number, K_MISMATCH, wrong.gate, wrong.asked, wrong.found, str(wrong))
        except BadInput as wrong:
            answer = (REFUSED, number, BAD_INPUT, "", 0, 0, str(wrong))
        else:
            answer = (CHANGED, number, members.version, msgspec.json.encode(members))
            engine.spawn(engine.announce(members))
        with engine.lock:
            engine.links.send(peer, answer)

    def answered(self, number: int, members: Members) -> None:
        question = self.questions.pop(number, None)
        if question is not None and not question.done():
            question.set_result(members)

    def on_refused(self, number: int, kind: str, gate: str, asked: int, found: int, why: str) -> None:
        question = self.questions.pop(number, None)
        error: FairgateError = KMismatch(gate, asked, found) if kind == K_MISMATCH else BadInput(why)
        if number == 0 and not self.joined.done():
            self.joined.set_exception(error)
        if question is not None and not question.done():
            question.set_exception(error)

    def close(self) -> None:
        pass


def check_tcp(*addresses: Address | None) -> None:
    if any(isinstance(address, UnixAddress) for address in addresses):
        raise BadInput("between hosts an address is host:port")


def why_not(dials: list[Dial]) -> str:
    """Nobody has answered."""
    return "; ".join(sorted({f"{dial.address}: {dial.why or 'no answer'}" for dial in dials}))


def fields_of(frame: Frame) -> Frame:
    """Of a JOIN, in the order of a Peer."""
    _, address, pid, started, uid, since, host = frame
    return (pid, started, address, uid, since, host)


async def local_address(seeds: list[Address]) -> str:
    """Of this host, as the first seed would see it. No packet is sent for that."""
    seed = seeds[0]
    assert isinstance(seed, TcpAddress)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(seed.host, seed.port, type=socket.SOCK_DGRAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)
            return str(probe.getsockname()[0])
    except OSError as wrong:
        raise BadInput(f"cannot reach {seed}: {wrong.strerror}") from wrong
