"""One peer of a simulated cluster: a real gate above real views, put together as a live peer does it.

The gate is the one of live peers (live/gate.py), with all its seats. What sockets, threads and the event loop do for a
live peer (live/in_cluster.py, live/peer_lease.py, live/entrance.py), the walk does here (walks/clusters.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairgate.arguments import LONG_AGO, SECOND
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.live.gate import LiveGate
from fairgate.live.gate_checks import stopping
from fairgate.live.in_cluster import GRACE
from fairgate.live.live_protocols import make_of, options_of
from fairgate.live.local_messages import LocalMessages, deliver
from fairgate.live.no_journals import NoJournals
from fairgate.live.peer_lease import PeerLease
from fairgate.live.ticket import INSIDE, LOST, Ticket
from fairgate.live.uplink import Uplink
from fairgate.recovery.agreed import Value
from fairgate.recovery.regenerate import Regenerate
from fairgate.recovery.roster import EPOCH_ZERO, GateRecord, Members, PeerRecord, Renew, Rise, RosterBook, Sit, as_key
from fairgate.recovery.views import Views
from fairgate.walks.unreliable import SLOW

if TYPE_CHECKING:
    from fairgate.walks.clusters import ClusterWalk

GATE = "gate"


@dataclass(frozen=True)
class Parts:
    """The classes that a cluster is made of; a mutant replaces one."""

    views: type[Views] = Views
    gate: type[LiveGate] = LiveGate
    regenerate: type[Regenerate] = Regenerate
    book: type[RosterBook] = RosterBook


REAL = Parts()


class SimulatedUplink(Uplink):
    def __init__(self, peer: SimulatedPeer) -> None:
        super().__init__()
        self.peer = peer
        self.lease_until = LONG_AGO

    def send(self, host: int, gate: str, dst: int, src: int, msg: Message) -> None:
        if host == self.me:
            self.peer.local.append((gate, dst, src, msg))
        else:
            self.peer.walk.links.send(self.me, host, (dst, src, msg))

    def tell(self, gate: Any, ticket: Any) -> None:
        self.peer.walk.entered(self.peer, ticket)


class SeededNodes(NoJournals):
    """Makes the nodes of seats, whose choices the walk's seed decides."""

    def __init__(self, walk: ClusterWalk) -> None:
        self.walk = walk

    def opened(self, gate: LiveGate) -> Any:
        return self.node

    def node(self, ident: int, setup: Setup, out: Outbox, make: MakeNode) -> Regenerate:
        return self.walk.parts.regenerate(ident, setup, Seeded(out, self.walk), make)


class Seeded(Outbox):
    def __init__(self, out: Outbox, walk: ClusterWalk) -> None:
        self.out = out
        self.walk = walk

    def send(self, dst: int, msg: Message) -> None:
        self.out.send(dst, msg)

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.out.granted(request, slot, fence)

    def lost(self, request: int, why: str) -> None:
        self.out.lost(request, why)

    def note(self, mark: str) -> None:
        self.walk.seen[mark] += 1

    def choose(self, n: int) -> int:
        return self.walk.rng.randrange(n)


class User:
    """Asks for a permit, holds it for a while, releases it, and asks again."""

    def __init__(self) -> None:
        self.ticket = Ticket()
        self.done = False  # was let in and has left after the faults had stopped


