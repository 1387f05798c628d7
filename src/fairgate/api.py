"""The asyncio API of fairgate.

    import fairgate

    async with fairgate.join() as peer:             # the gates of this host
        gpu = peer.semaphore("gpu", k=3)            # peer.lock("report") is a semaphore with k=1
        async with gpu as permit:                   # permit.slot, .fence, .deadline, .lost
            ...
        if permit := await gpu.acquire(timeout=5):  # None after 5 seconds without a permit
            ...
            permit.release()

The body of `async with` only runs while its permit is valid: if the permit is lost, the body is cancelled and
`async with` raises PermitLost. `fairgate.sync` is the same API for threads. A gate of this host needs no `join`: see
`semaphore` at the end.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload
from weakref import WeakKeyDictionary

from fairgate.arguments import SINGLE, check_request, given, lease_time
from fairgate.errors import BadInput, ForkedPeer, PermitLost
from fairgate.interface import (
    BaseBackend,
    BasePeer,
    BasePermit,
    BaseSemaphore,
    LatestPermits,
    Slot_co,
    TaskGate,
    TaskHeld,
    TokenProtocol,
    of_the_parent,
    repr_of_lost,
    why_lost,
)
from fairgate.misuse import ForTasks, OfOneProcess
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


class Lost:
    """Whether a permit was lost: test it with `if permit.lost`, or await it with `await permit.lost.wait()`."""

    def __init__(self, permit: "Permit[Any]") -> None:
        self.permit = permit

    def __bool__(self) -> bool:
        return self.is_set()

    def is_set(self) -> bool:
        """True if the permit was lost. A permit that was released first is never lost."""
        return why_lost(self.permit) != ""

    def __repr__(self) -> str:
        return repr_of_lost(self.permit)

    async def wait(self) -> str:
        """Wait until the permit is lost or released.

        Returns:
            The reason for the loss; empty if it was released.
        """
        await self.permit.ended().wait()
        return why_lost(self.permit)


class Permit(BasePermit[Slot_co], ForTasks):
    """The right to be inside a gate, from `Semaphore.acquire` until `release`.

    As an async context manager it releases itself at the end of the body, and cancels the body if it is lost. A permit
    is lost when its lease expires, its peer or gate is closed, or somebody revokes it with `fairgate break`.

    Example:
        ```python
        async with gpu.hold(lease=60) as permit:
            await train(device=permit.slot)
            permit.check()  # raises PermitLost instead of saving with an expired lease
            save(fence=permit.fence)
        ```
    """

    __slots__ = ("cancelled", "end", "task")

    held: TaskHeld

    def __init__(self, gate: str, held: TaskHeld) -> None:
        super().__init__(gate, held)
        self.end: asyncio.Event | None = None  # for those who wait for the loss
        self.task: asyncio.Task[Any] | None = None  # in the body: cancelled when the permit is lost
        self.cancelled = False  # whether we cancelled it

    def ended(self) -> asyncio.Event:
        """Set when the permit is lost or released; created on first use."""
        if self.end is None:
            self.end = asyncio.Event()
            self.held.when_lost(self.is_lost)
            if not self.valid:
                self.end.set()
        return self.end

    def is_lost(self) -> None:
        """Called by the gate, in our loop."""
        if self.end is not None:
            self.end.set()
        if self.task is not None and not self.cancelled:
            self.cancelled = True
            self.task.cancel()

    @property
    def lost(self) -> Lost:
        """True in a boolean context once the permit was lost; `await permit.lost.wait()` waits for that."""
        return Lost(self)

    def release(self) -> None:
        super().release()
        if self.end is not None:
            self.end.set()

    async def __aenter__(self) -> Self:
        """Enter the body; from now on losing the permit cancels this task.

        Raises:
            PermitLost: The permit is already invalid.
            BadInput: Another `async with` uses it, which would release it too early.
        """
        self.check()
        if self.task is not None:
            raise self.shared()
        self.task = asyncio.current_task()
        self.held.when_lost(self.is_lost)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the permit. PermitLost if it was lost, unless the body raised an exception of its own.

        A forked child does not release the permit of its parent: ForkedPeer, unless the body raised an exception.
        """
        task, self.task = self.task, None
        try:
            self.release()
            if not self.cancelled:
                await self.held.settled()
            lost = why_lost(self)
        except ForkedPeer:
            if error is None:
                raise
            return
        if self.cancelled and task is not None:
            if kind is not asyncio.CancelledError:  # the body ended before our cancellation reached it
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            if task.uncancel() > 0:  # someone else cancelled it too: that cancellation takes precedence
                if kind is asyncio.CancelledError:
                    return
                raise asyncio.CancelledError
        elif kind is asyncio.CancelledError:
            return  # someone else cancelled the task
        if lost and (error is None or kind is asyncio.CancelledError):
            raise PermitLost(f"the permit for gate {self.gate} was lost: {lost}") from error


