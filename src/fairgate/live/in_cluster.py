"""Membership of a cluster: the peer that created it keeps the roster. Peers connect by TCP, on one host also by Unix
sockets.

    joiner -> any peer   ("join", its address, its process, its host's name)
    keeper -> joiner     ("members", version, roster)              also sent to all other members
    other  -> joiner     ("keeper", address)                       ask there; ("refused", 0, ...) if the keeper has left
    member -> keeper     ("change", number, change)
    keeper -> member     ("changed", number, version, roster)      and ("members", ...) to all other members
                         ("refused", number, kind, gate, asked, found, why)
    anyone -> member     ("look",)                                 answered by ("members", ...), see directory.py

Rosters and changes are sent as JSON in bytes. Everything but the first request goes over the reliable channel, so a
broken connection delays it but loses nothing. Over Unix sockets, where connections hardly ever break, messages of gates
are sent directly (`DirectLinks`); if one breaks all the same, the gates of the two peers get new views once the peers
are connected again.

There is no recovery from a dead peer: its permits stay taken (`guarantee: none`), and if the keeper dies, no peer can
join or leave. Agreed views are planned to change that.
"""

import asyncio
import logging
import os
import secrets
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from fairgate.core.ids import NIL
from fairgate.errors import BadInput, FairgateError, KMismatch
from fairgate.live.reliable import DirectLinks, ReliableLinks
from fairgate.net.address import Address, TcpAddress, UnixAddress, check_one_kind, check_secure, parse_address
from fairgate.net.codec import CodecError, Frame
from fairgate.net.dial import Dial
from fairgate.net.roster import PEERS, At, Change, Go, Members, PeerRecord, Renew, changed
from fairgate.net.secret import Secret, from_environment
from fairgate.net.tls import Tls
from fairgate.net.transport import Transport
from fairgate.net.unix_socket import path_beside

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine

JOIN, KEEPER, MEMBERS, CHANGE, CHANGED, REFUSED = "join", "keeper", "members", "change", "changed", "refused"
LOOK = "look"
ANY = ("0.0.0.0", "::")
K_MISMATCH, BAD_INPUT = "k", "bad"
LEAVE_SECONDS = 2.0
LEAVE_TRIES = 3  # while the keeper is connected: it may only be slow
NO_KEEPER = "the peer that kept the list of peers of this cluster has left, so peers can no longer join or leave"

log = logging.getLogger("fairgate.live")


@dataclass(frozen=True)
class ClusterOptions:
    """How to join or create a cluster.

    Attributes:
        seeds: Addresses of peers of the cluster, all "host:port" or all "unix:/path". Without seeds this peer creates
            the cluster.
        listen: The address to listen on. Required without seeds; otherwise the default is a free port on the
            interface through which the first seed is reached, or a new Unix socket beside the first seed.
        advertise: The address at which other peers can reach this one, if it is not `listen` (NAT, containers).
        cluster: The name of the cluster. Peers of clusters with other names are refused.
        tls: The certificates to use, from `fairgate.net.keys.load`. Required unless `insecure` is set or
            all addresses are loopback addresses or Unix sockets.
        insecure: Allow connections between hosts without TLS: anyone who can reach the port can enter.
        secret: The secret that the peers share, from `fairgate.net.secret.load`. Required for loopback addresses
            without TLS, since every user of the host can connect to them. By default it is read from the file that
            the environment variable FAIRGATE_SECRET names.
        join_timeout: How many seconds to try to join.
    """

    seeds: tuple[str, ...] = ()
    listen: str | None = None
    advertise: str | None = None
    cluster: str = "fairgate"
    tls: Tls | None = None
    insecure: bool = False
    secret: Secret | None = field(default_factory=from_environment)
    join_timeout: float = 30.0


