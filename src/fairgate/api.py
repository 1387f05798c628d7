"""The asyncio API of fairgate.

    import fairgate

    async with fairgate.join() as peer:             # this process joins the other peers on this host
        gpu = peer.semaphore("gpu", k=3)            # peer.lock("report") is a semaphore with k=1
        async with gpu as permit:                   # permit.slot, .fence, .deadline, .lost
            ...
        if permit := await gpu.acquire(timeout=5):  # None after 5 seconds without a permit
            ...
            permit.release()

The body of `async with` only runs while its permit is valid: if the permit is lost, the body is cancelled and
`async with` raises PermitLost. `fairgate.sync` is the same API for threads.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from fairgate.errors import AcquireTimeout, GateClosed, PermitLost
from fairgate.live.arguments import check_request, lease_time
from fairgate.live.choose import choose_journals, choose_membership
from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.permit import TRY_SECONDS, BaseLost, BasePermit, BaseSemaphore
from fairgate.live.report import Person
from fairgate.live.ticket import INSIDE, LOST, WAITING, Ticket

T = TypeVar("T")


class LoopWaiter:
    """Wakes the task that made a request, from any thread: when the request is decided, and when the permit is lost."""

    __slots__ = ("cancelled", "future", "loop", "lost", "task", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.loop = asyncio.get_running_loop()
        self.ticket = ticket
        self.future: asyncio.Future[None] | None = None
        self.lost: asyncio.Event | None = None
        self.task: asyncio.Task[Any] | None = None  # cancelled when the permit is lost
        self.cancelled = False  # whether we cancelled it

    def wake(self) -> bool:
        """False if the loop is closed, so that nobody can be woken."""
        if self.future is None and self.lost is None and self.task is None:
            return True  # nobody awaits anything yet: the request is still being made
        try:
            self.loop.call_soon_threadsafe(self.awake)
        except RuntimeError:
            return False
        return True

    def awake(self) -> None:
        if self.future is not None and not self.future.done():
            self.future.set_result(None)
        if self.ticket.state == LOST:
            if self.lost is not None:
                self.lost.set()
            if self.task is not None and not self.cancelled:
                self.cancelled = True
                self.task.cancel()


class Lost(BaseLost["Permit"]):
    """Whether a permit was lost: test it with `if permit.lost`, or await it with `await permit.lost.wait()`."""

    async def wait(self) -> str:
        """Wait until the permit is lost. This never returns if the permit is released first.

        Returns:
            The reason for the loss.
        """
        waiter = self.permit.watched()
        if waiter.lost is None:
            waiter.lost = asyncio.Event()
        if not self.is_set():
            await waiter.lost.wait()
        return self.permit.ticket.why


class Permit(BasePermit):
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

    __slots__ = ("waiter",)

    def __init__(self, engine: LiveEngine, gate: LiveGate, ticket: Ticket, waiter: LoopWaiter | None) -> None:
        super().__init__(engine, gate, ticket)
        self.waiter = waiter

    def watched(self) -> LoopWaiter:
        """The waiter that is woken when the permit is lost, created on first use."""
        if self.waiter is None:
            self.waiter = LoopWaiter(self.ticket)
            with self.engine.user_lock:
                self.ticket.wake = self.waiter.wake
        return self.waiter

    @property
    def lost(self) -> Lost:
        """True in a boolean context once the permit was lost; `await permit.lost.wait()` waits for that."""
        return Lost(self)

    async def __aenter__(self) -> Self:
        """Enter the body; from now on losing the permit cancels this task. PermitLost if it is already invalid."""
        waiter = self.watched()
        waiter.task = asyncio.current_task()
        try:
            self.check()
        except BaseException:
            waiter.task = None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the permit. PermitLost if it was lost, unless the body raised an exception of its own."""
        waiter = self.watched()
        task, waiter.task = waiter.task, None
        lost = self.ticket.state == LOST
        self.release()
        if waiter.cancelled and task is not None:
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
            raise PermitLost(f"the permit for gate {self.gate.name} was lost: {self.ticket.why}") from error


class Hold:
    """The async context manager that `Semaphore.hold` returns."""

    def __init__(self, semaphore: "Semaphore", timeout: float | None, lease: float | None, note: str) -> None:
        self.semaphore = semaphore
        self.timeout = timeout
        self.lease = lease
        self.note = note
        self.permit: Permit | None = None

    async def __aenter__(self) -> Permit:
        permit = await self.semaphore.acquire(self.timeout, self.lease, self.note)
        if permit is None:
            raise AcquireTimeout(f"timed out waiting for gate {self.semaphore.name} ({self.timeout:g} s)")
        try:
            await permit.__aenter__()
        except BaseException:
            permit.release()
            raise
        self.permit = permit
        return permit

    async def __aexit__(self, *how: Any) -> None:
        assert self.permit is not None
        await self.permit.__aexit__(*how)


