"""How a peer gets into a cluster: it creates it, joins it, joins it again after it was excluded, or goes on with it.

    anyone -> member     ("look",)
    member -> anyone     ("roster", version, voters, lingering, content, leader)

A peer that wants to join asks any member for the roster, which tells it the times of the cluster, and then asks that
member for admission (`Join`, recovery/agreed.py). A peer that has saved state never creates another cluster (saved.py).
"""

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from fairgate.arguments import LONG_AGO, SECOND
from fairgate.errors import BadInput, KMismatch
from fairgate.live.cluster_options import ClusterOptions, place_near
from fairgate.live.reach import Reach
from fairgate.live.reliable import DirectLinks, ReliableLinks
from fairgate.live.saved import StateFolder
from fairgate.live.views_driver import ViewsDriver, setup_of
from fairgate.net.address import Address, TcpAddress, UnixAddress, check_one_kind, check_secure, parse_address
from fairgate.net.codec import Frame
from fairgate.net.dial import Dial
from fairgate.net.principal import own_principal
from fairgate.net.rationed_log import RationedLog
from fairgate.net.system import clock
from fairgate.net.transport import Transport
from fairgate.recovery.agreed import Value
from fairgate.recovery.roster import PEERS, Change, Members, Newcomer, PeerRecord, RosterBook, Sit, as_key, members_of

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine

T = TypeVar("T")
LOOK, ROSTER = "look", "roster"
ANY = ("0.0.0.0", "::")
ROUND_TRIPS = 4  # that must fit a lease
MOST_SEARCHED = 16  # addresses
REJOIN_SECONDS = 0.5  # between attempts
LOOK_SECONDS = 0.2  # between two looks at the roster, of a peer that cannot reach all its members
CONTACT_SECONDS = 2.0  # until another member is asked
NOT_LET_IN = "connected, but not let in: most voters of the cluster may be gone (see `fairgate peer status`)"
MAYBE_LOST = "; if most standing peers of this cluster are lost for good, see `fairgate abandon-majority --help`"

log = logging.getLogger("fairgate.live")
other_clusters = RationedLog(log)


