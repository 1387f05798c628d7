"""kazoo's tests of its lock recipes: a client is a factory of gates, and every lock a peer of its own.

The contender's name is the note of its request. A shared lock takes one of many slots, an exclusive one all of them. A
release takes a round trip there, and the tests rely on it: the next holder must not enter before others have noticed.
"""

from __future__ import annotations

import sys
import threading
import time
import unittest
from types import ModuleType, SimpleNamespace
from typing import Any

from fairgate import sync
from fairgate.errors import GateClosed, KMismatch
from fairgate.sync import Permit
from tests.peers.adapters.gates import READERS, peer_gate

ROUND_TRIP = 0.05  # seconds


class GateLock:
    def __init__(self, client: Client, path: str, identifier: str = "", k: int = 1, n: int = 1) -> None:
        self.client = client
        self.path = path.strip("/")
        self.note = identifier
        self.k = k
        self.n = n
        self.cancelled = False
        self.busy = threading.Lock()
        self.permit: Permit | None = None
        self.open()

    def open(self) -> None:
        self.peer = sync.join()
        self.client.peers.append(self.peer)
        self.gate = peer_gate(self.peer, self.path, self.k)

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        from kazoo.exceptions import CancelledError, LockTimeout  # noqa: PLC0415

        if not self.busy.acquire(blocking, -1 if timeout is None else timeout):
            return False
        permit = None
        try:
            permit = self.gate.acquire(timeout if blocking else 0, note=self.note, n=self.n)
        except GateClosed as closed:
            self.open()
            raise CancelledError from closed
        finally:
            if permit is None:
                self.busy.release()
        self.permit = permit
        if permit is None and timeout is not None:
            raise LockTimeout
        return permit is not None

    def release(self) -> bool:
        permit, self.permit = self.permit, None
        if permit is None:
            return False
        time.sleep(ROUND_TRIP)
        permit.release()
        self.busy.release()
        return True

    def cancel(self) -> None:
        self.cancelled = True
        self.gate.close()

    @property
    def is_acquired(self) -> bool:
        return self.permit is not None and self.permit.valid

    def contenders(self) -> list[str]:
        return [one.note for one in self.gate.requests()]

    def lease_holders(self) -> list[str]:
        return [one.note for one in self.gate.holders()]

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *how: object) -> None:
        self.release()


class GateSemaphore(GateLock):
    """A holder that acquires again keeps its permit. The k of others is only found out when it is used."""

    def __init__(self, client: Client, path: str, identifier: str = "", max_leases: int = 1) -> None:
        super().__init__(client, path, identifier, max_leases)

    def open(self) -> None:
        try:
            super().open()
        except KMismatch:
            self.k = -self.k

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if self.k < 0:
            self.k = -self.k
            super().open()
        if self.cancelled and self.permit is None:
            self.cancelled = False
            self.open()
        return self.permit is not None or super().acquire(blocking, timeout)


class Client:
    handler = SimpleNamespace(sleep_func=time.sleep)

    def __init__(self) -> None:
        self.peers: list[sync.Peer] = []

    def start(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        for peer in self.peers:
            peer.close()

    def Lock(self, path: str, identifier: str) -> GateLock:
        return GateLock(self, path, identifier)

    def ReadLock(self, path: str, identifier: str) -> GateLock:
        return GateLock(self, path, identifier, READERS)

    def WriteLock(self, path: str, identifier: str) -> GateLock:
        return GateLock(self, path, identifier, READERS, READERS)

    def Semaphore(self, path: str, identifier: str = "", max_leases: int = 1) -> GateSemaphore:
        return GateSemaphore(self, path, identifier, max_leases)


class TestCase(unittest.TestCase):
    """In the place of the one that starts ZooKeeper."""

    def setUp(self) -> None:
        self.clients: list[Client] = []
        self.client = self._get_client()

    def tearDown(self) -> None:
        for client in self.clients:
            client.stop()

    def _get_client(self) -> Client:
        self.clients.append(Client())
        return self.clients[-1]


testing: Any = ModuleType("kazoo.testing")
testing.KazooTestCase = TestCase
sys.modules["kazoo.testing"] = testing
