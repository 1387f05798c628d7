"""What a peer reports about itself, for `fairgate who`, `fairgate top`, holders() and waiters()."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from fairgate.core.ids import NIL
from fairgate.live.gate import LiveGate
from fairgate.live.ticket import INSIDE, NO_DEADLINE, NO_GUEST, WAITING, Ticket
from fairgate.net.system import clock
from fairgate.recovery.roster import Members

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine

ANSWER_SECONDS = 2.0
SAME_CLOCK = int(ANSWER_SECONDS * 1e9)  # clocks that differ by less count as the same host's


class Person(msgspec.Struct, frozen=True):
    """A request that is waiting or inside.

    Times are ns on CLOCK_BOOTTIME: of this host in holders() and waiters(), of the peer's host in a report.

    Attributes:
        ident: The seat of the request.
        peer: The id of the peer; -1 for processes whose peer is gone.
        pid: The process of the peer, or of its guest; 0 if it is unknown.
        host: The name of the peer's host.
        inside: True for a holder, False for a waiter.
        since: When it entered, or when it began to wait.
        slot: The slot of a holder; -1 if there is none.
        fence: The fence of a holder; -1 if there is none.
        deadline: When the lease expires; 0 if there is none.
        note: The remark given to acquire().
        user: The user id of the process; -1 if it is unknown.
    """

    ident: int
    peer: int
    pid: int
    host: str
    inside: bool
    since: int
    slot: int
    fence: int
    deadline: int
    note: str
    user: int = -1


class GateReport(msgspec.Struct, frozen=True):
    name: str
    k: int
    protocol: str
    view: int
    people: tuple[Person, ...]
    entries: int
    waited: int
    longest: int
    sent: int
    lost: int
    views: int


class PeerReport(msgspec.Struct, frozen=True):
    peer: int
    pid: int
    host: str
    gates: tuple[GateReport, ...]
    now: int  # the time of the report, on the same clock as all its times
    lease: int = 0  # ns that are left of the peer's lease
    why: str = ""  # why it can let nobody in; empty if it can


def report(engine: "LiveEngine") -> PeerReport:
    gates = tuple([of_gate(engine, gate) for gate in engine.gates.values()])
    now = clock()
    left = max(engine.lease_until - now, 0)
    return PeerReport(engine.me, engine.pid, engine.identity.host, gates, now, left, engine.membership.why)


def of_gate(engine: "LiveEngine", gate: LiveGate) -> GateReport:
    people = tuple([person(engine, ticket) for ticket in gate.tickets.values() if ticket.state in (INSIDE, WAITING)])
    counts = gate.counts
    return GateReport(
        gate.name, gate.k, gate.protocol, gate.record.view, people, counts.entries, counts.waited, counts.longest,
        counts.sent, counts.lost, counts.views,
    )  # fmt: skip


def person(engine: "LiveEngine", ticket: Ticket) -> Person:
    inside = ticket.state == INSIDE
    since = ticket.entered if inside else ticket.asked
    slot, fence = (ticket.slot, ticket.fence) if inside else (NIL, NIL)  # a grant may be withheld: see gate.py
    pid, user = (engine.pid, engine.identity.uid) if ticket.guest == NO_GUEST else ticket.guest
    return Person(
        ticket.ident, engine.me, pid, engine.identity.host, inside, since, slot, fence, ticket.deadline, ticket.note,
        user,
    )  # fmt: skip


def on_our_clock(someone: Person, now: int) -> Person:
    """Converts times from the clock of a report's host, where `now` was the time of the report, to ours.

    Reports from our own host are returned unchanged, however long the answer took.
    """
    shift = clock() - now
    if abs(shift) < SAME_CLOCK:
        return someone
    deadline = NO_DEADLINE if someone.deadline == NO_DEADLINE else someone.deadline + shift
    return msgspec.structs.replace(someone, since=someone.since + shift, deadline=deadline)


def latest_fences(people: Iterable[Person]) -> dict[int, int]:
    """The highest fence of each slot."""
    latest: dict[int, int] = {}
    for one in people:
        latest[one.slot] = max(one.fence, latest.get(one.slot, one.fence))
    return latest


def has_left(one: Person, latest: dict[int, int]) -> bool:
    """Peers answer at different moments, so two of them may list a holder of the same slot. Fences rise with every
    holder of a slot: the one with the lower fence has left."""
    return one.slot != NIL and one.fence < latest[one.slot]


def encode(told: PeerReport) -> bytes:
    return msgspec.json.encode(told)


def read(data: bytes) -> PeerReport:
    return msgspec.json.decode(data, type=PeerReport)


class Questions:
    """Pending queries to other peers, by number. Used on the engine's loop."""

    def __init__(self) -> None:
        self.asked = 0
        self.open: dict[int, tuple[int, asyncio.Future[PeerReport]]] = {}  # the peer and its answer

    def new(self, peer: int) -> int:
        self.asked += 1
        self.open[self.asked] = (peer, asyncio.get_running_loop().create_future())
        return self.asked

    def answered(self, peer: int, number: int, data: bytes) -> None:
        """An answer counts only from the peer that was asked."""
        if number in self.open and self.open[number][0] == peer:
            self.told(number, read(data))

    def told(self, number: int, what: PeerReport) -> None:
        if number in self.open and not self.open[number][1].done():
            self.open[number][1].set_result(what)

    def only(self, members: Members) -> None:
        """Cancels queries to peers that are no longer members."""
        for peer, answer in self.open.values():
            if members.peer(peer) is None:
                answer.cancel()

    async def answers(self, numbers: list[int]) -> list[PeerReport]:
        """The answers that arrive within 2 s."""
        answers = [self.open[number][1] for number in numbers]
        try:
            if answers:
                await asyncio.wait(answers, timeout=ANSWER_SECONDS)
        finally:
            for number in numbers:
                del self.open[number]
        return [answer.result() for answer in answers if answer.done() and not answer.cancelled()]
