"""Membership of a cluster: peers agree on a roster, and have leases (recovery/views.py).

entrance.py has how a peer gets in, views_driver.py how it takes part in the views, and reach.py whom it can reach.

**Death.** A peer whose connection breaks and that refuses another one is suspected. If a majority of the voters
suspects it, it is excluded, and the gates go on without it; what it may hold is free when its lease is over.

**Exclusion.** A peer that finds itself excluded has lost its permits. It takes another id and joins again; its waiting
requests ask again, in order.

Over Unix sockets, where connections hardly ever break, messages of gates bypass the reliable channel (`DirectLinks`).
If one breaks all the same, the gates of the two peers get new views once the peers are connected again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from fairgate.arguments import printable
from fairgate.errors import BadInput, FairgateError, KMismatch
from fairgate.live.entrance import LOOK, LOOK_SECONDS, ROSTER, Entrance
from fairgate.live.saved import SavedCluster
from fairgate.net.address import check_one_kind, parse_address
from fairgate.net.codec import CodecError, Frame
from fairgate.recovery.agreed import Join, TurnedAway, Value
from fairgate.recovery.roster import Change, Members, Newcomer, Renew, Sit, as_key, converted, members_of
from fairgate.room.clusters import NO_MAJORITY

LEASE = "lease"  # a value of `guarantee`, like NO_MAJORITY
LEAVE_SECONDS = 4.0
LAST_SECONDS = 0.5  # that the last standing peer waits for others that leave at the same time
GRACE = 5  # users are told when this part of a lease is left
MOST_SAVED = 64  # addresses

log = logging.getLogger("fairgate.live")


class ClusterMembership(Entrance):
    @property
    def guarantee(self) -> str:
        return NO_MAJORITY if self.reach.why else LEASE

    @property
    def why(self) -> str:
        return self.reach.why

    async def leave(self) -> None:
        """TimeoutError if it takes too long."""
        if not self.views_run or not self.member.is_set():
            return
        others = [peer for peer in self.engine.members.peers if peer.id != self.identity.id]
        self.step(self.driver.views.on_leave)
        if others:
            await self.until_stopped([peer.id for peer in others if peer.standing])
        if self.state is not None and self.state.last is not None and not (others and self.state.last.alone):
            self.state.save(replace(self.state.last, left=True))

    async def until_stopped(self, standing: list[int]) -> None:
        """`standing` are the other standing peers. TimeoutError if they do not answer. If they have all ended, there is
        no cluster that could wait for this peer's lease."""
        last = self.standing and not standing
        try:
            async with asyncio.timeout(LAST_SECONDS if last else LEAVE_SECONDS):
                while last or not all(map(self.reach.has_ended, standing)):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.stopped.wait(), LOOK_SECONDS)
                        return
        except TimeoutError:
            if last:
                log.warning("the last standing peer has left: the other peers of this cluster will lose their permits")
            elif self.driver.views.is_listed():
                raise

    # Steps of the views.

    def step(self, call: Callable[..., Any], *arguments: Any) -> None:
        with self.engine.step():
            driver = self.driver
            try:
                driver.begin()
                call(*arguments)
            finally:
                driver.finish()
            if driver is self.driver:
                self.look_after()

    def look_after(self) -> None:
        views = self.driver.views
        if self.driver.ended:
            return
        if views.until != self.until and not views.gone:
            self.until = views.until
            self.engine.lease.raised(views.until - self.lease // GRACE, views.until)
        if views.may_stop():
            self.stopped.set()
        self.reach.check_majority()

    # Called by the views, in a step.

    def adopted(self, at: int, value: Value) -> None:
        members = members_of(value[4])
        if members.peer(self.identity.id) is None or not self.driver.views.joined:
            return
        if self.standing and self.member.is_set():
            self.tell_of_excluded(members)
        self.engine.adopt(members)
        self.driver.known()
        self.connect(members)
        self.member.set()
        if not self.joined.done():
            self.joined.set_result(None)
        if self.driver.views.censuses or any(gate.warden() == self.identity.id for gate in members.gates):
            self.driver.views.busy(self.busy())  # the leader of the views waits for that
        self.save(members, value[1])

    def tell_of_excluded(self, members: Members) -> None:
        for peer in members.excluded:
            if peer not in self.engine.members.excluded:
                self.members_log.warning(
                    "the peer at %s (pid %d on %s) was excluded: it could not be reached",
                    peer.address, peer.pid, printable(peer.host),
                )  # fmt: skip

    def save(self, members: Members, voters: tuple[int, ...]) -> None:
        if self.state is None:
            return
        me = self.identity.id
        others = sorted([peer for peer in members.peers if peer.id != me], key=lambda peer: peer.id not in voters)
        addresses = tuple([peer.address for peer in others if peer.standing][:MOST_SAVED])
        try:
            self.state.save(
                SavedCluster(
                    members.cluster, members.lease, members.drift, members.epoch, self.address, addresses,
                    alone=voters == (me,),
                )
            )  # fmt: skip
        except BadInput as wrong:
            log.error("%s", wrong)

    def applied(self, number: int) -> None:
        _, done = self.pending.pop(number)
        if not done.done():
            done.set_result(None)

    def denied(self, number: int, why: str) -> None:
        if number == 0:
            if not self.joined.done():
                self.joined.set_exception(BadInput(f"refused by the cluster: {why}"))
            return
        change, done = self.pending.pop(number)
        if not done.done():
            done.set_exception(self.error(change, why))

    def turned_away(self) -> None:
        self.ask_another.set()

    def error(self, change: Change, why: str) -> FairgateError:
        gate = self.engine.members.gate(change.gate)
        if isinstance(change, Sit) and gate is not None and gate.k != change.k:
            return KMismatch(change.gate, change.k, gate.k)
        return BadInput(why)

    def excluded(self, why: str) -> None:
        """All that was asked for is void: the gates start again under another id."""
        self.member.clear()
        self.engine.lease.revoked(why)
        for _, done in self.pending.values():
            if not done.done():
                done.set_result(None)
        self.pending = {}
        self.driver.end()
        if not self.engine.closed:
            self.engine.loop.call_soon(self.engine.spawn, self.join_again(why))

    # The roster.

    async def entered(self) -> None:
        await self.member.wait()

    async def change(self, change: Change) -> None:
        await self.member.wait()
        done: asyncio.Future[None] = self.engine.loop.create_future()
        views = self.driver.views
        self.pending[views.last_change + 1] = (change, done)  # it may be applied at once
        self.step(views.change, as_key(change))
        await done

    def busy(self) -> tuple[str, ...]:
        return tuple(sorted([gate.name for gate in self.engine.gates.values() if gate.has_census_under_way()]))

    def census_is_over(self) -> None:
        """Called on the loop."""
        if self.member.is_set():
            self.step(lambda: self.driver.views.busy(self.busy()))

    def connect(self, members: Members) -> None:
        """Peers that share a gate all dial each other, in case only one side of a pair can."""
        known = {peer.id for peer in members.peers}
        self.broken &= known
        self.reach.only(known)
        for gate in members.gates:
            if gate.seats(self.identity.id):
                for host, _ in gate.hosts:
                    if host != self.identity.id:
                        self.links.dial(host)

    # Connections.

    def may_be(self, peer: int, principal: str) -> bool:
        """A member must be what it proved to be when it joined. A peer that joins may take any other id."""
        record = self.engine.members.peer(peer)
        return record is None or record.principal == principal

    def on_up(self, peer: int) -> None:
        dial = self.transport.up[peer].dial
        if dial is not None and (not self.joined.done() or dial in self.searches):
            self.look_at(peer)
        self.reach.on_up(peer)
        if self.views_run:
            self.driver.on_up(peer)
        if peer in self.broken:
            self.broken.discard(peer)
            self.engine.spawn(self.mend(peer))

    async def mend(self, peer: int) -> None:
        """Gives the gates that we share with this peer new views. Not before the connection is up again: a census waits
        for every seat, so with a dead peer the gates would stop."""
        with self.engine.lock:
            gates = [gate.name for gate in self.engine.gates.values() if gate.record.seats(peer)]
        for gate in gates:
            await self.engine.change(Renew(gate))

    def on_down(self, peer: int, why: str) -> None:
        self.looked.pop(peer, None)
        if self.views_run:
            self.driver.on_down(peer)
        if not self.member.is_set() or self.engine.members.peer(peer) is None or self.engine.closed:
            return
        log.debug("the connection to peer %d broke: %s", peer, why)
        if not self.links.loses_nothing:
            self.broken.add(peer)
        with self.engine.lock:
            self.links.dial(peer)
        self.reach.on_down(peer)

    # Frames.

    def on_frame(self, peer: int, frame: Frame) -> None:
        kind = frame[0]
        if kind == LOOK:
            self.on_look(peer)
        elif kind == ROSTER:
            self.on_roster(peer, frame)
        elif kind == Join.tag:
            self.on_join(peer, frame)
        elif not self.views_run or not self.driver.take(peer, frame):
            raise CodecError(f"{kind!r:.20} is not a valid message")

    def on_join(self, peer: int, frame: Frame) -> None:
        """A newcomer asks to be let in: checks that all could reach it."""
        _, about, standing = frame
        new = converted(about, Newcomer)
        try:
            address = parse_address(new.peer.address)
            check_one_kind([parse_address(self.address), address])
            self.check_secure(address)
        except BadInput as wrong:
            self.transport.send(peer, TurnedAway(peer, str(wrong)).key())
            return
        proved = self.transport.up[peer].principal
        new = replace(new, peer=replace(new.peer, standing=standing, principal=proved))
        self.driver.take(peer, (Join.tag, as_key(new), standing))
