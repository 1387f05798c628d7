"""What the asyncio API (api.py) and the thread API (sync.py) have in common.

Both APIs work on two kinds of gates: a waiting room on one host (room/), and a cluster that runs a protocol (live/).
The protocols at the end are what they expect of each.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

from fairgate.arguments import SECOND, lease_time, printable
from fairgate.errors import AcquireTimeout, BadInput, FairgateError, ForkedPeer, PermitLost
from fairgate.forgotten import watch, watches
from fairgate.misuse import OfOneProcess
from fairgate.on_first_use import OnFirstUse
from fairgate.request import Request

# What `slot` and `fence` of a permit are: int, or int | None if it is not known that the gate has slots.
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Slot_co = TypeVarWithDefault("Slot_co", bound=int | None, covariant=True, default=int | None)
else:
    Slot_co = TypeVar("Slot_co", covariant=True)

TokenProtocol = Literal[  # those that run live and have slots
    "bv95", "centralised", "fair_k", "fair_k_bounded", "naimi_trehel", "one_line", "raymond_tree", "srimani_reddy",
    "suzuki_kasami",
]  # fmt: skip
SHOWN = 3  # holders that a message names
LONGEST_SHOWN = 40  # characters of a note


@dataclass(frozen=True)
class Statistics:
    """Counters of one gate: on one host of all its processes, since it was created; in a cluster, of this peer alone.

    Attributes:
        gate: The name of the gate.
        k: How many permits the gate grants at a time.
        protocol: The protocol that a cluster runs; "room" on one host.
        guarantee: What happens when a process dies. "host": its permits become free at once. "lease": in a cluster,
            they become free when the lease of its peer is over. "no majority": this peer of a cluster cannot reach a
            majority of the voters, so nobody is let in until it can.
        entries: Permits granted.
        inside: Permits held now.
        waiting: Requests that are waiting now.
        wait_mean: The mean wait of all entries, in seconds.
        wait_max: The longest wait, in seconds.
        permits_lost: Permits that ended before they were released.
        messages_sent: Protocol messages sent to other peers of a cluster.
        messages_received: Protocol messages delivered here, including those between requests of this peer.
        views: Views that the gate of a cluster has had here: a new one for every change of its seats.
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
    permits_lost: int
    messages_sent: int = 0
    messages_received: int = 0
    views: int = 0