class Hold(OfOneProcess, ForTasks, Generic[Slot_co]):
    """The async context manager that `Semaphore.hold` returns."""

    def __init__(
        self, semaphore: "Semaphore[Slot_co]", timeout: float | None, lease: float | None, note: str, n: int
    ) -> None:
        self.semaphore = semaphore
        self.timeout = timeout
        self.lease = lease
        self.note = note
        self.n = n
        self.permits: dict[asyncio.Task[Any] | None, list[Permit[Slot_co]]] = {}  # of each task, innermost last

    async def __aenter__(self) -> Permit[Slot_co]:
        permit = await self.semaphore.acquire(self.timeout, lease=self.lease, note=self.note, n=self.n)
        if permit is None:
            assert self.timeout is not None, "without a timeout acquire() returns a permit or raises"
            raise self.semaphore.timed_out(self.timeout)
        try:
            await permit.__aenter__()
        except BaseException:
            permit.release()
            raise
        self.permits.setdefault(asyncio.current_task(), []).append(permit)
        return permit

    def is_forked(self) -> bool:
        """Do its permits belong to the parent process?"""
        try:
            for permits in self.permits.values():
                why_lost(permits[-1])
        except ForkedPeer:
            return True
        return False

    def __repr__(self) -> str:
        return f"<hold() of {self.semaphore!r}>"

    async def __aexit__(self, *how: Any) -> None:
        try:
            task = asyncio.current_task()
        except RuntimeError:  # a forked child, where asyncio knows of no running loop
            if not self.is_forked():
                raise
            if how[1] is None:
                raise of_the_parent(self.semaphore.name) from None
            return
        permits = self.permits[task]
        permit = permits.pop()
        if not permits:
            del self.permits[task]
        await permit.__aexit__(*how)