class SimulatedPeer:
    """The owner of its gate, and told by its views what happens."""

    views: Views

    def __init__(self, walk: ClusterWalk, users: int, standing: bool) -> None:
        self.walk = walk
        self.standing = standing
        self.users = [User() for _ in range(users)]
        self.journals: NoJournals = SeededNodes(walk)
        self.local: LocalMessages = deque()
        self.traffic = SimulatedUplink(self)
        protocol, k = walk.protocol, walk.k
        self.gate = walk.parts.gate(self, GATE, k, protocol, make_of(protocol, k), options_of(protocol))
        self.gates = {GATE: self.gate}
        self.loop: Any = self
        self.skew = walk.rng.randrange(1000)  # of its wall clock, in seconds
        self.stopping: list[tuple[Ticket, int]] = []  # lost permits, and by when their users have surely stopped
        self.until = 0  # the end of the lease that the gate knows
        self.is_leaving = False
        self.has_crashed = False
        self.is_at_rest = False

    @property
    def me(self) -> int:
        return self.traffic.me

    def becomes(self, me: int) -> None:
        """Take this id, as long as the cluster lets it."""
        self.traffic.me = me
        self.book = self.walk.parts.book(self.walk.first)
        self.member = False
        self.ended = False  # excluded: it needs another id
        self.until = 0
        self.regained = 0  # since when it has had a lease without a gap
        self.rise = 0  # the number of the change that gives its seats up
        self.lease = PeerLease(self)
        self.asked_to_join = self.walk.now

    def record(self) -> PeerRecord:
        return PeerRecord(self.me, f"host{self.me}:7400", f"key{self.me}", standing=self.standing)

    # Steps.

    @contextmanager
    def step(self) -> Iterator[None]:
        before, end = self.inside(), self.until
        self.begin_step(self.walk.local(self.me), EPOCH_ZERO + self.walk.now // SECOND)
        yield
        self.end_step()
        if not self.is_leaving:
            self.stopping += [(ticket, end) for ticket in before if ticket.state == LOST]
        self.walk.collect(self.me)
        self.walk.stepped(self.me)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        """For the lease, whose event loop this peer is."""
        self.walk.push_local(int(seconds * SECOND), self.me, "call", (call,))
        return call

    def begin_step(self, now: int, seconds: int) -> None:
        """As live/views_driver.py: after a pause, timers come first, and the others are given time."""
        views = self.views
        late = now - views.now
        views.now = self.traffic.now = now
        self.book.seconds = seconds + self.skew
        if self.ended:
            return
        if 2 * late > views.patience:
            views.led = now
            views.watch()
        while due := self.due_timer():
            views.timer_due(due)

    def due_timer(self) -> str | None:
        timers = self.views.timers or {}
        return min([name for name, at in timers.items() if at <= self.views.now], key=timers.__getitem__, default=None)

    def end_step(self) -> None:
        """As live/in_cluster.py."""
        until = self.views.until
        if not self.ended and not self.views.gone and until != self.until:
            self.until = until
            if not self.traffic.has_lease():
                self.regained = self.traffic.now
            self.lease.raised(until - self.views.lease // GRACE, until)
        deliver(self.local, self.gates)

    def may_stop(self) -> bool:
        return self.is_leaving and (self.ended or self.views.may_stop())

    def inside(self) -> list[Ticket]:
        return [ticket for ticket in self.gate.tickets.values() if ticket.state == INSIDE]

    def may_be_inside(self) -> list[Ticket]:
        """Those inside while there is a lease, and users that were told to stop, until the end of that lease."""
        now = self.walk.local(self.me)
        self.stopping = [(ticket, end) for ticket, end in self.stopping if now < end]
        return [ticket for ticket, _ in self.stopping] + (self.inside() if now < self.until else [])

    # Called by the views.

    def adopted(self, at: int, value: Value) -> None:
        members = self.walk.learned(at, value)
        if members.peer(self.me) is None or not self.views.joined:
            return
        self.adopt(members)
        if not self.member:
            self.member = True
            self.sit(self.gate)
        record = members.gate(GATE)
        if self.views.censuses or (record is not None and record.warden() == self.me):
            self.views.busy(self.busy())

    def adopt(self, members: Members) -> None:
        self.walk.links.only(self.me, {peer.id for peer in members.peers})
        record: GateRecord | None = members.gate(GATE)
        if record is not None and not self.is_at_rest:
            self.gate.adopt(record)

    def busy(self) -> tuple[str, ...]:
        return (GATE,) if self.gate.has_census_under_way() else ()

    def applied(self, number: int) -> None:
        self.walk.seen["changes"] += 1
        if number == self.rise:
            self.walk.push(self.walk.moment(), self.me, "rested", (self.me,))

    def denied(self, number: int, why: str) -> None:
        self.walk.break_off(f"refused: change {number} of peer {self.me}: {why}")

    def turned_away(self) -> None:
        self.walk.push(self.walk.moment(), self.me, "ask", ())

    def excluded(self, why: str) -> None:
        self.walk.seen["excluded"] += self.member
        self.ended = True
        self.lease.revoked(why)
        if not self.is_leaving:
            self.walk.push(self.walk.moment(), self.me, "again", (why,))

    # Called by the gate.

    def sit(self, gate: LiveGate) -> None:
        self.is_at_rest = False
        self.walk.push(self.walk.moment(), self.me, "sit", ())

    def sit_now(self) -> None:
        if self.member and self.gate.standing and not self.is_leaving:
            self.gate.standing = False
            self.views.change(as_key(Sit(GATE, self.gate.k, self.gate.protocol, self.gate.seats_to_ask_for())))

    def rest(self) -> None:
        if self.member and not self.is_leaving and self.gate.seats and self.gate.is_idle():
            self.gate.rest()
            self.rise = self.views.last_change + 1  # before: it may be applied at once
            self.views.change(as_key(Rise(GATE)))

    def rested(self, me: int) -> None:
        """As live/engine.py."""
        if self.me == me and self.gate.resting and not self.gate.closed:
            self.walk.seen["rests"] += 1
            self.gate.rested()
            self.is_at_rest = not self.gate.seats

    def renew(self, gate: LiveGate) -> None:
        self.views.change(as_key(Renew(GATE)))

    def spoiled(self, gate: LiveGate) -> None:
        self.walk.break_off(f"spoiled: a seat of peer {self.me} failed")

    def lease_begins(self, gate: LiveGate, ticket: Ticket) -> None: ...

    def census_is_over(self) -> None:
        self.walk.push(self.walk.moment(), self.me, "census", ())

    def tell_census(self) -> None:
        if self.member:
            self.views.busy(self.busy())

    # Users.

    def leave(self) -> None:
        """Close the gate, then leave the cluster."""
        self.is_leaving = True
        self.gate.close("this peer leaves")
        self.leave_cluster()

    def leave_cluster(self) -> None:
        """As live/engine.py: once the users that were told to stop have done so."""
        if not stopping(self.gate.tickets):
            self.views.on_leave()
        elif not self.ended:
            self.walk.push(SLOW, self.me, "part", ())

    def ask(self, user: User) -> None:
        ticket = self.gate.retake("")
        if ticket is not None:
            self.walk.seen["retakes"] += 1
            user.ticket = ticket
            self.walk.entered(self, ticket)
        else:
            user.ticket = Ticket()
            self.gate.acquire(user.ticket)