class BasePermit(OfOneProcess, Generic[Slot_co]):
    """What the permits of both APIs have in common."""

    __slots__ = ("__weakref__", "gate", "held")

    def __init__(self, gate: str, held: "Held") -> None:
        self.gate = gate
        self.held = held
        watch(self, gate, held)

    @property
    def slot(self) -> Slot_co:
        """The slot that this permit occupies, 0 to k-1; None if the protocol has no slots.

        No two valid permits of a gate have the same slot, so it can stand for one of k devices, ports or licences. A
        permit from `acquire(n=...)` has several: see `slots`.
        """
        return cast(Slot_co, self.held.slots[0] if self.held.slots else None)

    @property
    def slots(self) -> tuple[int, ...]:
        """All slots of this permit, in rising order; empty if the protocol has no slots."""
        return self.held.slots

    @property
    def fence(self) -> Slot_co:
        """The fencing token: higher than that of every earlier permit of the same slot; None without slots.

        A resource that remembers the highest fence per slot can reject holders whose permit was lost.
        """
        return cast(Slot_co, self.held.fence or None)

    @property
    def deadline(self) -> float | None:
        """When the lease that was asked for expires, in seconds on CLOCK_BOOTTIME; None if there is none."""
        deadline = self.held.deadline()
        return deadline / SECOND if deadline else None

    def left(self) -> float | None:
        """The number of seconds until `deadline`, negative afterwards; None if the permit has no lease."""
        deadline = self.held.deadline()
        return (deadline - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) / SECOND if deadline else None

    @property
    def safe_until(self) -> float | None:
        """Until when the permit is certainly valid, as far as is known now; in seconds on CLOCK_BOOTTIME.

        In a cluster this is when the lease of the peer ends, which is renewed again and again while it can reach a
        majority of the voters, or `deadline` if that is earlier. On one host it is `deadline`: None without a lease.
        Nobody else gets the slot before, unless `fairgate break` or the end of the peer takes the permit away.

        It lies in the past once the permit has ended in whatever way, and in a forked child.
        """
        until = self.held.safe_until()
        return until / SECOND if until else None

    @property
    def valid(self) -> bool:
        """True while the permit is held and `safe_until`, if any, has not come.

        The clock is read each time, so this turns False at that time even if the loss has not been reported yet.
        """
        return self.held.is_valid()

    def check(self) -> None:
        """Call this right before anything that only a holder may do.

        Raises:
            PermitLost: The permit was lost or released, or its lease has expired.
        """
        why = why_lost(self)
        if why:
            raise PermitLost(f"the permit for gate {self.gate} was lost: {why}")
        if not self.held.is_valid():
            raise PermitLost(f"the permit for gate {self.gate} was released, or its lease has expired")

    def extend(self, lease: float) -> None:
        """Replace the lease by a new one that starts now. This can also shorten it, or add one.

        Args:
            lease: The duration of the new lease in seconds.

        Raises:
            PermitLost: The permit is no longer valid.
            BadInput: `lease` is not a positive number.
            ForkedPeer: The peer belongs to the parent process.
        """
        length = lease_time(lease)
        if not length:
            raise BadInput("extend needs the duration of the new lease in seconds, not None")
        try:
            extended = self.held.extend(length)
        except ForkedPeer as error:
            raise of_the_parent(self.gate) from error
        if not extended:
            self.check()

    def release(self) -> None:
        """Give the slot back. Releasing twice, or after the permit was lost, is a no-op.

        Raises:
            ForkedPeer: The peer belongs to the parent process.
        """
        try:
            self.held.release()
        except ForkedPeer as error:
            raise of_the_parent(self.gate) from error
        watches.pop(id(self.held), None)

    def shared(self) -> BadInput:
        """The error for a permit that several bodies use: the first one to end would release it."""
        return BadInput(f"this permit for gate {self.gate} is in use by a `with` block already: acquire one for each")

    def __repr__(self) -> str:
        try:
            state = "lost" if self.held.why_lost() else "valid" if self.valid else "released"
        except ForkedPeer:
            state = "of the parent process"
        slots = f"slot {', '.join(map(str, self.slots))}" if self.slots else "no slot"
        return f"<permit for {self.gate}, {slots}, fence {self.fence}, {state}>"


def why_lost(permit: BasePermit[Any]) -> str:
    """Why it was lost; empty if it was not. Raises ForkedPeer."""
    try:
        return permit.held.why_lost()
    except ForkedPeer as error:
        raise of_the_parent(permit.gate) from error


def repr_of_lost(permit: BasePermit[Any]) -> str:
    """Of `permit.lost`. A prompt shows it, so it says what `bool` would."""
    try:
        why = why_lost(permit)
    except ForkedPeer:
        why = "of the parent process"
    return f"<lost: {why or 'no'}>"


def of_the_parent(gate: str) -> ForkedPeer:
    """The error for a permit in a forked child."""
    return ForkedPeer(f"this permit for gate {gate} belongs to the parent process: acquire one in the child")


T = TypeVar("T", bound=BasePermit[Any])
FEW = 8  # permits, beyond which those that were released are forgotten


class LatestPermits(Generic[T]):
    """The permits that one thread or task got from `acquire`, the latest last. Some may have been released since."""

    def __init__(self) -> None:
        self.permits: list[T] = []
        self.most = FEW

    def add(self, permit: T) -> None:
        self.permits.append(permit)
        if len(self.permits) > self.most:
            self.permits = [each for each in self.permits if each.valid]
            self.most = max(FEW, 2 * len(self.permits))

    def release(self, gate: str) -> None:
        while self.permits:
            permit = self.permits.pop()
            if permit.valid or why_lost(permit):
                permit.release()
                return
        raise BadInput(f"there is no permit of gate {gate} to release: the caller has acquired none, or released it")


