"""Clusters for asyncio: what api.py needs of one."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from fairgate.arguments import lease_time
from fairgate.errors import GateClosed
from fairgate.live.cluster_permit import TRY_SECONDS, BaseClusterGate, HeldTicket, describe, in_order, make_engine
from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.ticket import LOST, WAITING, Ticket
from fairgate.net.system import once
from fairgate.request import Request

T = TypeVar("T")


class ClusterPeer:
    def __init__(self, seeds: tuple[str, ...], journal: str | None, network: dict[str, Any]) -> None:
        self.engine = make_engine(seeds, journal, network)

    async def start(self) -> None:
        starting = asyncio.get_running_loop().run_in_executor(None, self.engine.start)
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # otherwise it might become a peer that nobody closes
            self.engine.ready.cancel()
            await asyncio.wait([starting])
            if starting.exception() is None:
                await self.leave()
            raise

    def describe(self) -> str:
        return describe(self.engine)

    def gate(self, name: str, k: int, protocol: str | None) -> "ClusterGate":
        return ClusterGate(self.engine, name, k, protocol)

    async def leave(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.engine.close)


class LoopWaiter:
    """Wakes the task that made a request, from any thread: when the request is decided, and when the permit is lost."""

    __slots__ = ("future", "loop", "on_loss", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.loop = asyncio.get_running_loop()
        self.ticket = ticket
        self.future: asyncio.Future[None] | None = None
        self.on_loss: Callable[[], None] | None = None

    def wake(self) -> bool:
        """False if the loop is closed, so that nobody can be woken."""
        if self.future is None and self.on_loss is None:
            return True  # nobody awaits anything yet: the request is still being made
        try:
            self.loop.call_soon_threadsafe(self.awake)
        except RuntimeError:
            return False
        return True

    def awake(self) -> None:
        if self.future is not None and not self.future.done():
            self.future.set_result(None)
        if self.ticket.state == LOST and self.on_loss is not None:
            on_loss, self.on_loss = self.on_loss, None
            on_loss()


class HeldTaskTicket(HeldTicket):
    def __init__(self, engine: LiveEngine, gate: LiveGate, ticket: Ticket, waiter: LoopWaiter | None) -> None:
        super().__init__(engine, gate, ticket)
        self.waiter = waiter

    def when_lost(self, call: Callable[[], None]) -> None:
        if self.waiter is None:
            self.waiter = LoopWaiter(self.ticket)
        self.waiter.on_loss = call
        for _ in once(self.engine.user_lock):
            self.ticket.wake = self.waiter.wake
        if self.ticket.state == LOST:
            self.waiter.awake()

    async def settled(self) -> None:
        """The engine has a loop of its own."""


class ClusterGate(BaseClusterGate):
    async def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> HeldTaskTicket | None:
        self.check_single(n)
        if timeout is not None and timeout <= 0:
            if len(await self.requests()) >= self.k:
                return None
            timeout = TRY_SECONDS
        if lease is None and (again := self.engine.retake(self.gate, note)) is not None:
            return HeldTaskTicket(self.engine, self.gate, again, None)
        ticket = Ticket(lease=lease_time(lease), note=note)
        waiter = LoopWaiter(ticket)
        ticket.wake = waiter.wake
        self.engine.of_user(self.gate, self.gate.acquire, ticket)
        if ticket.state == WAITING:
            await self.wait(ticket, waiter, timeout)
        granted = self.is_granted(ticket)
        return HeldTaskTicket(self.engine, self.gate, ticket, waiter) if granted else None

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

    async def requests(self) -> list[Request]:
        return in_order(await on_loop(self.engine, self.engine.people, self.gate.name))

    async def resize(self, k: int) -> None:
        self.refuse_resize()

    async def close(self) -> None:
        if not self.gate.closed:
            await on_loop(self.engine, self.engine.close_gate, self.gate)


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
