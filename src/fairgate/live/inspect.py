"""Queries the peers of a cluster without being one of them: for `fairgate who`, `top` and `break`.

directory.py finds the peers. Each peer reports its own holders and waiters.
"""

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from fairgate.arguments import SECOND
from fairgate.core.ids import NIL
from fairgate.live.directory import ClusterDirectory, Roster
from fairgate.live.engine import ASK, BREAK, TELL
from fairgate.live.report import ANSWER_SECONDS, PeerReport, Person, has_left, latest_fences
from fairgate.live.report import read as read_report
from fairgate.live.ticket import NO_DEADLINE
from fairgate.net.codec import CodecError, Frame
from fairgate.net.loop import new_loop
from fairgate.net.system import clock
from fairgate.recovery.agreed import majority
from fairgate.recovery.roster import PEERS, GateRecord, Members, PeerRecord

T = TypeVar("T")


@dataclass(frozen=True)
class ListedPerson:
    """A holder or waiter of a gate. Times are seconds since 1970."""

    pid: int
    host: str
    slot: int | None
    fence: int | None
    since: float
    deadline: float | None
    note: str
    ident: int = NIL
    peer: int = NIL


@dataclass(frozen=True)
class GatePicture:
    name: str
    k: int
    protocol: str
    inside: tuple[ListedPerson, ...]  # ordered by slot
    waiting: tuple[ListedPerson, ...]  # longest wait first
    silent: tuple[PeerRecord, ...]  # peers at this gate that did not answer: what they hold is unknown
    ghosts: tuple[PeerRecord, ...]  # excluded peers that may still be inside, until their leases are over
    entries: int  # of the peers that exist now
    longest: float  # the longest wait of those entries, in seconds

    @property
    def mixed(self) -> bool:
        """More than k are listed as inside: the peers answered at different moments. Slots and fences would have shown
        who has left, but the protocol has none."""
        return len(self.inside) > self.k


@dataclass(frozen=True)
class MemberPicture:
    """A peer of the cluster."""

    id: int
    pid: int
    host: str
    address: str
    since: int  # seconds since 1970
    standing: bool
    voter: bool
    leads: bool
    lease_left: float | None  # seconds; None if it did not answer
    why: str  # why it can let nobody in; empty if it can


@dataclass(frozen=True)
class ClusterPicture:
    id: str
    version: int  # of the roster
    lease: float  # seconds
    members: tuple[MemberPicture, ...]
    excluded: tuple[PeerRecord, ...]  # lately, and not back
    lingering: tuple[int, ...]  # those of them whose leases may not be over

    @property
    def survives(self) -> int:
        """How many more voters may fail at once; below 0 if no majority answers."""
        voters = tuple([one.id for one in self.members if one.voter])
        there = [one for one in self.members if one.voter and one.lease_left is not None]
        return len(there) - majority(voters)


@dataclass(frozen=True)
class Picture:
    gates: tuple[GatePicture, ...]
    cluster: ClusterPicture

    @property
    def peers(self) -> int:
        return len(self.cluster.members)

    def gate(self, name: str) -> GatePicture | None:
        return next((gate for gate in self.gates if gate.name == name), None)