class BaseSemaphore(OfOneProcess, Generic[Slot_co]):
    """What the semaphores of both APIs have in common.

    Attributes:
        name: The name of the gate.
    """

    def __init__(self, name: str, gate: "Gate") -> None:
        self.name = name
        self.gate = gate

    @property
    def k(self) -> int:
        """How many permits the gate grants at a time. On one host `resize` can change it."""
        return self.gate.k

    def statistics(self) -> Statistics:
        """The counters of this gate.

        Returns:
            A frozen snapshot.

        Raises:
            GateClosed: The gate is closed.
            ForkedPeer: The peer belongs to the parent process.
        """
        return self.gate.statistics()

    def timed_out(self, timeout: float) -> AcquireTimeout:
        """The error for a request that got no permit in time. It names the holders, as far as that takes no time."""
        holders: list[Request] = []
        with suppress(FairgateError, OSError):  # what went wrong is that the time is over
            holders = self.gate.holders_now()
        return AcquireTimeout(f"timed out waiting for gate {self.name} ({timeout:g} s){held_by(holders)}", holders)

    def __reduce__(self) -> tuple[object, ...]:
        """A gate that every process opens for itself can be sent to another one."""
        if isinstance(self.gate, OnFirstUse):
            return type(self), (self.name, self.gate)
        return super().__reduce__()

    def __repr__(self) -> str:
        protocol = self.gate.protocol or "protocol not chosen yet"  # by the standing peer, for its guests
        return f"<gate {self.name}, k={self.k}, {protocol}, {self.gate.state()}>"


def held_by(holders: list[Request]) -> str:
    """The end of a message: who they are."""
    if not holders:
        return ""
    now = time.time()
    named = [
        f"pid {one.pid} on {printable(one.host)} for {max(now - one.since, 0):.3g} s"
        + (f' ("{printable(one.note)[:LONGEST_SHOWN]}")' if one.note else "")
        for one in holders[:SHOWN]
    ]
    more = [f"and {len(holders) - SHOWN} more"] if len(holders) > SHOWN else []
    return f", held by {', '.join(named + more)}"


class BasePeer(OfOneProcess):
    """What the peers of both APIs have in common."""

    def __init__(self, backend: "BaseBackend") -> None:
        self.backend = backend

    def __repr__(self) -> str:
        return f"<{self.backend.describe()}>"


# What the APIs expect of both kinds of gates.


class Held(Protocol):
    """A permit, as its gate keeps it."""

    @property
    def slots(self) -> tuple[int, ...]: ...

    @property
    def fence(self) -> int | None: ...

    def deadline(self) -> int:
        """When the lease that its user asked for ends, in ns on CLOCK_BOOTTIME; 0 if it has none."""

    def safe_until(self) -> int:
        """When it ends if nothing else happens, by that lease or by that of the peer; 0 if it does not."""

    def is_valid(self) -> bool: ...

    def why_lost(self) -> str:
        """Why it ended before it was released; empty if it did not."""

    def extend(self, length: int) -> bool:
        """A new lease of this many ns from now on. False if the permit is not valid any more."""

    def release(self) -> None: ...


class TaskHeld(Held, Protocol):
    def when_lost(self, call: Callable[[], None]) -> None:
        """Call this in the loop that acquired it, once, when it is lost; at once if it already was."""

    async def settled(self) -> None:
        """Wait until what `release` left to the loop is done."""


class BaseBackend(Protocol):
    def describe(self) -> str:
        """For people: what kind of peer it is, of what, its state, and how many gates it has open. Never raises."""


class Gate(Protocol):
    @property
    def protocol(self) -> str: ...

    def state(self) -> str:
        """For people: "open", or what it is instead. Never raises."""

    def holders_now(self) -> list[Request]:
        """The holders that are known here, by slot, without waiting for anybody: not all of them, in a cluster."""

    @property
    def k(self) -> int: ...

    def statistics(self) -> Statistics: ...


class ThreadGate(Gate, Protocol):
    def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> Held | None:
        """Nothing is left behind if this raises."""

    def requests(self) -> list[Request]: ...

    def resize(self, k: int) -> None: ...

    def close(self) -> None: ...


class TaskGate(Gate, Protocol):
    async def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> TaskHeld | None:
        """Nothing is left behind if this raises, or is cancelled."""

    async def requests(self) -> list[Request]: ...

    async def resize(self, k: int) -> None: ...

    async def close(self) -> None: ...
