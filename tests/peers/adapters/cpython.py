"""CPython's lock_tests: locks and semaphores with the signatures of `threading`, each a gate with a new name."""

from __future__ import annotations

from _thread import TIMEOUT_MAX
from typing import Any

import pytest

from fairgate.arguments import LONGEST
from tests.peers.adapters.gates import Permits, gate, new_name


def wait_of(blocking: bool, timeout: float) -> float | None:
    """The timeout of fairgate for the two arguments of `threading`."""
    if timeout == -1:
        return None if blocking else 0
    if not blocking or timeout < 0:
        raise ValueError(f"blocking={blocking} and timeout={timeout} exclude each other")
    if timeout > TIMEOUT_MAX:
        raise OverflowError(f"{timeout} s is too long")
    return min(timeout, LONGEST)


class Lock:
    def __init__(self, value: int = 1) -> None:
        self.gate = gate(new_name(), value)
        self.permits = Permits()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        return self.permits.add(self.gate.acquire(wait_of(blocking, -1 if timeout is None else timeout)))

    def release(self) -> None:
        self.permits.release(self.gate)

    def locked(self) -> bool:
        return self.gate.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *how: object) -> None:
        self.release()


class Semaphore(Lock):
    def release(self, n: int = 1) -> None:
        for _ in range(n):
            super().release()


@pytest.hookimpl
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> None:
    """The classes of the suite say what they test in a class variable, which its users set."""
    for wanted, attribute, ours in (
        ("LockTests", "locktype", Lock),
        ("SemaphoreTests", "semtype", Semaphore),
        ("BoundedSemaphoreTests", "semtype", Semaphore),
    ):
        if name == wanted:
            setattr(obj, attribute, staticmethod(ours))
