"""Helpers for the tests of live gates: time limits, and checks that nothing was leaked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import fairgate
from fairgate import sync
from fairgate.live.gate import LiveGate
from tests.live.kinds import ASSIGNED

SOON = 20.0  # seconds: a test that waits this long has failed


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * SOON):
            await main

    asyncio.run(bounded())


async def take(gate: fairgate.Semaphore, **how: Any) -> fairgate.Permit:
    permit = await gate.acquire(timeout=SOON, **how)
    assert permit is not None, f"{gate} grants no permit"
    return permit


async def all_are_free(*gates: fairgate.Semaphore) -> None:
    """Checks that nobody waits or is inside and that all slots can be acquired, at once if the protocol allows it."""
    assert await gates[0].requests() == []
    k = gates[0].k
    if gates[0].statistics().protocol in ASSIGNED:
        await all_come_in([gate for gate in gates for _ in range(2 * k)])
    else:
        for gate in gates:
            permits = [await take(gate) for _ in range(k)]
            assert len(await gate.holders()) == k
            for permit in permits:
                permit.release()
    for gate in gates:
        assert await gate.requests() == []


async def all_come_in(gates: list[fairgate.Semaphore]) -> None:
    """Makes one request per element at once, each held for a moment."""
    inside: set[int] = set()

    async def visit(number: int, gate: fairgate.Semaphore) -> None:
        permit = await take(gate)
        inside.add(number)
        assert len(inside) <= gate.k
        await asyncio.sleep(0.001)
        inside.discard(number)
        permit.release()

    async with asyncio.TaskGroup() as group:
        for number, gate in enumerate(gates):
            group.create_task(visit(number, gate))


def all_are_free_now(*gates: sync.Semaphore) -> None:
    """The same for threads."""
    assert gates[0].requests() == []
    k = gates[0].k
    if gates[0].statistics().protocol in ASSIGNED:
        all_come_in_now([gate for gate in gates for _ in range(2 * k)])
    else:
        for gate in gates:
            permits = [gate.hold(SOON) for _ in range(k)]
            assert len(gate.holders()) == k
            for permit in permits:
                permit.release()
    for gate in gates:
        assert gate.requests() == []


def all_come_in_now(gates: list[sync.Semaphore]) -> None:
    inside: set[int] = set()

    def visit(number: int) -> None:
        with gates[number].hold(SOON):
            inside.add(number)
            assert len(inside) <= gates[number].k
            time.sleep(0.001)
            inside.discard(number)

    with ThreadPoolExecutor(len(gates)) as pool:
        for done in [pool.submit(visit, number) for number in range(len(gates))]:
            done.result(2 * SOON)


def live(gate: sync.Semaphore) -> LiveGate:
    """The gate of a cluster, as its engine keeps it."""
    found: LiveGate = gate.gate.gate  # type: ignore[attr-defined]  # only that of a cluster has it
    return found


@contextmanager
def busy(peer: sync.Peer) -> Iterator[None]:
    """Keeps the peer's loop busy meanwhile."""
    began, over = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        over.wait(2 * SOON)

    peer.engine.loop.call_soon_threadsafe(work)
    assert began.wait(SOON)
    try:
        yield
    finally:
        over.set()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Polls until the condition holds; the test as a whole has a time limit."""
    while not await condition():
        await asyncio.sleep(0.001)


async def ends_with(work: Awaitable[Any]) -> BaseException | Any:
    """The result, or the exception that it raises."""
    try:
        return await work
    except BaseException as error:
        return error
