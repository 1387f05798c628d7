"""The API of fairgate for threads: the same as the asyncio API (api.py), with `with` instead of `async with`.

    from fairgate import sync

    with sync.join() as peer:
        with peer.semaphore("gpu", k=3) as permit:
            ...                                     # permit.lost is true once the permit was lost

A thread cannot be cancelled, so losing the permit does not end the body. Test `permit.lost`, or call `permit.check()`
right before anything that only a holder may do. If the permit was lost, `with` raises PermitLost when the body ends.
"""

import threading
import time
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, overload

from fairgate.arguments import SINGLE, check_request, given, lease_time
from fairgate.errors import BadInput, ForkedPeer, PermitLost
from fairgate.interface import (
    BaseBackend,
    BasePeer,
    BasePermit,
    BaseSemaphore,
    LatestPermits,
    Slot_co,
    ThreadGate,
    TokenProtocol,
    repr_of_lost,
    why_lost,
)
from fairgate.misuse import ForThreads
from fairgate.on_first_use import OnFirstUse
from fairgate.request import Request
from fairgate.room.clusters import standing_peer

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine
    from fairgate.net.secret import Secret
    from fairgate.net.tls import Tls

__all__ = ["Peer", "Permit", "Semaphore", "join", "lock", "semaphore"]

P = ParamSpec("P")
T = TypeVar("T")
RUNS_LATER = 0x20 | 0x80 | 0x200  # inspect.CO_GENERATOR, CO_COROUTINE and CO_ASYNC_GENERATOR; inspect is slow to import
SHORTEST, LONGEST = 0.001, 0.02  # seconds between two looks of `permit.lost.wait`


class Lost:
    """Whether a permit was lost: test it with `if permit.lost`, or wait with `permit.lost.wait(seconds)`."""

    def __init__(self, permit: "Permit[Any]") -> None:
        self.permit = permit

    def __bool__(self) -> bool:
        return self.is_set()

    def is_set(self) -> bool:
        """True if the permit was lost. A permit that was released first is never lost."""
        return why_lost(self.permit) != ""

    def __repr__(self) -> str:
        return repr_of_lost(self.permit)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the permit is lost or released.

        Args:
            timeout: How many seconds to wait; None waits forever.

        Returns:
            True if the permit was lost, False if it was released or the timeout passed first.
        """
        until = None if timeout is None else time.monotonic() + timeout
        pause = SHORTEST
        while self.permit.valid:
            left = LONGEST if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left, max(self.permit.left() or LONGEST, SHORTEST)))
            pause = min(2 * pause, LONGEST)
        return self.is_set()


class Permit(BasePermit[Slot_co], ForThreads):
    """The right to be inside a gate, from `Semaphore.acquire` until `release`.

    As a context manager it releases itself at the end of the body. A permit is lost when its lease expires, its peer
    or gate is closed, or somebody revokes it with `fairgate break`.

    Example:
        ```python
        with gpu.hold(lease=60) as permit:
            train(device=permit.slot)
            permit.check()  # raises PermitLost instead of saving with an expired lease
            save(fence=permit.fence)
        ```
    """

    __slots__ = ("is_entered",)

    is_entered: bool  # set by the first `with`

    @property
    def lost(self) -> Lost:
        """True in a boolean context once the permit was lost; `permit.lost.wait()` waits for that."""
        return Lost(self)

    def __enter__(self) -> Self:
        """Enter the body.

        Raises:
            PermitLost: The permit is already invalid.
            BadInput: Another `with` uses it, which would release it too early.
        """
        self.check()
        if hasattr(self, "is_entered"):
            raise self.shared()
        self.is_entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the permit. PermitLost if it was lost, unless the body raised an exception of its own.

        A forked child does not release the permit of its parent: ForkedPeer, unless the body raised an exception.
        """
        try:
            try:
                self.release()
            except KeyboardInterrupt:
                self.release()  # the first call may not have started
                raise
            why = why_lost(self)
        except ForkedPeer:
            if error is None:
                raise
            return
        if why and error is None:
            raise PermitLost(f"the permit for gate {self.gate} was lost: {why}")


class ThreadPermits(threading.local):
    """The permits of a gate that this thread has."""

    def __init__(self) -> None:
        self.bodies: list[Permit[Any]] = []  # of `with`, innermost last
        self.acquired: LatestPermits[Permit[Any]] = LatestPermits()