class Semaphore(BaseSemaphore[Slot_co], ForTasks):
    """A gate that grants at most k permits at a time, to any number of tasks in any number of processes.

    Created by `Peer.semaphore` and `Peer.lock`, and without a peer by `fairgate.semaphore` and `fairgate.lock`. `async
    with semaphore as permit` waits for a permit without a timeout and releases it at the end of the body. It raises
    what `acquire` raises, and PermitLost if the permit was lost. As a decorator of an `async def` it does that for
    every call.
    """

    gate: TaskGate

    def __init__(self, name: str, gate: TaskGate) -> None:
        super().__init__(name, gate)
        self.plain = Hold(self, None, None, "", 1)  # for `async with` without options
        self.acquired: WeakKeyDictionary[asyncio.Task[Any], LatestPermits[Permit[Any]]] = WeakKeyDictionary()

    async def acquire(
        self, timeout: float | None = None, *, lease: float | None = None, note: str = "", n: int = 1
    ) -> Permit[Slot_co] | None:
        """Wait for a permit. Cancelling the task withdraws the request.

        Args:
            timeout: How many seconds to wait; None or -1 waits forever, 0 only tries.
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
            if permit := await gpu.acquire(timeout=5):
                try:
                    ...
                finally:
                    permit.release()
            ```
        """
        if timeout is not None or note != "" or n is not SINGLE:
            timeout = check_request(timeout, note, n)
        if lease is not None:
            lease_time(lease)
        held = await self.gate.acquire(timeout, n, lease, note)
        if held is None:
            return None
        permit: Permit[Slot_co] = Permit(self.name, held)
        task = asyncio.current_task()
        assert task is not None
        self.acquired.setdefault(task, LatestPermits()).add(permit)
        return permit

    def release(self) -> None:
        """Release the latest permit that this task got from `acquire` and has not released yet.

        Raises:
            BadInput: There is none.
            ForkedPeer: The peer belongs to the parent process.
        """
        task = asyncio.current_task()
        assert task is not None
        self.acquired.setdefault(task, LatestPermits()).release(self.name)

    def hold(
        self, timeout: float | None = None, *, lease: float | None = None, note: str = "", n: int = 1
    ) -> Hold[Slot_co]:
        """`async with` with arguments: `async with gpu.hold(timeout=5, lease=60) as permit`.

        Takes the arguments of `acquire`. Entering raises AcquireTimeout if the timeout passes without a permit, and
        otherwise what `acquire` raises.
        """
        return Hold(self, timeout, lease, note, n)

    async def __aenter__(self) -> Permit[Slot_co]:
        return await self.plain.__aenter__()

    async def __aexit__(self, *how: Any) -> None:
        await self.plain.__aexit__(*how)

    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Decorate an `async def`: every call waits for a permit, and releases it at its end."""
        if not inspect.iscoroutinefunction(function):
            raise BadInput(f"{function!r:.80} is not an async def: gates of asyncio cannot guard it")

        @wraps(function)
        async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            async with self:
                return await function(*args, **kwargs)

        return guarded

    async def requests(self) -> list[Request]:
        """Everyone at this gate: the holders by slot, then the waiters in order.

        In a cluster, peers that do not answer within 2 s are left out.

        Raises:
            GateClosed: The gate or the peer is closed.
            BadInput: The gate cannot be read.
            ForkedPeer: The peer belongs to the parent process.
        """
        return await self.gate.requests()

    async def holders(self) -> list[Request]:
        """The holders of permits, ordered by slot. Raises what `requests` raises."""
        return [one for one in await self.requests() if one.inside]

    async def waiters(self) -> list[Request]:
        """The waiting requests, longest wait first. Raises what `requests` raises."""
        return [one for one in await self.requests() if not one.inside]

    async def locked(self) -> bool:
        """True if all k slots are taken. Raises what `requests` raises."""
        return sum([len(one.slots) or 1 for one in await self.holders()]) >= self.k

    async def resize(self, k: int) -> None:
        """Change how many permits the gate grants at a time, for all its users.

        If more than k are inside, nobody else is let in until enough of them have left.

        Raises:
            BadInput: k is not 1 to 1000, a waiting request wants more slots than that, or the gate is in a cluster.
            GateClosed: The gate or the peer is closed.
            ForkedPeer: The peer belongs to the parent process.
        """
        await self.gate.resize(k)

    async def close(self) -> None:
        """Leave the gate. Other processes are not affected; closing twice is a no-op.

        Requests of this process that are waiting end with GateClosed, and permits that it holds are lost.
        """
        await self.gate.close()


class Backend(BaseBackend, Protocol):
    """The peer of one host, or of a cluster."""

    async def start(self) -> None: ...

    def gate(self, name: str, k: int, protocol: str | None) -> TaskGate: ...

    async def leave(self) -> None: ...


class Peer(BasePeer, ForTasks):
    """This process as a user of gates, on this host or in a cluster. Created by `fairgate.join`."""

    backend: Backend
    entered_by = "async with fairgate.join() as peer"

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
            async with gpu as permit:
                await train(device=permit.slot)
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

    async def close(self) -> None:
        """Leave. Waiting requests end with GateClosed and held permits are lost. Closing twice is a no-op."""
        await self.backend.leave()

    @property
    def engine(self) -> "LiveEngine":
        """The engine of a cluster's peer. A peer of one host has none."""
        engine: LiveEngine = self.backend.engine  # type: ignore[attr-defined]  # only that of a cluster has it
        return engine


