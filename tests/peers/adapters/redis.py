"""redis-py's tests of its lock: the client knows gates in the place of keys, and a token is the note of a request.

Setting a key revokes the permit, as `fairgate break` does, and holds the gate in the name of someone else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import redis.lock
from redis.exceptions import LockError, LockNotOwnedError

from fairgate.cli.inspect.on_host import break_in
from fairgate.interface import BasePermit
from fairgate.sync import Permit
from tests.peers.adapters.gates import gate, holder, new_name, seconds_left

NO_LEASE, NO_KEY = -1, -2  # of `ttl`


class BaseLock:
    """What the locks of threads and of asyncio have in common."""

    def __init__(
        self, client: Client, name: str, timeout: float | None = None, sleep: float = 0.1, blocking: bool = True,
        blocking_timeout: float | None = None, thread_local: bool = True, raise_on_release_error: bool = True,
    ) -> None:  # fmt: skip
        self.name = name
        self.gate = gate(client.gate_of(name))
        self.timeout = timeout
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.raises = raise_on_release_error
        self.local = SimpleNamespace(token=None)
        self.permit: BasePermit | None = None

    def wait(self, blocking: bool | None) -> float | None:
        return self.blocking_timeout if (self.blocking if blocking is None else blocking) else 0

    def keep(self, permit: BasePermit | None, token: str) -> bool:
        if permit is not None:
            self.permit, self.local.token = permit, token.encode()
        return permit is not None

    def give_back(self) -> None:
        permit = self.some_permit()
        self.local.token = None
        self.check_owned(permit)
        permit.release()

    def some_permit(self) -> BasePermit:
        if self.permit is None or self.local.token is None:
            raise LockError("not acquired", lock_name=self.name)
        return self.permit

    def check_owned(self, permit: BasePermit) -> None:
        if not permit.valid:
            raise LockNotOwnedError("lost", lock_name=self.name)

    def is_owned(self) -> bool:
        return self.local.token is not None and self.permit is not None and self.permit.valid

    def lease(self, seconds: float, added: bool) -> bool:
        permit = self.some_permit()
        if self.timeout is None:
            raise LockError("no timeout", lock_name=self.name)
        self.check_owned(permit)
        permit.extend(seconds + (permit.left() or 0) * added)
        return True

    def end(self) -> None:
        try:
            self.give_back()
        except LockError:
            if self.raises:
                raise

    def timed_out(self) -> LockError:
        return LockError("timed out", lock_name=self.name)


class Lock(BaseLock):
    def acquire(self, blocking: bool | None = None, token: str | None = None) -> bool:
        token = token or new_name()
        return self.keep(self.gate.acquire(self.wait(blocking), lease=self.timeout, note=token), token)

    def release(self) -> None:
        self.give_back()

    def owned(self) -> bool:
        return self.is_owned()

    def locked(self) -> bool:
        return self.gate.locked()

    def extend(self, seconds: float, replace_ttl: bool = False) -> bool:
        return self.lease(seconds, added=not replace_ttl)

    def reacquire(self) -> bool:
        return self.lease(self.timeout or 0, added=False)

    def __enter__(self) -> Lock:
        if not self.acquire():
            raise self.timed_out()
        return self

    def __exit__(self, *how: object) -> None:
        self.end()


class Client:
    def __init__(self) -> None:
        self.prefix = new_name()
        self.others: list[Permit] = []

    def gate_of(self, key: str) -> str:
        return f"{self.prefix}-{key}"

    def lock(self, name: str, lock_class: Any, **options: Any) -> Any:
        return lock_class(self, name, **options)

    def get(self, key: str) -> bytes | None:
        found = holder(self.gate_of(key))
        return None if found is None else found.note.encode()

    def set(self, key: str, value: str) -> None:
        name = self.gate_of(key)
        if holder(name) is not None:
            assert break_in(name, 0, yes=True) == 0
        permit = gate(name).acquire(note=value)
        assert permit is not None
        self.others.append(permit)

    def ttl(self, key: str) -> float:
        left = seconds_left(self.gate_of(key))
        return NO_LEASE if left is None else left

    def pttl(self, key: str) -> float:
        left = seconds_left(self.gate_of(key))
        return NO_LEASE if left is None else left * 1000

    def close(self) -> None:
        for permit in self.others:
            permit.release()


@pytest.fixture
def r() -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


redis.lock.Lock = Lock
conftest: Any = ModuleType("suite.conftest")
conftest._get_client = lambda *how, **options: Client()
sys.modules["suite.conftest"] = conftest
