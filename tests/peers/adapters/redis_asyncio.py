"""redis-py's tests of its lock for asyncio, as redis.py has them for threads."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import redis.asyncio.lock

import fairgate
from tests.peers.adapters.gates import new_name
from tests.peers.adapters.redis import BaseLock, Client


class Lock(BaseLock):
    async def acquire(self, blocking: bool | None = None, token: str | None = None) -> bool:
        token = token or new_name()
        self.peer = await fairgate.join()
        here = self.peer.lock(self.gate.name)
        return self.keep(await here.acquire(self.wait(blocking), lease=self.timeout, note=token), token)

    async def release(self) -> None:
        self.give_back()
        await asyncio.sleep(0)  # the next step of the loop gives the slot back

    async def owned(self) -> bool:
        return self.is_owned()

    async def locked(self) -> bool:
        return self.gate.locked()

    async def extend(self, seconds: float, replace_ttl: bool = False) -> bool:
        return self.lease(seconds, added=not replace_ttl)

    async def reacquire(self) -> bool:
        return self.lease(self.timeout or 0, added=False)

    async def __aenter__(self) -> Lock:
        if not await self.acquire():
            raise self.timed_out()
        return self

    async def __aexit__(self, *how: object) -> None:
        self.end()


class AsyncClient(Client):
    """Every answer is awaited."""

    async def get(self, key: str) -> bytes | None:  # type: ignore[override]
        return super().get(key)

    async def set(self, key: str, value: str) -> None:  # type: ignore[override]
        super().set(key, value)

    async def ttl(self, key: str) -> float:  # type: ignore[override]
        return super().ttl(key)

    async def pttl(self, key: str) -> float:  # type: ignore[override]
        return super().pttl(key)

    async def flushall(self) -> None:
        self.close()


@pytest.fixture
def create_redis() -> Callable[..., Any]:
    async def create(**options: Any) -> AsyncClient:
        return AsyncClient()

    return create


@pytest.fixture
def r() -> Iterator[Client]:
    client = AsyncClient()
    yield client
    client.close()


def fixture() -> Callable[..., Any]:
    """A fixture of a class that is an async generator, and takes `create_redis`."""

    def decorate(function: Callable[..., AsyncGenerator[Any]]) -> Any:
        @pytest.fixture
        def run(self: Any, create_redis: Any) -> Any:
            return asyncio.run(anext(function(self, create_redis)))

        return run

    return decorate


redis.asyncio.lock.Lock = Lock
pytest_asyncio: Any = ModuleType("pytest_asyncio")
pytest_asyncio.fixture = fixture
sys.modules["pytest_asyncio"] = pytest_asyncio
