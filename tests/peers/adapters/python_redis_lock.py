"""python-redis-lock's tests: a server is a directory, its locks are gates there, and an id is the note of a request.

Whoever knows the id of a lock may release or extend it, so the permits of this process are kept by name and id. To
reset a lock is to revoke its permit, as `fairgate break` does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fairgate.cli.inspect.on_host import break_in
from fairgate.sync import Permit
from tests.peers.adapters.gates import file_gate, holder, seconds_left

NO_LEASE, NO_KEY = -1, -2  # of `ttl`
KEY = "lock:"
permits: dict[tuple[str, str], Permit] = {}


class Client:
    def __init__(self, unix_socket_path: str, **options: object) -> None:
        self.folder = Path(f"{unix_socket_path}.d")
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def path(self, key: str) -> str:
        return str(self.folder / key.removeprefix(KEY))

    def get(self, key: str) -> str | None:
        found = holder(self.path(key))
        return None if found is None else found.note

    def ttl(self, key: str) -> float:
        left = seconds_left(self.path(key))
        return left if left is not None else NO_LEASE if self.get(key) else NO_KEY

    def flushdb(self) -> None:
        """Each test has a server of its own."""

    def register_script(self, script: bytes) -> None:
        """There are none."""


redis: Any = ModuleType("redis")
redis.StrictRedis = Client
sys.modules["redis"] = redis

import redis_lock  # noqa: E402


class Lock(redis_lock.Lock):  # type: ignore[misc]
    @property
    def path(self) -> str:
        return self._client.path(self._name)  # type: ignore[no-any-return]

    def get_owner_id(self) -> str | None:
        return self._client.get(self._name)  # type: ignore[no-any-return]

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if self._held:
            raise redis_lock.AlreadyAcquired
        if not blocking and timeout is not None:
            raise redis_lock.TimeoutNotUsable
        seconds = int(timeout) if timeout else None
        if seconds is not None and seconds < 0:
            raise redis_lock.InvalidTimeout
        if seconds and self._expire and not self._lock_renewal_interval and seconds > self._expire:
            raise redis_lock.TimeoutTooLarge
        permit = file_gate(self.path).acquire(seconds if blocking else 0, lease=self._expire, note=self.id)
        if permit is None:
            return False
        permits[self.path, self.id] = permit
        if self._lock_renewal_interval is not None:
            self._start_lock_renewer()
        return True

    def mine(self) -> Permit:
        permit = permits.get((self.path, self.id))
        if permit is None or not permit.valid:
            raise redis_lock.NotAcquired
        return permit

    def extend(self, expire: float | None = None) -> None:
        seconds = int(expire or self._expire)
        if seconds < 0:
            raise ValueError(f"{seconds} s is not a lease")
        permit = self.mine()
        if permit.deadline is None:
            raise redis_lock.NotExpirable
        permit.extend(seconds)

    def release(self) -> None:
        self._stop_lock_renewer()
        self.mine().release()

    def locked(self) -> bool:
        return file_gate(self.path).locked()

    def reset(self) -> None:
        if self.get_owner_id() is not None:
            assert break_in(self.path, 0, yes=True) == 0


def reset_all(client: Client) -> None:
    for file in client.folder.iterdir():
        if file.is_file() and holder(str(file)) is not None:
            assert break_in(str(file), 0, yes=True) == 0


redis_lock.Lock, redis_lock.reset_all = Lock, reset_all


@pytest.fixture
def redis_server() -> None:
    """There is none to start."""


@pytest.fixture
def redis_socket(tmp_path: Path) -> str:
    return str(tmp_path / "server")
