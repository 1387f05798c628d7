"""Asking the peers of this host what they know, without being one of them: for `fairgate who`, `top` and `break`.

The members file says who there is. Each peer says for itself who is inside and who waits by it; the ghosts, whose peers
are dead, are known by their files (net/occupancy.py).
"""

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from fairgate.core.ids import NIL
from fairgate.live.clock import clock
from fairgate.live.engine import ASK, BREAK, TELL
from fairgate.live.host import CLUSTER, NEWS, beside
from fairgate.live.permit import SECOND
from fairgate.live.report import ANSWER_SECONDS, Person, Report
from fairgate.live.report import read as read_report
from fairgate.live.ticket import NO_DEADLINE
from fairgate.net import occupancy
from fairgate.net.access import Access
from fairgate.net.address import UnixAddress
from fairgate.net.codec import CodecError, Frame
from fairgate.net.loop import new_loop
from fairgate.net.members import PEERS, make_change, remove_dead
from fairgate.net.roster import Gate, Members, Peer, Rise, Seat
from fairgate.net.transport import Transport

T = TypeVar("T")


@dataclass(frozen=True)
class Someone:
    """Who is inside of a gate, or waits at it. Times are seconds since 1970."""

    pid: int  # of a ghost: its process group
    host: str
    slot: int | None
    fence: int | None
    since: float
    deadline: float | None
    note: str
    ghost: bool = False
    ident: int = NIL
    peer: int = NIL


@dataclass(frozen=True)
class GatePicture:
    name: str
    k: int
    protocol: str
    inside: tuple[Someone, ...]  # by slot
    waiting: tuple[Someone, ...]  # the longest first
    silent: tuple[Peer, ...]  # peers at this gate that do not answer: what they hold is not known
    entries: int  # through the peers that are there now
    longest: float  # wait of those entries, in seconds


@dataclass(frozen=True)
class Picture:
    gates: tuple[GatePicture, ...]
    peers: int

    def gate(self, name: str) -> GatePicture | None:
        return next((gate for gate in self.gates if gate.name == name), None)


class Asker:
    """`async with Asker(rule) as asker`, then `await asker.look()` as often as wanted."""

    def __init__(self, rule: Access) -> None:
        self.rule = rule
        self.number = 0
        self.answers: dict[int, asyncio.Future[Report]] = {}
        self.dialled: set[int] = set()
        self.news: dict[int, Frame] = {}  # for those that are not up yet

    async def __aenter__(self) -> Self:
        self.transport = Transport(1 + secrets.randbelow(PEERS - 1), CLUSTER, self)
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.transport.close()

    async def look(self) -> Picture:
        """Who does not answer in time is told of as silent."""
        members, _ = await beside(lambda: remove_dead(self.rule))
        reports = await self.ask(members)
        held = {one.ident: one for one in await beside(lambda: occupancy.found(self.rule.folder))}
        gates = [self.picture(gate, members, reports, held) for gate in members.gates]
        return Picture(tuple(sorted(gates, key=lambda gate: gate.name)), len(members.peers))

    async def ask(self, members: Members) -> dict[int, Report]:
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

    def send(self, peer: Peer, frame: Frame) -> None:
        if self.transport.send(peer.id, frame):
            return
        self.news[peer.id] = frame
        if peer.id not in self.dialled:
            self.dialled.add(peer.id)
            self.transport.dial(UnixAddress(peer.socket), peer.id, quiet=True)

    async def break_in(self, gate: GatePicture, whom: Someone) -> bool:
        """Whoever has this permit has it no longer. False: its peer did not do it in time."""
        if whom.ghost:
            members = await beside(lambda: make_change(self.rule, Rise(gate.name, (whom.ident,))))
            (self.rule.folder / f"{whom.ident}{occupancy.HELD}").unlink(missing_ok=True)
            for peer in members.peers:
                self.send(peer, (NEWS, members.version))
        else:
            self.transport.send(whom.peer, (BREAK, gate.name, whom.ident))
        return await self.is_out(gate.name, whom)

    async def is_out(self, name: str, whom: Someone) -> bool:
        """Asked until it is, for a while: a peer does what it is told after it has answered what it was asked."""
        deadline = clock() + int(ANSWER_SECONDS * SECOND)
        while clock() < deadline:
            gate = (await self.look()).gate(name)
            if gate is None or (whom.ident, whom.fence) not in [(one.ident, one.fence) for one in gate.inside]:
                return True
            await asyncio.sleep(0.01)
        return False

    # What the transport tells.

    def on_up(self, peer: int) -> None:
        frame = self.news.pop(peer, None)
        if frame is not None:
            self.transport.send(peer, frame)

    def on_frame(self, peer: int, frame: Frame) -> None:
        if frame[0] == NEWS:
            return  # told to everybody who comes; we read the roster ourselves
        if frame[0] != TELL or len(frame) != 3:
            raise CodecError(f"{frame[0]!r:.20} is no answer")
        answer = self.answers.get(peer)
        if answer is not None and frame[1] == self.number and not answer.done():
            answer.set_result(read_report(frame[2]))

    def on_down(self, peer: int, why: str) -> None:
        pass  # it is silent then; its dial goes on

    def on_quiet(self) -> None:
        pass

    def on_pressure(self, peer: int, full: bool) -> None:
        pass

    # The picture.

    def picture(
        self, gate: Gate, members: Members, reports: dict[int, Report], held: dict[int, occupancy.Held]
    ) -> GatePicture:
        told = [one for report in reports.values() for one in report.gates if one.name == gate.name]
        people = [person for one in told for person in one.people]
        inside = [someone(person) for person in people if person.inside]
        inside += [self.ghost(seat, members, held.get(seat.ident)) for seat in gate.seats if seat.ghost]
        hosts = {seat.host for seat in gate.seats if seat.host != NIL}
        return GatePicture(
            gate.name,
            gate.k,
            gate.protocol,
            tuple(sorted(inside, key=lambda one: (one.slot is None, one.slot, one.since))),
            tuple(sorted([someone(person) for person in people if not person.inside], key=lambda one: one.since)),
            tuple(peer for peer in members.peers if peer.id in hosts and peer.id not in reports),
            sum(one.entries for one in told),
            max([one.longest for one in told], default=0) / SECOND,
        )

    def ghost(self, seat: Seat, members: Members, held: occupancy.Held | None) -> Someone:
        try:
            since = (self.rule.folder / f"{seat.ident}{occupancy.HELD}").stat().st_mtime
        except OSError:
            since = time.time()
        deadline = None if held is None else on_calendar(held.deadline)
        pid = occupancy.NO_GROUP if held is None else held.group
        note = "its fairgate is gone or stopped, processes are left"
        return Someone(pid, members.place.host, known(seat.slot), None, since, deadline, note, True, seat.ident)


def someone(person: Person) -> Someone:
    since = on_calendar(person.since) or 0.0
    slot, fence, deadline = known(person.slot), known(person.fence), on_calendar(person.deadline)
    return Someone(
        person.pid, person.host, slot, fence, since, deadline, person.note, ident=person.ident, peer=person.peer
    )


def known(number: int) -> int | None:
    return None if number == NIL else number


def on_calendar(moment: int) -> float | None:
    """Of a clock that all of one host share."""
    return None if moment == NO_DEADLINE else time.time() - (clock() - moment) / SECOND


def look(rule: Access) -> Picture:
    """Once, for who has no loop."""

    async def main() -> Picture:
        async with Asker(rule) as asker:
            return await asker.look()

    return run(main())


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