class Inspector:
    """`async with Inspector(directory) as inspector`, then `await inspector.look()` as often as needed."""

    def __init__(self, asked: ClusterDirectory) -> None:
        self.asked = asked
        self.number = 0
        self.answers: dict[int, asyncio.Future[PeerReport]] = {}
        self.dialled: set[int] = set()
        self.news: dict[int, Frame] = {}  # to send once the connection is up

    async def __aenter__(self) -> Self:
        self.transport = self.asked.begin(1 + secrets.randbelow(PEERS - 1), self)
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.transport.close()

    async def look(self) -> Picture:
        """The current state of all gates. Peers that do not answer in time are listed as silent."""
        roster = await self.asked.roster()
        members = roster.members
        reports = await self.ask(members)
        gates = [picture(gate, members, reports) for gate in members.gates]
        return Picture(tuple(sorted(gates, key=lambda gate: gate.name)), cluster_picture(roster, reports))

    async def ask(self, members: Members) -> dict[int, PeerReport]:
        self.number += 1
        loop = asyncio.get_running_loop()
        self.answers = {peer.id: loop.create_future() for peer in members.peers}
        for gone in self.dialled - set(self.answers):
            self.dialled.discard(gone)
            self.transport.hang_up(gone)
        for peer in members.peers:
            self.send(peer, (ASK, self.number))
        if self.answers:
            await asyncio.wait(self.answers.values(), timeout=ANSWER_SECONDS)
        return {peer: answer.result() for peer, answer in self.answers.items() if answer.done()}

    def send(self, peer: PeerRecord, frame: Frame) -> None:
        if self.transport.send(peer.id, frame):
            return
        self.news[peer.id] = frame
        if peer.id not in self.dialled:
            self.dialled.add(peer.id)
            self.transport.dial(self.asked.address(peer), peer.id, quiet=True)

    async def break_in(self, gate: GatePicture, whom: ListedPerson) -> bool:
        """Revokes a permit. False if it was still held after 2 s."""
        self.transport.send(whom.peer, (BREAK, gate.name, whom.ident))
        return await self.is_out(gate.name, whom)

    async def is_out(self, name: str, whom: ListedPerson) -> bool:
        """Polls for at most 2 s until the permit is gone: a peer may answer a query before it revokes the permit."""
        deadline = clock() + int(ANSWER_SECONDS * SECOND)
        while clock() < deadline:
            gate = (await self.look()).gate(name)
            if gate is None or (whom.ident, whom.fence) not in [(one.ident, one.fence) for one in gate.inside]:
                return True
            await asyncio.sleep(0.01)
        return False

    # Events from the transport.

    def may_be(self, peer: int, principal: str) -> bool:
        """Anyone whom the cluster admits: this process has no roster to compare with before it has asked."""
        return True

    def is_member(self, peer: int) -> bool:
        return True  # nobody else is dialled, and nobody can dial this process

    def on_up(self, peer: int) -> None:
        frame = self.news.pop(peer, None)
        if frame is not None:
            self.transport.send(peer, frame)
        self.asked.on_up(peer)

    def on_frame(self, peer: int, frame: Frame) -> None:
        try:
            self.take(peer, frame)
        except (LookupError, TypeError, ValueError) as wrong:
            raise CodecError(f"{frame!r:.60} is not a valid answer: {wrong}") from wrong

    def take(self, peer: int, frame: Frame) -> None:
        if frame[0] != TELL:
            self.asked.on_frame(peer, frame)
            return
        _, number, told = frame
        answer = self.answers.get(peer)
        if answer is not None and number == self.number and not answer.done():
            answer.set_result(read_report(told))

    def on_down(self, peer: int, why: str) -> None:
        pass  # it will be listed as silent; the dial keeps trying

    def on_quiet(self) -> None:
        pass

    def on_pressure(self, peer: int, full: bool) -> None:
        pass


# The picture.


def cluster_picture(roster: Roster, reports: dict[int, PeerReport]) -> ClusterPicture:
    members = roster.members
    pictures = [
        MemberPicture(
            peer.id,
            peer.pid,
            peer.host,
            peer.address,
            peer.since,
            peer.standing,
            peer.id in roster.voters,
            peer.id == roster.leader,
            reports[peer.id].lease / SECOND if peer.id in reports else None,
            reports[peer.id].why if peer.id in reports else "it does not answer",
        )
        for peer in members.peers
    ]
    excluded = tuple([one for one in members.excluded if not is_back(one, members)])
    return ClusterPicture(
        members.cluster, roster.version, members.lease / SECOND, tuple(pictures), excluded, roster.lingering
    )


def is_back(gone: PeerRecord, members: Members) -> bool:
    """Has the excluded peer joined again, under another id, or has another process taken its place?"""
    return any(
        one.address == gone.address
        or (one.host, one.pid) == (gone.host, gone.pid)
        or (one.state != "" and one.state == gone.state)
        for one in members.peers
    )


def picture(gate: GateRecord, members: Members, reports: dict[int, PeerReport]) -> GatePicture:
    told = [(one, report.now) for report in reports.values() for one in report.gates if one.name == gate.name]
    latest = latest_fences([person for one, _ in told for person in one.people])
    people = [(person, now) for one, now in told for person in one.people if not has_left(person, latest)]
    inside = [someone(person, now) for person, now in people if person.inside]
    waiting = [someone(person, now) for person, now in people if not person.inside]
    hosts = dict(gate.hosts)
    return GatePicture(
        gate.name,
        gate.k,
        gate.protocol,
        tuple(sorted(inside, key=lambda one: (one.slot is None, one.slot, one.since))),
        tuple(sorted(waiting, key=lambda one: one.since)),
        tuple(peer for peer in members.peers if peer.id in hosts and peer.id not in reports),
        tuple(peer for peer in members.excluded if peer.id in dict(gate.ghosts)),
        sum(one.entries for one, _ in told),
        max([one.longest for one, _ in told], default=0) / SECOND,
    )


def someone(person: Person, now: int) -> ListedPerson:
    since = on_calendar(person.since, now) or 0.0
    slot, fence, deadline = known(person.slot), known(person.fence), on_calendar(person.deadline, now)
    return ListedPerson(
        person.pid, person.host, slot, fence, since, deadline, person.note, ident=person.ident, peer=person.peer
    )


def known(number: int) -> int | None:
    return None if number == NIL else number


def on_calendar(moment: int, now: int) -> float | None:
    """Seconds since 1970 for a moment on a host's CLOCK_BOOTTIME; `now` is the present on that clock."""
    return None if moment == NO_DEADLINE else time.time() - (now - moment) / SECOND


def look(asked: ClusterDirectory) -> Picture:
    """Looks once, for callers without an event loop."""

    async def main() -> Picture:
        async with Inspector(asked) as asker:
            return await asker.look()

    return run(main())


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
