"""What the asyncio API (api.py) and the thread API (sync.py) have in common."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from fairgate.core.ids import NIL
from fairgate.errors import PermitLost
from fairgate.live.arguments import lease_time
from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.live_protocols import default_protocol
from fairgate.live.ticket import INSIDE, LOST, NO_DEADLINE, Ticket
from fairgate.net.system import clock

SECOND = 1_000_000_000
TRY_SECONDS = 1.0  # how long try_acquire() waits for a slot that is free as far as the peers know


@dataclass(frozen=True)
class Statistics:
    """Counters of one gate at this peer, since this peer opened it.

    Attributes:
        gate: The name of the gate.
        k: How many permits the gate grants at a time.
        protocol: The protocol that the gate runs.
        guarantee: What happens when a peer dies. "host": its permits become free at once. "none": they stay taken.
        entries: Permits granted to this peer.
        inside: Permits that this peer holds now.
        waiting: Requests of this peer that are waiting now.
        wait_mean: The mean wait of all entries, in seconds.
        wait_max: The longest wait, in seconds.
        messages_sent: Protocol messages sent to other peers.
        messages_received: Protocol messages delivered here, including those between requests of this peer.
        permits_lost: Permits that ended before they were released.
        views: Views that the gate has had here: a new one for every change of its seats.
    """

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
    """What the permits of both APIs have in common."""

    __slots__ = ("engine", "gate", "ticket")

    def __init__(self, engine: LiveEngine, gate: LiveGate, ticket: Ticket) -> None:
        self.engine = engine
        self.gate = gate
        self.ticket = ticket

    @property
    def slot(self) -> int | None:
        """The slot that this permit occupies, 0 to k-1; None if the protocol has no slots.

        No two valid permits of a gate have the same slot, so it can stand for one of k devices, ports or licences.
        """
        return None if self.ticket.slot == NIL else self.ticket.slot

    @property
    def fence(self) -> int | None:
        """The fencing token: higher than that of every earlier permit of the same slot; None without slots.

        A resource that remembers the highest fence per slot can reject holders whose permit was lost.
        """
        return None if self.ticket.fence == NIL else self.ticket.fence

    @property
    def deadline(self) -> float | None:
        """When the lease expires, in seconds on CLOCK_BOOTTIME; None if the permit has no lease."""
        return None if self.ticket.deadline == NO_DEADLINE else self.ticket.deadline / SECOND

    def left(self) -> float | None:
        """The number of seconds until the lease expires, negative afterwards; None if the permit has no lease."""
        return None if self.ticket.deadline == NO_DEADLINE else (self.ticket.deadline - clock()) / SECOND

    @property
    def valid(self) -> bool:
        """True while the permit is held and its lease, if any, has not expired.

        The clock is read each time, so this turns False at the deadline even if the loss has not been reported yet.
        """
        ticket = self.ticket
        return ticket.state == INSIDE and (ticket.deadline == NO_DEADLINE or clock() < ticket.deadline)

    def check(self) -> None:
        """Call this right before anything that only a holder may do.

        Raises:
            PermitLost: The permit was lost or released, or its lease has expired.
        """
        ticket = self.ticket
        if ticket.state == LOST:
            raise PermitLost(f"the permit for gate {self.gate.name} was lost: {ticket.why}")
        if not self.valid:
            raise PermitLost(f"the permit for gate {self.gate.name} was released, or its lease has expired")

    def extend(self, lease: float) -> None:
        """Replace the lease by a new one that starts now. This can also shorten it, or add one.

        Args:
            lease: The duration of the new lease in seconds.

        Raises:
            PermitLost: The permit is no longer valid.
            BadInput: `lease` is not a positive number.
            ForkedPeer: The peer belongs to the parent process.
        """
        until = clock() + lease_time(lease)
        self.engine.check_process()
        with self.engine.user_lock:
            self.check()
            before, self.ticket.deadline = self.ticket.deadline, until
            if before == NO_DEADLINE or until < before:  # otherwise the pending timer sees the new deadline
                self.engine.lease_begins(self.gate, self.ticket)

    def release(self) -> None:
        """Give the slot back. Releasing twice, or after the permit was lost, is a no-op.

        Raises:
            ForkedPeer: The peer belongs to the parent process.
        """
        self.engine.of_user(self.gate, self.gate.release, self.ticket)

    def __repr__(self) -> str:
        return f"<permit for {self.gate.name}, slot {self.slot}, fence {self.fence}, {self.ticket.state}>"


P = TypeVar("P", bound=BasePermit)


class BaseLost(Generic[P]):
    """Whether a permit was lost. Waiting for it differs between the two APIs."""

    def __init__(self, permit: P) -> None:
        self.permit = permit

    def __bool__(self) -> bool:
        return self.is_set()

    def is_set(self) -> bool:
        """True if the permit was lost. A permit that was released first is never lost."""
        return self.permit.ticket.state == LOST


class BaseSemaphore:
    """What the semaphores of both APIs have in common.

    Attributes:
        name: The name of the gate.
        k: How many permits it grants at a time.
    """

    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None = None) -> None:
        self.engine = engine
        self.name = name
        self.k = k
        self.gate = engine.gate(name, k, protocol or default_protocol(k))

    def statistics(self) -> Statistics:
        """The counters of this gate at this peer.

        Returns:
            A frozen snapshot.

        Raises:
            ForkedPeer: The peer belongs to the parent process.
        """
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
