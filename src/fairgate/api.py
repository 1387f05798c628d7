"""fairgate for asyncio.

    import fairgate

    async with fairgate.join() as peer:             # this process is a peer now, with the others of this host
        gpu = peer.semaphore("gpu", k=3)            # peer.lock("report") is k=1
        async with gpu as permit:                   # permit.slot, .fence, .deadline, .lost
            ...
        if permit := await gpu.acquire(timeout=5):  # None: nobody let us in in time
            ...
            permit.release()

A body of `async with` is never entered without a permit, and is cancelled when the permit is lost: then `async with`
raises PermitLost. `fairgate.sync` has the same for threads.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from fairgate.errors import AcquireTimeout, GateClosed, PermitLost
from fairgate.live.choose import choose_journals, choose_membership
from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.permit import TRY_SECONDS, BaseLost, BasePermit, BaseSemaphore, nanoseconds
from fairgate.live.report import Person
from fairgate.live.ticket import INSIDE, LOST, WAITING, Ticket

T = TypeVar("T")


class LoopWaiter:
    """Wakes whoever awaits it, from any thread: first when the request is settled, then when the permit is lost."""

    __slots__ = ("cancelled", "future", "loop", "lost", "task", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.loop = asyncio.get_running_loop()
        self.ticket = ticket
        self.future: asyncio.Future[None] | None = None
        self.lost: asyncio.Event | None = None
        self.task: asyncio.Task[Any] | None = None  # to be cancelled on loss
        self.cancelled = False  # it was

    def wake(self) -> bool:
        """False: the loop is closed."""
        if self.future is None and self.lost is None and self.task is None:
            return True  # nobody awaits anything yet: it is still being asked for
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
    """Is the permit lost? `if permit.lost`, or `await permit.lost.wait()`."""

    async def wait(self) -> str:
        """Why it was lost."""
        waiter = self.permit.watched()
        if waiter.lost is None:
            waiter.lost = asyncio.Event()
        if not self.is_set():
            await waiter.lost.wait()
        return self.permit.ticket.why


class Permit(BasePermit):
    __slots__ = ("waiter",)

    def __init__(self, engine: LiveEngine, gate: LiveGate, ticket: Ticket, waiter: LoopWaiter | None) -> None:
        super().__init__(engine, gate, ticket)
        self.waiter = waiter

    def watched(self) -> LoopWaiter:
        """Who is told when it is lost."""
        if self.waiter is None:
            self.waiter = LoopWaiter(self.ticket)
            with self.engine.user_lock:
                self.ticket.wake = self.waiter.wake
        return self.waiter

    @property
    def lost(self) -> Lost:
        return Lost(self)

    async def __aenter__(self) -> Self:
        """From now on the loss of the permit cancels this task."""
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
        waiter = self.watched()
        task, waiter.task = waiter.task, None
        lost = self.ticket.state == LOST
        self.release()
        if waiter.cancelled and task is not None:
            if kind is not asyncio.CancelledError:  # the body was over before it heard
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            if task.uncancel() > 0:  # somebody else cancelled it as well, and that is what it should end with
                if kind is asyncio.CancelledError:
                    return
                raise asyncio.CancelledError
        elif kind is asyncio.CancelledError:
            return  # not on our account
        if lost and (error is None or kind is asyncio.CancelledError):
            raise PermitLost(f"the permit of gate {self.gate.name} was lost: {self.ticket.why}") from error


class Hold:
    """`async with gate.hold(timeout=5, lease=60) as permit`: AcquireTimeout if nobody lets us in in time."""

    def __init__(self, semaphore: "Semaphore", timeout: float | None, lease: float | None, note: str) -> None:
        self.semaphore = semaphore
        self.timeout = timeout
        self.lease = lease
        self.note = note
        self.permit: Permit | None = None

    async def __aenter__(self) -> Permit:
        permit = await self.semaphore.acquire(self.timeout, self.lease, self.note)
        if permit is None:
            raise AcquireTimeout(f"gate {self.semaphore.name} did not let us in within {self.timeout:g} s")
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
    """A gate that lets k in. Many tasks of many processes can wait at it; each has its own turn."""

    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None = None) -> None:
        super().__init__(engine, name, k, protocol)
        self.holds: dict[asyncio.Task[Any] | None, list[Hold]] = {}

    async def acquire(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Permit | None:
        """A permit; None if `timeout` seconds went by first. A `lease` limits how long the permit is good."""
        if lease is None and (again := self.engine.retake(self.gate, note)) is not None:
            return Permit(self.engine, self.gate, again, None)
        ticket = Ticket(lease=nanoseconds(lease, "lease"), note=note)
        waiter = LoopWaiter(ticket)
        ticket.wake = waiter.wake
        self.engine.of_user(self.gate, self.gate.acquire, ticket)
        if ticket.state == WAITING:
            await self.wait(ticket, waiter, timeout)
        if ticket.error is not None:
            raise ticket.error
        if ticket.state == LOST:
            raise PermitLost(f"the permit of gate {self.name} was lost at once: {ticket.why}")
        return Permit(self.engine, self.gate, ticket, waiter) if ticket.state == INSIDE else None

    async def wait(self, ticket: Ticket, waiter: LoopWaiter, timeout: float | None) -> None:
        """Until it is settled or the time is over; no permit is left behind however this ends."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    waiter.future = waiter.loop.create_future()
                    if ticket.state == WAITING:  # not before there is a future for `wake` to see
                        await waiter.future
        except BaseException:
            self.engine.release(self.gate, ticket)
            raise
        if ticket.state == WAITING:
            self.engine.release(self.gate, ticket)

    async def try_acquire(self, lease: float | None = None, note: str = "") -> Permit | None:
        """A permit if a slot is free and nobody waits for it, else None; not later than a moment."""
        people = await self.people()
        if len(people) >= self.k:
            return None
        return await self.acquire(TRY_SECONDS, lease, note)

    def hold(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Hold:
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
        return await on_loop(self.engine, self.engine.people, self.name)

    async def holders(self) -> list[Person]:
        """Who is inside, by slot."""
        return sorted([one for one in await self.people() if one.inside], key=lambda one: (one.slot, one.since))

    async def waiters(self) -> list[Person]:
        """Who waits, the longest first."""
        return sorted([one for one in await self.people() if not one.inside], key=lambda one: one.since)

    async def locked(self) -> bool:
        return len(await self.holders()) >= self.k

    async def close(self) -> None:
        """This process leaves the gate; the others go on."""
        if not self.gate.closed:
            await on_loop(self.engine, self.engine.close_gate, self.gate)


class Peer:
    """This process among the others. Made by `fairgate.join`."""

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine

    def semaphore(self, name: str, k: int, protocol: str | None = None) -> Semaphore:
        return Semaphore(self.engine, name, k, protocol)

    def lock(self, name: str, protocol: str | None = None) -> Semaphore:
        return Semaphore(self.engine, name, 1, protocol)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.engine.close)


class Joining:
    """`peer = await join()`, to be closed, or `async with join() as peer`."""

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine
        self.peer = Peer(engine)

    async def start(self) -> Peer:
        starting = asyncio.get_running_loop().run_in_executor(None, self.engine.start)
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # nobody waits for it any more: it is not to become a peer that nobody closes
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
    """Become a peer: of this host, or of the cluster in which one of `seeds` (host:port) is. `journal` is a file to
    write every step of this peer to, for `fairgate replay`. The rest is Network's."""
    return Joining(LiveEngine(choose_membership(seeds, network), choose_journals(journal)))


async def on_loop(engine: LiveEngine, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Work for the engine's own loop, awaited from the user's."""
    future = engine.await_on_loop(work, *args)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.cancelled() and engine.closed and not cancelling():
            raise GateClosed(engine.closed) from None
        raise


def cancelling() -> bool:
    """Does anybody want this task to end?"""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