class Entrance:
    """The part of ClusterMembership (in_cluster.py) that gets this peer in."""

    transport: Transport
    links: ReliableLinks
    driver: ViewsDriver
    identity: PeerRecord

    def __init__(self, engine: "LiveEngine", network: ClusterOptions) -> None:
        self.engine = engine
        self.network = network
        self.times = network.times()
        self.addresses = [parse_address(seed) for seed in network.seeds]
        self.bind = parse_address(network.listen) if network.listen else None
        if not self.addresses and self.bind is None:
            raise BadInput("a peer that creates a cluster needs an address to listen on, such as 10.0.0.5:7400")
        self.told = parse_address(network.advertise) if network.advertise else None
        check_one_kind([at for at in (*self.addresses, self.bind, self.told) if at is not None])
        for seed in self.addresses:
            self.check_secure(seed)
        self.standing = not self.addresses if network.standing is None else network.standing
        self.state: StateFolder | None = None
        self.cluster = ""  # its id, once it is known
        self.reach = Reach(self)
        self.views_run = False  # `driver` exists
        self.member = asyncio.Event()
        self.ask_another = asyncio.Event()  # the member that was asked for admission leaves itself
        self.stopped = asyncio.Event()
        self.pending: dict[int, tuple[Change, asyncio.Future[None]]] = {}
        self.broken: set[int] = set()  # peers to which the connection broke: messages of gates may be lost
        self.until = 0  # of the lease that the engine knows
        self.searches: list[Dial] = []  # for the cluster, if this peer has lost it
        self.looked: dict[int, int] = {}  # peer -> when it was asked for the roster, until it answers
        self.members_log = RationedLog(log)
        self.latest: Members | None = None  # the roster of another peer that was heard of last

    async def begin(self) -> None:
        engine, network = self.engine, self.network
        bind = self.bind or await place_near(self.addresses[0])
        self.direct = isinstance(bind, UnixAddress)
        self.transport = Transport(
            fresh_id(), network.cluster, engine, tls=network.tls, insecure=network.insecure, secret=network.secret,
            elsewhere=engine.on_frame_elsewhere if self.direct else None,
        )  # fmt: skip
        self.found: asyncio.Future[tuple[int, Members]] = engine.loop.create_future()
        self.joined: asyncio.Future[None] = engine.loop.create_future()
        try:
            self.state = StateFolder(network.state) if network.state is not None else None
            self.address = str(self.address_of(self.transport.listen(bind), bind))
            engine.traffic.lease_until = LONG_AGO
            self.take_identity()
            await self.join_or_create()
        except BaseException:
            self.close()
            await self.transport.close()
            raise

    def take_identity(self) -> None:
        me, pid, uid = self.transport.me, os.getpid(), os.geteuid()
        proved = own_principal(self.direct, self.network.tls, self.network.secret)
        self.identity = PeerRecord(
            me, self.address, proved, pid, uid, socket.gethostname(), int(time.time()), self.standing,
            "" if self.state is None else self.state.digest(),
        )  # fmt: skip
        links = DirectLinks if self.direct else ReliableLinks
        self.links = links(self.transport, self.engine.lock, self.engine.on_frame)
        self.engine.becomes(self.identity, self.transport, self.links)

    def address_of(self, bound: Address, asked: Address) -> Address:
        """At which others can reach this peer."""
        at = self.told or bound
        if self.told is None and isinstance(asked, TcpAddress) and isinstance(bound, TcpAddress):
            at = TcpAddress(asked.host, bound.port)
            if at.host in ANY:
                raise BadInput(f"no host can dial {asked}: also give an address to advertise, such as HOST:{at.port}")
        return at

    def check_secure(self, address: Address) -> None:
        network = self.network
        check_secure(address, network.tls is not None, network.insecure, network.secret is not None)

    async def join_or_create(self) -> None:
        """A peer that has been in a cluster before never creates another one."""
        saved = None if self.state is None else self.state.load()
        if saved is None and not self.addresses:
            self.create(Members(secrets.token_hex(8), *self.times))
        elif saved is None:
            await self.join(self.addresses)
        elif saved.alone:
            if saved.wait():
                log.warning("waiting %g s for leases of the time before the restart to end", saved.wait() / SECOND)
                await asyncio.sleep(saved.wait() / SECOND)
            self.create(Members(saved.cluster, saved.lease, saved.drift, saved.epoch + 1))
        else:
            self.cluster = saved.cluster
            log.info("joining cluster %s again", saved.cluster)
            known = [parse_address(address) for address in saved.addresses]
            await self.join(list(dict.fromkeys([*self.addresses, *known])))

    def create(self, first: Members) -> None:
        self.run_views(replace(first, peers=(self.identity,)), founder=True)
        self.step(self.driver.views.timer_due, "watch")  # there is nobody whose lead it could wait for
        self.step(self.driver.views.timer_due, "beat")
        self.step(self.adopted, self.driver.views.at, self.driver.views.value)

    def run_views(self, members: Members, founder: bool = False) -> None:
        me = self.identity.id
        self.cluster = members.cluster
        self.lease = members.lease
        self.until = 0
        self.reach.reset()
        setup = setup_of(me if founder else None, members.lease, members.drift)
        self.driver = ViewsDriver(self, me, setup, RosterBook(members), self)
        self.views_run = True
        self.links.patience = 0 if self.direct else self.driver.views.patience
        self.step(self.driver.views.on_start)

    async def join(self, addresses: list[Address], again: bool = False) -> None:
        network = self.network
        dials = [self.transport.dial(address) for address in addresses]
        try:
            async with asyncio.timeout(network.join_timeout):
                looking = self.found if again else answered(self.found, self.transport, dials, "cannot join")
                contact, members = await looking
                if again:
                    contact, members = await self.reach_all(contact, members, dials)
                self.ask_to_join(contact, members, () if again else self.first_seats())
                await self.let_in(contact, members, dials)
        except TimeoutError:
            hint = "" if self.state is None or self.state.last is None else MAYBE_LOST
            why = why_not(dials, self.transport.up)
            raise BadInput(f"could not join within {network.join_timeout:g} s: {why}{hint}") from None
        for dial in dials:
            if dial.is_refused:
                log.warning("%s: %s", dial.address, dial.why)
            if dial in self.transport.dials:
                self.transport.forget(dial)

    async def reach_all(self, contact: int, members: Members, dials: list[Dial]) -> tuple[int, Members]:
        """Returns the latest roster, once this peer can reach everyone in it.

        A peer that was excluded and still cannot reach a member would be excluded again, and again. Each time it would
        cost the gates a census, and perhaps a lease."""
        while True:
            others = {peer.id: parse_address(peer.address) for peer in members.peers if peer.address != self.address}
            known = {dial.peer for dial in dials}
            dials += [self.transport.dial(others[peer], peer, quiet=True) for peer in others if peer not in known]
            there = sorted([peer for peer in others if peer in self.transport.up])
            if len(there) == len(others):
                return contact, members
            for peer in [peer for peer in there if peer > contact][:1] or there[:1]:
                contact = peer
                self.look_at(peer)
            await asyncio.sleep(LOOK_SECONDS)
            members = self.latest or members

    async def let_in(self, contact: int, members: Members, dials: list[Dial]) -> None:
        """Ask one member after the other: the first one may be cut off from the voters, or end meanwhile."""
        others = {peer.id: parse_address(peer.address) for peer in members.peers}
        while not await self.is_answered(contact):
            known = {dial.peer for dial in dials}
            dials += [self.transport.dial(others[peer], peer, quiet=True) for peer in others if peer not in known]
            there = [peer for peer in others if peer in self.transport.up]
            later = [peer for peer in there if peer > contact]
            if there:
                contact = min(later or there)
                self.step(self.driver.views.on_join, contact)
        await self.joined

    async def is_answered(self, contact: int) -> bool:
        """False if another member should be asked: this one is silent, has ended, or leaves."""
        for _ in range(round(CONTACT_SECONDS / LOOK_SECONDS)):
            self.ask_another.clear()
            if (await asyncio.wait([self.joined], timeout=LOOK_SECONDS))[0]:
                return True
            if self.ask_another.is_set() or contact not in self.transport.up:
                break
        return False

    def first_seats(self) -> tuple[Sit, ...]:
        """One for each gate that was opened before this process became a peer: joining and sitting are one change."""
        return tuple([Sit(gate.name, gate.k, gate.protocol, 1) for gate in self.engine.gates.values()])

    def ask_to_join(self, contact: int, members: Members, seats: tuple[Sit, ...]) -> None:
        for peer in members.peers:
            self.check_secure(parse_address(peer.address))
        for sit in seats:
            gate = members.gate(sit.gate)
            if gate is not None and gate.k != sit.k:
                raise KMismatch(sit.gate, sit.k, gate.k)
        self.run_views(members)
        views = self.driver.views
        views.about_me = as_key(Newcomer(self.identity, seats))
        views.standing = self.standing
        self.step(views.on_join, contact)

    async def join_again(self, why: str) -> None:
        """This peer was excluded. Anyone who might still know its id must not take it for the member that it was."""
        self.members_log.warning("%s; joining again", why)
        members = self.engine.members
        known = [parse_address(peer.address) for peer in members.peers if peer.address != self.address]
        while True:
            self.found, self.joined = self.engine.loop.create_future(), self.engine.loop.create_future()
            self.latest = None
            self.rename(fresh_id())
            with self.engine.step():
                self.take_identity()
                self.engine.start_again(why)
            try:
                await self.join(list(dict.fromkeys([*self.addresses, *known])), again=True)
            except BadInput as wrong:
                self.members_log.error("%s; trying again", wrong)
                self.driver.end()
                await asyncio.sleep(REJOIN_SECONDS)
            else:
                self.members_log.warning("this peer has joined again")
                return

    def rename(self, me: int) -> None:
        transport = self.transport
        self.links.end()
        for dial in list(transport.dials):
            transport.forget(dial)
        transport.me = me
        for connection in list(transport.connections):
            connection.drop("this peer has another id now")

    def close(self) -> None:
        self.reach.close()
        if self.views_run:
            self.driver.end()
        if self.state is not None:
            self.state.close()
            self.state = None

    # The rest of the membership.

    def step(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Calls it in a step of the engine, and looks at what has changed afterwards."""
        raise NotImplementedError

    def adopted(self, at: int, value: Value) -> None:
        raise NotImplementedError

    def applied(self, number: int) -> None:
        raise NotImplementedError

    def turned_away(self) -> None:
        raise NotImplementedError

    def denied(self, number: int, why: str) -> None:
        raise NotImplementedError

    def excluded(self, why: str) -> None:
        raise NotImplementedError

    # Frames.

    def on_look(self, peer: int) -> None:
        if self.member.is_set():  # otherwise we have not joined yet either
            self.transport.send(peer, self.roster_frame())

    def roster_frame(self) -> Frame:
        views = self.driver.views
        _, voters, _, lingering, content = views.value
        return (ROSTER, views.at, voters, tuple([peer for peer, _ in lingering]), content, views.leader)

    def on_roster(self, peer: int, frame: Frame) -> None:
        """Only from a peer that was asked (`look_at`), at an address of a member or a contact: it may exclude us."""
        asked = self.looked.pop(peer, None)
        if asked is None:
            return
        _, _, _, _, content, _ = frame
        members = members_of(content)
        ours = self.cluster or members.cluster
        if self.found.done() and members.cluster == ours:
            self.found_elsewhere(members)
        elif self.found.done() or members.cluster != ours:
            self.wrong_cluster(peer, members.cluster)
        else:
            self.cluster = ours
            self.found.set_result((peer, members))
            self.check_round_trip(peer, clock() - asked, members.lease)

    def look_at(self, peer: int) -> None:
        self.looked[peer] = clock()
        self.transport.send(peer, (LOOK,))

    def check_round_trip(self, peer: int, took: int, lease: int) -> None:
        if ROUND_TRIPS * took > lease:
            where = self.transport.up[peer].where
            log.warning(
                "a round trip to %s took %.1f s: the lease of this cluster, %g s, is too short for that, and permits"
                " may be lost", where, took / SECOND, lease / SECOND,
            )  # fmt: skip

    def search(self) -> None:
        """No majority answers. The cluster may have gone on without this peer, at addresses that it knows."""
        known = [parse_address(peer.address) for peer in self.engine.members.peers if peer.id != self.identity.id]
        for address in list(dict.fromkeys([*self.addresses, *known]))[:MOST_SEARCHED]:
            if address not in [dial.address for dial in self.searches]:
                self.searches.append(self.transport.dial(address, quiet=True))
        for peer, connection in list(self.transport.up.items()):
            if connection.dial in self.searches:
                self.look_at(peer)

    def end_search(self) -> None:
        searches, self.searches = self.searches, []
        for dial in searches:
            if dial in self.transport.dials:
                self.transport.forget(dial)

    def found_elsewhere(self, members: Members) -> None:
        """Another peer's roster. If it is later than ours and without us, the cluster was made again, or has excluded
        this peer, and could not tell it."""
        self.latest = members
        later = self.member.is_set() and members.epoch > self.engine.members.epoch
        if later and members.peer(self.identity.id) is None:
            self.step(self.excluded, "the cluster went on without this peer")

    def wrong_cluster(self, peer: int, found: str) -> None:
        where = self.transport.up[peer].where
        wrong = f"{where} is in another cluster with the name {self.network.cluster}, {found} and not {self.cluster}"
        if self.joined.done():
            other_clusters.error("%s", wrong)
            return
        for future in (self.found, self.joined):
            if not future.done():
                future.set_exception(BadInput(f"{wrong}: give them different names, or leave out its address"))
                return


def fresh_id() -> int:
    return 1 + secrets.randbelow(PEERS - 1)


async def answered(answer: asyncio.Future[T], transport: Transport, dials: list[Dial], words: str) -> T:
    """BadInput, beginning with these words, if all addresses refuse this peer for reasons that will not go away."""
    while not (await asyncio.wait([answer], timeout=LOOK_SECONDS))[0]:
        if all(dial.is_refused or dial not in transport.dials for dial in dials):
            raise BadInput(f"{words}: {why_not(dials)}")
    return await answer


def why_not(dials: list[Dial], up: Container[int] = ()) -> str:
    """Why each of these addresses did not help, for an error message. The peers in `up` are connected."""
    told = [(dial.address, dial.why or (NOT_LET_IN if dial.peer in up else "no answer")) for dial in dials]
    return "; ".join(sorted({f"{address}: {why}" for address, why in told}))
