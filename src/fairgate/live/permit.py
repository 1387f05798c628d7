"""What the async and the sync API have in common: gates and permits as their users see them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from fairgate.core.ids import NIL
from fairgate.errors import BadInput, PermitLost
from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.live_protocols import default_protocol
from fairgate.live.ticket import INSIDE, LOST, NO_DEADLINE, Ticket
from fairgate.net.system import clock

SECOND = 1_000_000_000
TRY_SECONDS = 1.0  # a slot is free as far as anybody knows: how long it may take to get it all the same


@dataclass(frozen=True)
class Statistics:
    """Of one gate at this peer, since it was opened here. Waits in seconds."""

    gate: str
    k: int
    protocol: str
    guarantee: str
    entries: int
    inside: int
    waiting: int
    wait_mean: float
    wait_max: float
    messages_sent: int
    messages_received: int
    permits_lost: int
    views: int


class BasePermit:
    """The right to be inside. `slot` is 0..k-1 and `fence` rises with every permit of that slot; None if the protocol
    has no tokens."""

    __slots__ = ("engine", "gate", "ticket")

    def __init__(self, engine: LiveEngine, gate: LiveGate, ticket: Ticket) -> None:
        self.engine = engine
        self.gate = gate
        self.ticket = ticket

    @property
    def slot(self) -> int | None:
        return None if self.ticket.slot == NIL else self.ticket.slot

    @property
    def fence(self) -> int | None:
        return None if self.ticket.fence == NIL else self.ticket.fence

    @property
    def deadline(self) -> float | None:
        """Seconds on CLOCK_BOOTTIME; None: no lease was asked for."""
        return None if self.ticket.deadline == NO_DEADLINE else self.ticket.deadline / SECOND

    def left(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.ticket.deadline == NO_DEADLINE else (self.ticket.deadline - clock()) / SECOND

    @property
    def valid(self) -> bool:
        """Still inside, by the clock too: a lease that is over is over even before anybody has said so."""
        ticket = self.ticket
        return ticket.state == INSIDE and (ticket.deadline == NO_DEADLINE or clock() < ticket.deadline)

    def check(self) -> None:
        """Before anything that must not happen outside."""
        ticket = self.ticket
        if ticket.state == LOST:
            raise PermitLost(f"the permit of gate {self.gate.name} is lost: {ticket.why}")
        if not self.valid:
            raise PermitLost(f"the permit of gate {self.gate.name} is over")

    def extend(self, lease: float) -> None:
        """A new lease from now on. PermitLost if it is too late."""
        until = clock() + nanoseconds(lease, "lease")
        self.engine.check_process()
        with self.engine.user_lock:
            self.check()
            before, self.ticket.deadline = self.ticket.deadline, until
            if before == NO_DEADLINE or until < before:  # else whoever looks then finds that there is more time
                self.engine.lease_begins(self.gate, self.ticket)

    def release(self) -> None:
        """To release twice, or after it was lost, is nothing."""
        self.engine.of_user(self.gate, self.gate.release, self.ticket)

    def __repr__(self) -> str:
        return f"<permit of {self.gate.name}, slot {self.slot}, fence {self.fence}, {self.ticket.state}>"


P = TypeVar("P", bound=BasePermit)


class BaseLost(Generic[P]):
    """Is the permit lost? How to wait for that differs."""

    def __init__(self, permit: P) -> None:
        self.permit = permit

    def __bool__(self) -> bool:
        return self.is_set()

    def is_set(self) -> bool:
        return self.permit.ticket.state == LOST


class BaseSemaphore:
    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None = None) -> None:
        self.engine = engine
        self.name = name
        self.k = k
        self.gate = engine.gate(name, k, protocol or default_protocol(k))

    def statistics(self) -> Statistics:
        gate, counts = self.gate, self.gate.counts
        self.engine.check_process()
        with self.engine.user_lock:
            inside = sum(ticket.state == INSIDE for ticket in gate.tickets.values())
            return Statistics(
                gate=gate.name,
                k=gate.k,
                protocol=gate.protocol,
                guarantee=self.engine.membership.guarantee,
                entries=counts.entries,
                inside=inside,
                waiting=len(gate.tickets) - inside,
                wait_mean=counts.waited / counts.entries / SECOND if counts.entries else 0.0,
                wait_max=counts.longest / SECOND,
                messages_sent=counts.sent,
                messages_received=counts.received,
                permits_lost=counts.lost,
                views=counts.views,
            )

    def __repr__(self) -> str:
        return f"<gate {self.name}, k={self.k}, {self.gate.protocol}>"


def nanoseconds(seconds: float | None, what: str) -> int:
    """0: none was given."""
    if seconds is None:
        return 0
    if not seconds > 0:
        raise BadInput(f"a {what} of {seconds:g} s: it must be more than 0")
    return int(seconds * SECOND)