class Semaphore(BaseSemaphore[Slot_co], ForThreads):
    """A gate that grants at most k permits at a time, to any number of threads in any number of processes.

    Created by `Peer.semaphore` and `Peer.lock`, and without a peer by `sync.semaphore` and `sync.lock`. `with semaphore
    as permit` waits for a permit without a timeout and releases it at the end of the body. It raises what `acquire`
    raises, and PermitLost if the permit was lost. As a decorator it does that for every call of a function.

    Example:
        ```python
        report = peer.lock("report")

        @report
        def write_report(): ...
        ```
    """

    gate: ThreadGate

    def __init__(self, name: str, gate: ThreadGate) -> None:
        super().__init__(name, gate)
        self.permits = ThreadPermits()

    def acquire(
        self, timeout: float | None = None, *, lease: float | None = None, note: str = "", n: int = 1
    ) -> Permit[Slot_co] | None:
        """Wait for a permit. Ctrl-C during the wait withdraws the request.

        Args:
            timeout: How many seconds to wait; None waits forever, 0 only tries. As for `threading.Lock`, False only
                tries, and True and -1 wait forever.
            lease: How many seconds the permit is valid for, 0.001 or more, see `Permit.extend`; None means until it is
                released.
            note: A remark that `fairgate who` shows beside the request.
            n: How many slots the permit takes, up to k. It waits until that many are free at once; later requests do
                not overtake it meanwhile. Clusters only grant one.

        Returns:
            The permit, which the caller must release; None if the timeout passed first.

        Raises:
            KMismatch: The gate is in use with a different k.
            BadInput: An argument is invalid, or the gate cannot be used at present (a full disk, for example).
            GateClosed: The gate or the peer is closed, or was closed during the wait.
            PermitLost: The permit was lost before this call could return it.
            ForkedPeer: The peer belongs to the parent process.

        Example:
            ```python
            if permit := gpu.acquire(timeout=5):
                with permit:
                    ...
            ```
        """
        if timeout is True or timeout is False:
            timeout = None if timeout else 0
        if timeout is not None or note != "" or n is not SINGLE:
            timeout = check_request(timeout, note, n)
        if lease is not None:
            lease_time(lease)
        held = None
        try:
            held = self.gate.acquire(timeout, n, lease, note)
            if held is None:
                return None
            permit: Permit[Slot_co] = Permit(self.name, held)
            self.permits.acquired.add(permit)
            return permit
        except BaseException:  # Ctrl-C: nobody would ever release it
            if held is not None:
                held.release()
            raise

    def release(self) -> None:
        """Release the latest permit that this thread got from `acquire` and has not released yet.

        Raises:
            BadInput: There is none.
            ForkedPeer: The peer belongs to the parent process.
        """
        self.permits.acquired.release(self.name)

    def hold(
        self, timeout: float | None = None, *, lease: float | None = None, note: str = "", n: int = 1
    ) -> Permit[Slot_co]:
        """Like `acquire`, but a timeout is an error: `with gpu.hold(timeout=5, lease=60) as permit`.

        Raises:
            AcquireTimeout: The timeout passed without a permit.
            FairgateError: As for `acquire`.
        """
        permit = self.acquire(timeout, lease=lease, note=note, n=n)
        if permit is None:
            assert timeout is not None, "without a timeout acquire() returns a permit or raises"
            raise self.timed_out(timeout)
        return permit

    def __enter__(self) -> Permit[Slot_co]:
        permit = self.acquire()
        assert permit is not None, "acquire() without a timeout returns a permit or raises"
        try:
            permit.is_entered = True
            self.permits.bodies.append(permit)
        except BaseException:
            permit.release()
            raise
        return permit

    def __exit__(self, *how: Any) -> None:
        self.permits.bodies.pop().__exit__(*how)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Decorate a function: every call waits for a permit, and releases it at its end.

        Raises:
            BadInput: It is an `async def` or a generator, whose body runs after the call has returned.
        """
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & RUNS_LATER:
            raise BadInput(
                f"{function!r:.80} is an async def or a generator: its body would run outside; use `with` in its body"
            )

        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            with self:
                return function(*args, **kwargs)

        return guarded

    def requests(self) -> list[Request]:
        """Everyone at this gate: the holders by slot, then the waiters in order.

        In a cluster, peers that do not answer within 2 s are left out.

        Raises:
            GateClosed: The gate or the peer is closed.
            BadInput: The gate cannot be read.
            ForkedPeer: The peer belongs to the parent process.
        """
        return self.gate.requests()

    def holders(self) -> list[Request]:
        """The holders of permits, ordered by slot. Raises what `requests` raises."""
        return [one for one in self.requests() if one.inside]

    def waiters(self) -> list[Request]:
        """The waiting requests, longest wait first. Raises what `requests` raises."""
        return [one for one in self.requests() if not one.inside]

    def locked(self) -> bool:
        """True if all k slots are taken. Raises what `requests` raises."""
        return sum([len(one.slots) or 1 for one in self.holders()]) >= self.k

    def resize(self, k: int) -> None:
        """Change how many permits the gate grants at a time, for all its users.

        If more than k are inside, nobody else is let in until enough of them have left.

        Raises:
            BadInput: k is not 1 to 1000, a waiting request wants more slots than that, or the gate is in a cluster.
            GateClosed: The gate or the peer is closed.
            ForkedPeer: The peer belongs to the parent process.
        """
        self.gate.resize(k)

    def close(self) -> None:
        """Leave the gate. Other processes are not affected; closing twice is a no-op.

        Requests of this process that are waiting end with GateClosed, and permits that it holds are lost.
        """
        self.gate.close()


class Backend(BaseBackend, Protocol):
    """The peer of one host, or of a cluster."""

    def gate(self, name: str, k: int, protocol: str | None) -> ThreadGate: ...

    def close(self) -> None: ...


class Peer(BasePeer, ForThreads):
    """This process as a user of gates, on this host or in a cluster, from `join` until `close`.

    As a context manager it closes itself at the end of the body.
    """

    backend: Backend

    @overload
    def semaphore(self, name: str, k: int, protocol: TokenProtocol | None = None) -> Semaphore[int]: ...
    @overload
    def semaphore(self, name: str, k: int, protocol: str) -> Semaphore: ...
    def semaphore(self, name: str, k: int, protocol: str | None = None) -> Semaphore:
        """Open a gate. Gates with the same name are the same gate for all processes of this user, or of the cluster.

        Args:
            name: The name of the gate, 1 to 200 bytes of printable text. On one host a name with a slash is the path of
                the gate's file: that is how several users share a gate.
            k: How many permits the gate grants at a time, 1 to 1000.
            protocol: The protocol that a cluster runs, a name from `fairgate protocols`; None chooses a suitable one.

        Raises:
            KMismatch: The gate is in use with a different k. In a cluster, only the first request finds out about
                other peers.
            BadInput: The name or k is invalid, the gate's file cannot be used, or the protocol is unknown, cannot run
                live, does not support this k, or differs from the one that this process already uses for the gate.
            GateClosed: The peer is closed.
            ForkedPeer: The peer belongs to the parent process.

        Example:
            ```python
            gpu = peer.semaphore("gpu", k=3)
            with gpu as permit:
                train(device=permit.slot)
            ```
        """
        return Semaphore(name, self.backend.gate(name, k, protocol))

    @overload
    def lock(self, name: str, protocol: TokenProtocol | None = None) -> Semaphore[int]: ...
    @overload
    def lock(self, name: str, protocol: str) -> Semaphore: ...
    def lock(self, name: str, protocol: str | None = None) -> Semaphore:
        """A semaphore with k=1. See `semaphore`."""
        return self.semaphore(name, 1, protocol)

    def close(self) -> None:
        """Leave. Waiting requests end with GateClosed and held permits are lost. Closing twice is a no-op."""
        self.backend.close()

    @property
    def engine(self) -> "LiveEngine":
        """The engine of a cluster's peer. A peer of one host has none."""
        engine: LiveEngine = self.backend.engine  # type: ignore[attr-defined]  # only that of a cluster has it
        return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()


