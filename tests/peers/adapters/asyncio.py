"""CPython's tests of asyncio's locks: `asyncio.Lock` and its semaphores are gates with new names.

`locked` and `release` are plain methods there, so a second, synchronous user of the same gate answers `locked`, and
holds what a semaphore with the value 0 has not given out yet. A grant takes a turn of the loop's poll, so a pause of
no time is replaced by a short one.
"""

from __future__ import annotations

import asyncio

import fairgate
from fairgate.errors import BadInput
from fairgate.request import Request
from tests.peers.adapters.gates import gate, new_name

SETTLED = 0.05  # seconds
sleep = asyncio.sleep


class Semaphore:
    def __init__(self, value: int = 1) -> None:
        self.seen = gate(new_name(), max(value, 1) if value >= 0 else value)
        first = None if value else self.seen.acquire()
        self.permits: list[fairgate.Permit | fairgate.sync.Permit] = [] if first is None else [first]
        self.gates: dict[asyncio.AbstractEventLoop, fairgate.Semaphore] = {}

    async def acquire(self) -> bool:
        loop = asyncio.get_running_loop()
        if loop not in self.gates:
            self.gates[loop] = fairgate.join().peer.semaphore(self.seen.name, self.seen.k)
        permit = await self.gates[loop].acquire()
        assert permit is not None
        self.permits.append(permit)
        return True

    def release(self) -> None:
        if self.permits:
            self.permits.pop(0).release()
        else:
            self.seen.release()

    def locked(self) -> bool:
        return self.seen.locked()

    @property
    def _waiters(self) -> list[Request]:
        return self.seen.waiters()

    @property
    def _value(self) -> int:
        return self.seen.k - len(self.seen.holders())

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *how: object) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    pass


class Lock(Semaphore):
    def __init__(self) -> None:
        super().__init__()

    def release(self) -> None:
        try:
            super().release()
        except BadInput as wrong:
            raise RuntimeError from wrong


async def settle(delay: float, result: object = None) -> object:
    return await sleep(max(delay, SETTLED), result)


asyncio.Lock = Lock  # type: ignore[assignment, misc]
asyncio.Semaphore = Semaphore  # type: ignore[assignment, misc]
asyncio.BoundedSemaphore = BoundedSemaphore  # type: ignore[assignment, misc]
asyncio.sleep = settle  # type: ignore[assignment]
