"""What the tests of live gates share: time limits, and how to see that nothing was leaked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.live.live_protocols import live_protocols
from fairgate.registry import find_protocol

SOON = 20.0  # seconds: whoever waits as long waits for ever
PROTOCOLS = live_protocols()
# With these a request waits for the token it was assigned to, even while others lie idle: one that stays inside for
# long keeps every k-th request out. So of a gate of k > 1 it is not true that who asks gets what is free.
ASSIGNED = ("bv95", "fair_k", "fair_k_bounded")
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def most(protocol: str) -> int:
    return 3 if find_protocol(protocol).about.many else 1


def k_of(protocol: str) -> int:
    """The most of which it is true that a free slot is given to whoever asks."""
    return 1 if protocol in ASSIGNED else most(protocol)


def has_slots(protocol: str) -> bool:
    return find_protocol(protocol).about.slots


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * SOON):
            await main

    asyncio.run(bounded())


async def take(gate: fairgate.Semaphore, **how: Any) -> fairgate.Permit:
    permit = await gate.acquire(timeout=SOON, **how)
    assert permit is not None, f"{gate} lets nobody in"
    return permit


async def all_are_free(*gates: fairgate.Semaphore) -> None:
    """Nobody waits or is inside, and all slots can be had, at once if the protocol promises that."""
    assert await gates[0].people() == []
    k = gates[0].k
    if gates[0].gate.protocol in ASSIGNED:
        await all_come_in([gate for gate in gates for _ in range(2 * k)])
    else:
        for gate in gates:
            permits = [await take(gate) for _ in range(k)]
            assert len(await gate.holders()) == k
            for permit in permits:
                permit.release()
    for gate in gates:
        assert await gate.people() == []


async def all_come_in(gates: list[fairgate.Semaphore]) -> None:
    """As many requests at once, each for a moment."""
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
    same = [fairgate.Semaphore(gate.engine, gate.name, gate.k, gate.gate.protocol) for gate in gates]
    asyncio.run(all_are_free(*same))


@contextmanager
def busy(peer: sync.Peer) -> Iterator[None]:
    """Its loop does nothing else meanwhile."""
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
    """Asked again and again; the test as a whole has a time limit."""
    while not await condition():
        await asyncio.sleep(0.001)


async def ends_with(work: Awaitable[Any]) -> BaseException | Any:
    """What it gives or raises."""
    try:
        return await work
    except BaseException as error:
        return error