def join(
    *seeds: str,
    listen: str | None = None,
    advertise: str | None = None,
    cluster: str | None = None,
    tls: "Tls | None" = None,
    insecure: bool = False,
    secret: "Secret | None" = None,
    join_timeout: float | None = None,
    standing: bool | None = None,
    lease: float | None = None,
    drift: float | None = None,
    state: str | None = None,
    journal: str | None = None,
) -> Peer:
    """Make this process a user of the gates of this host, or of a cluster of several hosts.

    Takes the arguments of `fairgate.join`. In a cluster it blocks until this process is a peer, or finds that it can be
    a guest.

    Returns:
        The peer: close it, or use it with `with`.

    Raises:
        BadInput: An argument or an address is not usable, or no peer of the cluster let this one join within
            `join_timeout` seconds.

    Example:
        ```python
        with sync.join() as peer, peer.lock("report") as permit:
            ...
        ```
    """
    network = given(
        listen=listen,
        advertise=advertise,
        cluster=cluster,
        tls=tls,
        insecure=insecure or None,
        secret=secret,
        join_timeout=join_timeout,
        standing=standing,
        lease=lease,
        drift=drift,
        state=state,
    )
    if seeds and (standing_here := standing_peer(seeds, journal, network)) is not None:
        from fairgate.room.guest_threads import ThreadGuestPeer  # noqa: PLC0415

        return Peer(ThreadGuestPeer(standing_here))
    if seeds or network:
        from fairgate.live.threads import ClusterPeer  # noqa: PLC0415 (most programs need no cluster)

        return Peer(ClusterPeer(seeds, journal, network))
    from fairgate.room.peer import ThreadHostPeer, refuse_journal  # noqa: PLC0415

    refuse_journal(journal)
    return Peer(ThreadHostPeer())


def semaphore(name: str, k: int) -> Semaphore[int]:
    """A gate of this host that needs no `join`: every process opens it when it first uses it, also after a fork.

    So a module can create it when it is imported, and a decorated function works in every worker of a server. It can be
    pickled. It stays open until `close`, or until the process ends.

    Args:
        name: As for `Peer.semaphore`.
        k: How many permits the gate grants at a time, 1 to 1000.

    Raises:
        BadInput: The name or k is invalid. Everything else is found out by the first use.

    Example:
        ```python
        gpu = fairgate.sync.semaphore("gpu", k=3)

        @gpu
        def train(model): ...
        ```
    """
    from fairgate.room.peer import ThreadHostPeer  # noqa: PLC0415 (most programs use one of the APIs)

    return Semaphore(name, OnFirstUse(ThreadHostPeer, name, k))


def lock(name: str) -> Semaphore[int]:
    """A semaphore with k=1 that needs no `join`. See `semaphore`."""
    return semaphore(name, 1)