class Joining(OfOneProcess, ForTasks):
    """What `join` returns: either await it and close the peer yourself, or use it with `async with`."""

    def __init__(self, backend: Backend) -> None:
        self.peer = Peer(backend)

    async def start(self) -> Peer:
        await self.peer.backend.start()
        return self.peer

    def __repr__(self) -> str:
        return f"<join(), {self.peer.backend.describe()}>"

    def __await__(self) -> Generator[Any, None, Peer]:
        return self.start().__await__()

    async def __aenter__(self) -> Peer:
        return await self.start()

    async def __aexit__(self, *how: object) -> None:
        await asyncio.shield(self.peer.close())


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
) -> Joining:
    """Make this process a user of the gates of this host, or of a cluster of several hosts.

    Without arguments these are the gates of this host. With `seeds` it joins a cluster; with `listen` but without
    `seeds` it creates one. If this host has a standing peer in that cluster (`fairgate peer`), this process becomes its
    guest, and needs neither keys nor an address; otherwise it becomes a peer.

    Args:
        *seeds: Addresses ("host:port") of peers of the cluster. The first one that answers is used.
        listen: Where to listen, "host:port" or "unix:/path". Required to create a cluster; otherwise the default is a
            free port of the address from which the first seed is reached, or a new Unix socket beside the seed.
        advertise: The address at which other peers reach this one, if it is not `listen` (NAT, containers).
        cluster: The name of the cluster; None means "fairgate". Peers of clusters with other names are refused.
        tls: The keys of this host, from `fairgate.net.keys.load`. Required unless all addresses are loopback addresses
            or Unix sockets.
        insecure: Do without TLS: anyone who can reach the port can enter.
        secret: The secret that the peers share, from `fairgate.net.secret.load`. Required for loopback addresses
            without TLS. None reads it from the file that the environment variable FAIRGATE_SECRET names.
        join_timeout: How many seconds to try to join; None means 30.
        standing: Whether this peer may vote on the roster. None: if it creates the cluster.
        lease: For a peer that creates a cluster: how many seconds a peer that cannot reach a majority of the voters
            keeps its permits, and how long it takes until the slots of a killed peer are free. None means 10.
        drift: For a peer that creates a cluster: by which fraction the clocks of two hosts may run at different
            speeds. None means 0.01.
        state: A directory for what this peer must know when it is started again. None: nothing is saved.
        journal: A file to write every step of this peer of a cluster to, for `fairgate replay`. If the peer opens
            several gates, the name must contain `{gate}`, which is replaced by the name of the gate.

    Returns:
        An object to use with `async with join() as peer`, or `peer = await join()` and later `await peer.close()`.

    Raises:
        BadInput: Here or when awaited: an argument or an address is not usable, or no peer of the cluster let this one
            join within `join_timeout` seconds.

    Example:
        ```python
        async with fairgate.join() as peer:  # the gates of this host
            ...

        from fairgate.net import keys
        tls = keys.load(Path("/etc/fairgate"))
        async with fairgate.join("10.0.0.5:7400", tls=tls) as peer:  # a cluster
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
        from fairgate.room.guest_tasks import TaskGuestPeer  # noqa: PLC0415

        return Joining(TaskGuestPeer(standing_here))
    if seeds or network:
        from fairgate.live.tasks import ClusterPeer  # noqa: PLC0415 (most programs need no cluster)

        return Joining(ClusterPeer(seeds, journal, network))
    from fairgate.room.peer import refuse_journal  # noqa: PLC0415
    from fairgate.room.tasks import TaskHostPeer  # noqa: PLC0415

    refuse_journal(journal)
    return Joining(TaskHostPeer())


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
        gpu = fairgate.semaphore("gpu", k=3)

        @gpu
        async def train(model): ...
        ```
    """
    from fairgate.room.tasks import TaskHostPeer  # noqa: PLC0415 (most programs use one of the APIs)

    return Semaphore(name, OnFirstUse(TaskHostPeer, name, k))


def lock(name: str) -> Semaphore[int]:
    """A semaphore with k=1 that needs no `join`. See `semaphore`."""
    return semaphore(name, 1)