class ClusterMembership:
    guarantee = "none"

    def __init__(self, engine: "LiveEngine", network: ClusterOptions) -> None:
        self.engine = engine
        self.network = network
        self.addresses = [parse_address(seed) for seed in network.seeds]
        self.bind = parse_address(network.listen) if network.listen else None
        if not self.addresses and self.bind is None:
            raise BadInput("a peer that creates a cluster needs an address to listen on, such as 10.0.0.5:7400")
        self.told = parse_address(network.advertise) if network.advertise else None
        check_one_kind([at for at in (*self.addresses, self.bind, self.told) if at is not None])
        for seed in self.addresses:
            self.check_secure(seed)
        self.members = Members()  # only used by the keeper
        self.keeper = NIL
        self.questions: dict[int, asyncio.Future[Members]] = {}
        self.asked = 0
        self.broken: set[int] = set()  # peers to which the connection broke: messages of gates may be lost

    # Joining.

    async def begin(self) -> Members:
        engine, network = self.engine, self.network
        me = 1 + secrets.randbelow(PEERS - 1)
        bind = self.bind or await place_near(self.addresses[0])
        direct = isinstance(bind, UnixAddress)
        transport = Transport(
            me, network.cluster, engine, tls=network.tls, insecure=network.insecure, secret=network.secret,
            elsewhere=engine.on_frame_elsewhere if direct else None,
        )  # fmt: skip
        self.joined: asyncio.Future[Members] = engine.loop.create_future()
        try:
            identity = self.describe(me, transport.listen(bind), bind)
            links = DirectLinks if direct else ReliableLinks
            self.links = links(transport, engine.lock, engine.on_frame)
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
        network = self.network
        check_secure(address, network.tls is not None, network.insecure, network.secret is not None)

    def take_back(self, transport: Transport, me: int) -> None:
        """Withdraws the request to join. It may have been accepted, and we would stay in the roster forever."""
        for peer in list(transport.up):
            transport.send(peer, (CHANGE, 0, msgspec.json.encode(Go((me,)))))

    def describe(self, me: int, bound: Address, asked: Address) -> PeerRecord:
        at = self.told or bound
        if self.told is None and isinstance(asked, TcpAddress) and isinstance(bound, TcpAddress):
            at = TcpAddress(asked.host, bound.port)
            if at.host in ANY:
                raise BadInput(f"no host can dial {asked}: also give an address to advertise, such as HOST:{at.port}")
        return PeerRecord(me, os.getpid(), str(at), os.geteuid(), int(time.time()), socket.gethostname())

    def may_be(self, peer: int, principal: str) -> bool:
        """Over Unix sockets, a member must be the process that the roster names."""
        record = self.engine.members.peer(peer)
        return record is None or not principal.startswith("unix:") or principal == f"unix:{record.uid}:{record.pid}"

    def on_up(self, peer: int) -> None:
        """Until we have joined, asks every peer that we reach to let us in."""
        if not self.joined.done() and self.keeper == NIL and self.addresses:
            me = self.engine.identity
            self.engine.transport.send(peer, (JOIN, me.socket, me.pid, me.uid, me.since, me.host))
        if peer in self.broken:
            self.broken.discard(peer)
            self.engine.spawn(self.mend(peer))

    async def mend(self, peer: int) -> None:
        """Gives the gates that we share with this peer new views. Not before the connection is up again: a census waits
        for every seat, so with a dead peer the gates would stop."""
        with self.engine.lock:
            gates = [gate.name for gate in self.engine.gates.values() if peer in gate.hosts.values()]
        for gate in gates:
            await self.engine.change(Renew(gate))

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

    async def leave(self) -> Members:
        if self.keeper == self.engine.me and len(self.members.peers) > 1:
            log.warning(
                "the peer that keeps the list of peers is leaving: peers can no longer join or leave this cluster"
            )
        leaving = asyncio.ensure_future(self.change(Go((self.engine.me,))))
        for _ in range(LEAVE_TRIES):
            done, _ = await asyncio.wait([leaving], timeout=LEAVE_SECONDS)
            if done:
                return leaving.result()
            if self.keeper not in self.engine.transport.up:
                break
        leaving.cancel()
        raise TimeoutError

    def spread(self, members: Members) -> None:
        """Only the keeper does this."""
        if self.keeper == self.engine.me:
            data = msgspec.json.encode(members)
            for peer in members.peers:
                if peer.id != self.engine.me:
                    self.engine.links.send(peer.id, (MEMBERS, members.version, data))

    def adopted(self, members: Members) -> None:
        """Peers that share a gate all dial each other, in case only one side of a pair can."""
        if members.peer(self.keeper) is None:
            for question in self.questions.values():
                if not question.done():
                    question.set_exception(BadInput(NO_KEEPER))
        self.broken &= {peer.id for peer in members.peers}
        for gate in members.gates:
            hosts = {seat.host for seat in gate.seats}
            if self.engine.me in hosts:
                for host in hosts - {self.engine.me}:
                    self.engine.links.dial(host)

    def opened(self, gate: str) -> None:
        log.info("gate %s: if a peer of this cluster dies, its permits stay taken (guarantee: none)", gate)

    def on_down(self, peer: int, why: str) -> None:
        if self.engine.members.peer(peer) is not None and not self.engine.closed:
            log.debug("the connection to peer %d broke: %s", peer, why)
            if not self.links.loses_nothing:
                self.broken.add(peer)
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
            raise CodecError(f"{kind!r:.20} is not a valid message")

    def on_join(self, peer: int, frame: Frame) -> None:
        engine = self.engine
        if self.keeper != engine.me:
            keeper = engine.members.peer(self.keeper)
            if keeper is not None:
                engine.transport.send(peer, (KEEPER, keeper.socket))
            elif engine.members.peers:  # otherwise we have not joined yet either
                engine.transport.send(peer, (REFUSED, 0, BAD_INPUT, "", 0, 0, NO_KEEPER))
            return
        if self.members.peer(peer) is None:
            new = PeerRecord(*msgspec.convert((peer, *fields_of(frame)), type=tuple[int, int, str, int, int, str]))
            try:
                address = parse_address(new.socket)
                check_one_kind([parse_address(engine.identity.socket), address])
                self.check_secure(address)
            except BadInput as wrong:
                engine.transport.send(peer, (REFUSED, 0, BAD_INPUT, "", 0, 0, f"refused by the cluster: {wrong}"))
                return
            peers = (*self.members.peers, new)
            self.members = msgspec.structs.replace(self.members, version=self.members.version + 1, peers=peers)
        engine.spawn(engine.announce(self.members))

    def on_look(self, peer: int) -> None:
        members = self.members if self.keeper == self.engine.me else self.engine.members
        if members.peers:  # otherwise we have not joined yet either
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
                raise BadInput("this peer does not keep the list of peers of the cluster")
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


def why_not(dials: list[Dial]) -> str:
    """Why each of these addresses could not be reached, for an error message."""
    return "; ".join(sorted({f"{dial.address}: {dial.why or 'no answer'}" for dial in dials}))


def fields_of(frame: Frame) -> Frame:
    """The fields of a JOIN frame, in the order of PeerRecord."""
    _, address, pid, uid, since, host = frame
    return (pid, address, uid, since, host)


async def place_near(seed: Address) -> Address:
    """Where to listen by default: on the address of this host from which the seed would be reached (this sends no
    packet), or on a Unix socket beside the seed."""
    if isinstance(seed, UnixAddress):
        return UnixAddress(path_beside(seed.path))
    try:
        found = await asyncio.get_running_loop().getaddrinfo(seed.host, seed.port, type=socket.SOCK_DGRAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)
            return TcpAddress(str(probe.getsockname()[0]), 0)
    except OSError as wrong:
        raise BadInput(f"cannot reach {seed}: {wrong.strerror}") from wrong
