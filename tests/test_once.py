"""A lock that Ctrl-C cannot lose, as generator and as compiled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fairgate.net import system
from fairgate.once import once
from tests.support.latches import is_locked

BOTH = [(threading.Lock, once), (system.Latch, system.once)]


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupts() -> Iterator[Callable[[int], None]]:
    """Raises an exception in this thread after so many microseconds of computing."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        yield lambda after: signal.setitimer(signal.ITIMER_VIRTUAL, after / 1e6) and None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize(("make", "take"), BOTH, ids=["plain", "as built"])
def test_an_interrupt_at_any_instruction_leaves_the_lock_free(
    make: Callable[[], Any], take: Callable[[Any], Iterator[None]], interrupts: Callable[[int], None]
) -> None:
    lock = make()
    hits = 0
    for attempt in range(300):
        try:
            interrupts(1 + attempt % 100)
            for _ in range(1_000_000):
                for _ in take(lock):
                    pass
        except Interrupted:
            hits += 1
        assert not is_locked(lock)
    assert hits == 300


@pytest.mark.parametrize(("make", "take"), BOTH, ids=["plain", "as built"])
def test_it_is_released_however_the_turn_ends(make: Callable[[], Any], take: Callable[[Any], Iterator[None]]) -> None:
    lock = make()

    def returns() -> bool:
        for _ in take(lock):
            return is_locked(lock)
        return False

    assert returns()
    assert not is_locked(lock)
    for _ in take(lock):
        assert is_locked(lock)
        break
    assert not is_locked(lock)
    with pytest.raises(ZeroDivisionError):
        [1 / 0 for _ in take(lock)]
    assert not is_locked(lock)