class Semaphore(BaseSemaphore):
    """A gate that grants at most k permits at a time, to any number of tasks in any number of processes.

    Created by `Peer.semaphore` and `Peer.lock`. `async with semaphore as permit` waits for a permit without a timeout
    and releases it at the end of the body. It raises what `acquire` raises, and PermitLost if the permit was lost.
    """

    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None = None) -> None:
        super().__init__(engine, name, k, protocol)
        self.holds: dict[asyncio.Task[Any] | None, list[Hold]] = {}

    async def acquire(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Permit | None:
        """Wait for a permit. Cancelling the task withdraws the request.

        Args:
            timeout: How many seconds to wait; None waits forever.
            lease: How many seconds the permit is valid for, see `Permit.extend`; None means until it is released.
            note: A remark that `fairgate who` shows beside the request.

        Returns:
            The permit, which the caller must release; None if the timeout passed first.

        Raises:
            KMismatch: Other peers have this gate open with a different k.
            BadInput: An argument is invalid, the gate runs another protocol elsewhere, or the membership of the gate
                cannot be changed at present (a full disk, for example).
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
        if timeout is not None or note != "":
            check_request(timeout, note)
        if lease is None and (again := self.engine.retake(self.gate, note)) is not None:
            return Permit(self.engine, self.gate, again, None)
        ticket = Ticket(lease=lease_time(lease), note=note)
        waiter = LoopWaiter(ticket)
        ticket.wake = waiter.wake
        self.engine.of_user(self.gate, self.gate.acquire, ticket)
        if ticket.state == WAITING:
            await self.wait(ticket, waiter, timeout)
        if ticket.error is not None:
            raise ticket.error
        if ticket.state == LOST:
            raise PermitLost(f"the permit for gate {self.name} was lost as soon as it was granted: {ticket.why}")
        return Permit(self.engine, self.gate, ticket, waiter) if ticket.state == INSIDE else None

    async def wait(self, ticket: Ticket, waiter: LoopWaiter, timeout: float | None) -> None:
        """Waits until the request is decided or the timeout passes. No permit leaks, however this ends."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    waiter.future = waiter.loop.create_future()
                    if ticket.state == WAITING:  # checked only now that `wake` can see the future
                        await waiter.future
        except BaseException:
            self.engine.release(self.gate, ticket)
            raise
        if ticket.state == WAITING:
            self.engine.release(self.gate, ticket)

    async def try_acquire(self, lease: float | None = None, note: str = "") -> Permit | None:
        """Get a permit only if a slot is free and nobody is waiting for it.

        All peers with the gate open are asked first. If a slot is free, the call waits at most 1 s for it.

        Returns:
            The permit; None if the gate is full, or if another request was faster.

        Raises:
            FairgateError: As for `acquire`.
        """
        people = await self.people()
        if len(people) >= self.k:
            return None
        return await self.acquire(TRY_SECONDS, lease, note)

    def hold(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Hold:
        """`async with` with arguments: `async with gpu.hold(timeout=5, lease=60) as permit`.

        Takes the arguments of `acquire`. Entering raises AcquireTimeout if the timeout passes without a permit, and
        otherwise what `acquire` raises.
        """
        return Hold(self, timeout, lease, note)

    async def __aenter__(self) -> Permit:
        hold = Hold(self, None, None, "")
        permit = await hold.__aenter__()
        self.holds.setdefault(asyncio.current_task(), []).append(hold)
        return permit

    async def __aexit__(self, *how: Any) -> None:
        task = asyncio.current_task()
        holds = self.holds[task]
        hold = holds.pop()
        if not holds:
            del self.holds[task]
        await hold.__aexit__(*how)

    async def people(self) -> list[Person]:
        """Everyone at this gate, on all peers: holders and waiters, in no particular order.

        Peers that do not answer within 2 s are left out.

        Raises:
            GateClosed: The peer is closed.
            BadInput: The list of peers cannot be read.
            ForkedPeer: The peer belongs to the parent process.
        """
        return await on_loop(self.engine, self.engine.people, self.name)

    async def holders(self) -> list[Person]:
        """The holders of permits, ordered by slot. Raises what `people` raises."""
        return sorted([one for one in await self.people() if one.inside], key=lambda one: (one.slot, one.since))

    async def waiters(self) -> list[Person]:
        """The waiting requests, longest wait first. Raises what `people` raises."""
        return sorted([one for one in await self.people() if not one.inside], key=lambda one: one.since)

    async def locked(self) -> bool:
        """True if all k permits are held. Raises what `people` raises."""
        return len(await self.holders()) >= self.k

    async def close(self) -> None:
        """Leave the gate. Other processes are not affected; closing twice is a no-op.

        Requests of this process that are waiting end with GateClosed, and permits that it holds are lost.
        """
        if not self.gate.closed:
            await on_loop(self.engine, self.engine.close_gate, self.gate)


class Peer:
    """This process as a member of the group of peers that share gates. Created by `fairgate.join`."""

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine

    def semaphore(self, name: str, k: int, protocol: str | None = None) -> Semaphore:
        """Open a gate. Gates with the same name are the same gate for all peers.

        This sends nothing yet: whether other peers use the same k and protocol is checked by the first request.

        Args:
            name: The name of the gate, 1 to 200 printable characters.
            k: How many permits the gate grants at a time, 1 to 1000.
            protocol: The protocol to run, a name from `fairgate protocols`; None chooses a suitable one.

        Raises:
            KMismatch: This process already uses the gate with a different k.
            BadInput: The name or k is invalid, or the protocol is unknown, cannot run live, does not support this k,
                or differs from the one that this process already uses for the gate.
            GateClosed: The peer is closed.
            ForkedPeer: The peer belongs to the parent process.

        Example:
            ```python
            gpu = peer.semaphore("gpu", k=3)
            async with gpu as permit:
                await train(device=permit.slot)
            ```
        """
        return Semaphore(self.engine, name, k, protocol)

    def lock(self, name: str, protocol: str | None = None) -> Semaphore:
        """A semaphore with k=1. See `semaphore`."""
        return Semaphore(self.engine, name, 1, protocol)

    async def close(self) -> None:
        """Leave. Waiting requests end with GateClosed and held permits are lost. Closing twice is a no-op."""
        await asyncio.get_running_loop().run_in_executor(None, self.engine.close)


class Joining:
    """What `join` returns: either await it and close the peer yourself, or use it with `async with`."""

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine
        self.peer = Peer(engine)

    async def start(self) -> Peer:
        starting = asyncio.get_running_loop().run_in_executor(None, self.engine.start)
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # otherwise it might become a peer that nobody closes
            self.engine.ready.cancel()
            await asyncio.wait([starting])
            if starting.exception() is None:
                await self.peer.close()
            raise
        return self.peer

    def __await__(self) -> Generator[Any, None, Peer]:
        return self.start().__await__()

    async def __aenter__(self) -> Peer:
        return await self.start()

    async def __aexit__(self, *how: object) -> None:
        await asyncio.shield(self.peer.close())


def join(*seeds: str, journal: str | None = None, **network: Any) -> Joining:
    """Make this process a peer, of this host or of a cluster of several hosts.

    Without arguments it joins the other peers on this host. With `seeds` it joins a cluster; with `listen` but without
    `seeds` it creates one.

    Args:
        *seeds: Addresses ("host:port") of peers of the cluster. The first one that answers is used.
        journal: A file to write every step of this peer to, for `fairgate replay`. If the peer opens several gates,
            the name must contain `{gate}`, which is replaced by the name of the gate.
        **network: Options for clusters, the fields of `fairgate.live.in_cluster.ClusterOptions`: `listen`,
            `advertise`, `cluster`, `tls`, `insecure`, `join_timeout`.

    Returns:
        An object to use with `async with join() as peer`, or `peer = await join()` and later `await peer.close()`.

    Raises:
        BadInput: Here or when awaited: the runtime directory or an address is not usable, or no peer of the cluster
            let this one join within `join_timeout` seconds.

    Example:
        ```python
        async with fairgate.join() as peer:  # the peers of this host
            ...

        from fairgate.net import keys
        tls = keys.load(Path("/etc/fairgate"))
        async with fairgate.join("10.0.0.5:7400", tls=tls) as peer:  # a cluster
            ...
        ```
    """
    return Joining(LiveEngine(choose_membership(seeds, network), choose_journals(journal)))


async def on_loop(engine: LiveEngine, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Runs `work` on the engine's loop and awaits it from the caller's. GateClosed if the peer is closed meanwhile."""
    future = engine.await_on_loop(work, *args)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.cancelled() and engine.closed and not cancelling():
            raise GateClosed(engine.closed) from None
        raise


def cancelling() -> bool:
    """Whether the current task has been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
