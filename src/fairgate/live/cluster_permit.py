"""Gates and permits of a cluster, as both APIs use them (interface.py)."""

import time
from functools import partial
from typing import Any

from fairgate.arguments import LONG_AGO, SECOND
from fairgate.core.ids import NIL
from fairgate.errors import BadInput, GateClosed, PermitLost
from fairgate.interface import Statistics
from fairgate.live.cluster_options import ClusterOptions
from fairgate.live.engine import EXPIRED, LiveEngine
from fairgate.live.forks import process
from fairgate.live.gate import LiveGate
from fairgate.live.in_cluster import ClusterMembership
from fairgate.live.no_journals import NO_JOURNALS, NoJournals
from fairgate.live.peer_lease import LAPSED
from fairgate.live.report import Person, has_left, latest_fences, of_gate
from fairgate.live.ticket import INSIDE, LOST, NO_DEADLINE, WAITING, Ticket
from fairgate.net.system import clock, once
from fairgate.request import Request

TRY_SECONDS = 1.0  # how long `acquire(timeout=0)` waits for a slot that is free as far as the peers know


def make_engine(seeds: tuple[str, ...], journal: str | None, network: dict[str, Any]) -> LiveEngine:
    options = ClusterOptions(seeds=seeds, **network)
    return LiveEngine(lambda engine: ClusterMembership(engine, options), choose_journals(journal))


def describe(engine: LiveEngine) -> str:
    """A peer of a cluster, for people."""
    if not hasattr(engine, "identity"):
        return "peer of a cluster, not joined"
    state = "of the parent process" if engine.pid != process[0] else "closed" if engine.closed else "open"
    return f"peer {engine.me} of a cluster, {engine.identity.address}, {state}, gates: {len(engine.gates)}"


def choose_journals(path: str | None) -> NoJournals:
    if path is None:
        return NO_JOURNALS
    from fairgate.live.journals import Journals  # noqa: PLC0415 (most peers write none)

    return Journals(path)


class HeldTicket:
    """A permit of a cluster: a ticket that is, or was, inside."""

    def __init__(self, engine: LiveEngine, gate: LiveGate, ticket: Ticket) -> None:
        self.engine = engine
        self.gate = gate
        self.ticket = ticket

    @property
    def slots(self) -> tuple[int, ...]:
        return () if self.ticket.slot == NIL else (self.ticket.slot,)

    @property
    def fence(self) -> int | None:
        return None if self.ticket.fence == NIL else self.ticket.fence

    def deadline(self) -> int:
        return self.ticket.deadline

    def safe_until(self) -> int:
        """The earlier of its own lease and the lease of this peer, which is raised again and again; `LONG_AGO` once it
        has ended, and in a forked child."""
        if self.ticket.state != INSIDE or self.engine.pid != process[0]:
            return LONG_AGO
        ends = [end for end in (self.ticket.deadline, self.engine.lease_until) if end != NO_DEADLINE]
        return min(ends, default=NO_DEADLINE)

    def is_valid(self) -> bool:
        """Never in a forked child: the peer belongs to its parent."""
        return self.ticket.state == INSIDE and not self.why_expired() and self.engine.pid == process[0]

    def why_expired(self) -> str:
        """By the clock: the engine's thread may not have noticed yet. Empty if it has not expired."""
        now, own, peers = clock(), self.ticket.deadline, self.engine.lease_until
        if own != NO_DEADLINE and own <= now:
            return EXPIRED
        return LAPSED if peers != NO_DEADLINE and peers <= now else ""

    def why_lost(self) -> str:
        self.engine.check_process()
        if self.ticket.state == LOST:
            return self.ticket.why
        return self.why_expired() if self.ticket.state == INSIDE else ""

    def extend(self, length: int) -> bool:
        until = clock() + length
        self.engine.check_process()
        extended = False
        for _ in once(self.engine.user_lock):
            extended = self.is_valid()
            if extended:
                before, self.ticket.deadline = self.ticket.deadline, until
                if before == NO_DEADLINE or until < before:  # otherwise the pending timer sees the new deadline
                    self.engine.lease_begins(self.gate, self.ticket)
        return extended

    def release(self) -> None:
        if why := self.why_expired():
            self.engine.of_user(self.gate, partial(self.gate.lose, why=why), self.ticket)
        else:
            self.engine.of_user(self.gate, self.gate.release, self.ticket)


class BaseClusterGate:
    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None) -> None:
        self.engine = engine
        self.gate = engine.gate(name, k, protocol)
        self.k = k
        self.protocol = self.gate.protocol

    def state(self) -> str:
        forked = self.engine.pid != process[0]
        return "of the parent process" if forked else "closed" if self.gate.closed else "open"

    def holders_now(self) -> list[Request]:
        """Those of this peer."""
        self.engine.check_process()
        for _ in once(self.engine.user_lock):
            people = of_gate(self.engine, self.gate).people
        return in_order([one for one in people if one.inside])

    def check_single(self, n: int) -> None:
        if n != 1:
            raise BadInput(f"gate {self.gate.name} is in a cluster, which grants one slot at a time, not {n}")

    def is_granted(self, ticket: Ticket) -> bool:
        """False if the request was not granted in time.

        Raises what has ended it, if it was refused, or lost before its user could have the permit. Its state is read
        once: the engine's thread may end the permit between two looks.
        """
        state = ticket.state
        if ticket.error is not None:
            raise ticket.error
        if state == LOST and self.gate.closed:
            raise GateClosed(self.gate.closed)
        if state == LOST:
            raise PermitLost(f"the permit for gate {self.gate.name} was lost as soon as it was granted: {ticket.why}")
        return state == INSIDE

    def refuse_resize(self) -> None:
        raise BadInput(f"gate {self.gate.name} is in a cluster, where k cannot be changed while it is in use")

    def statistics(self) -> Statistics:
        gate, counts = self.gate, self.gate.counts
        self.engine.check_process()
        for _ in once(self.engine.user_lock):
            states = [ticket.state for ticket in gate.tickets.values()]
            found = Statistics(
                gate=gate.name,
                k=gate.k,
                protocol=gate.protocol,
                guarantee=self.engine.membership.guarantee,
                entries=counts.entries,
                inside=states.count(INSIDE),
                waiting=states.count(WAITING),
                wait_mean=counts.waited / counts.entries / SECOND if counts.entries else 0.0,
                wait_max=counts.longest / SECOND,
                permits_lost=counts.lost,
                messages_sent=counts.sent,
                messages_received=counts.received,
                views=counts.views,
            )
        return found


def in_order(people: list[Person]) -> list[Request]:
    """The holders by slot, then the waiters, longest wait first."""
    shift = time.time() - clock() / SECOND
    latest = latest_fences(people)
    inside = [one for one in people if one.inside and not has_left(one, latest)]
    holders = sorted(inside, key=lambda one: (one.slot, one.since))
    waiters = sorted([one for one in people if not one.inside], key=lambda one: one.since)
    return [
        Request(
            inside=one.inside,
            slots=() if one.slot == NIL else (one.slot,),
            fence=None if one.fence == NIL else one.fence,
            pid=one.pid,
            host=one.host,
            since=one.since / SECOND + shift,
            deadline=one.deadline / SECOND + shift if one.deadline else None,
            note=one.note,
        )
        for one in [*holders, *waiters]
    ]
