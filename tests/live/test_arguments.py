"""Invalid arguments of both APIs: one line, as BadInput, before anything else happens."""

from __future__ import annotations

import asyncio
import threading
import time
from math import inf, nan
from typing import Any

import pytest

from fairgate import BadInput, sync
from tests.live.gates import run
from tests.live.kinds import Kind, each_place

HUGE = pytest.param(10**5000, id="huge")  # Python refuses to print it
GATES: list[tuple[Any, Any, str]] = [
    (5, 1, "5 is not a valid gate name"),
    ("", 1, "'' is not a valid gate name"),
    ("é" * 101, 1, f"'{'é' * 59} is too long for a gate name: it takes 202 bytes, and 200 are allowed"),
    ("gpu", "3", "k must be a whole number from 1 to 1000, not '3'"),
    ("gpu", True, "k must be a whole number from 1 to 1000, not True"),
    ("gpu", 2.0, "k must be a whole number from 1 to 1000, not 2.0"),
    ("gpu", 0, "k must be a whole number from 1 to 1000, not 0"),
    ("gpu", 1001, "k must be a whole number from 1 to 1000, not 1001"),
]
REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"lease": "x"}, "lease must be a number of seconds from 0.001 to 1e+09, not 'x'"),
    ({"lease": 0}, "lease must be a number of seconds from 0.001 to 1e+09, not 0"),
    ({"lease": inf}, "lease must be a number of seconds from 0.001 to 1e+09, not inf"),
    ({"lease": nan}, "lease must be a number of seconds from 0.001 to 1e+09, not nan"),
    ({"timeout": "5"}, "timeout must be a number of seconds from 0 to 1e+09, or None or -1 to wait forever, not '5'"),
    ({"timeout": nan}, "timeout must be a number of seconds from 0 to 1e+09, or None or -1 to wait forever, not nan"),
    ({"timeout": -0.5}, "timeout must be a number of seconds from 0 to 1e+09, or None or -1 to wait forever, not -0.5"),
    ({"timeout": -2}, "timeout must be a number of seconds from 0 to 1e+09, or None or -1 to wait forever, not -2"),
    ({"note": 7}, "note must be a string, not 7"),
    ({"note": None}, "note must be a string, not None"),
    ({"n": 0}, "n must be a whole number of permits from 1 to 1000, not 0"),
]
REFUSED_BY_ASYNCIO: tuple[dict[str, Any], str] = (
    {"timeout": True},
    "timeout must be a number of seconds from 0 to 1e+09, or None or -1 to wait forever, not True",
)


def told(wrong: pytest.ExceptionInfo[BadInput]) -> str:
    return str(wrong.value)


@each_place
def test_bad_gates(kind: Kind) -> None:
    async def main() -> None:
        async with kind.join() as peer:
            for name, k, expected in GATES:
                with pytest.raises(BadInput) as wrong:
                    peer.semaphore(name, k)
                assert told(wrong).startswith(expected)

    run(main())
    with kind.sync_join() as peer:
        for name, k, expected in GATES:
            with pytest.raises(BadInput) as wrong:
                peer.semaphore(name, k)
            assert told(wrong).startswith(expected)


@each_place
def test_bad_requests_at_a_free_gate(kind: Kind) -> None:
    """Also once the gate keeps a seat, so that entering takes the shortest path."""

    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.lock("report")
            for _ in range(2):
                for arguments, expected in [*REQUESTS, REFUSED_BY_ASYNCIO]:
                    with pytest.raises(BadInput) as wrong:
                        await gate.acquire(**arguments)
                    assert told(wrong) == expected
                async with gate:
                    pass

    run(main())
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        for _ in range(2):
            for arguments, expected in REQUESTS:
                with pytest.raises(BadInput) as wrong:
                    gate.acquire(**arguments)
                assert told(wrong) == expected
            with gate as permit, pytest.raises(BadInput, match="lease must be a number"):
                permit.extend("x")  # type: ignore[arg-type]


@each_place
def test_a_timeout_of_minus_one_waits_forever(kind: Kind) -> None:
    """As in threading. The permit is released by another thread or task, once the request is waiting."""

    def release_later(permit: sync.Permit, gate: sync.Semaphore) -> None:
        end = time.monotonic() + 10
        while not gate.waiters() and time.monotonic() < end:
            time.sleep(0.001)
        permit.release()

    with kind.sync_join() as peer:
        gate = peer.lock("report")
        for enter in (gate.acquire, gate.hold):
            permit = gate.acquire(timeout=-1.0)
            assert permit is not None
            releasing = threading.Thread(target=release_later, args=(permit, gate))
            releasing.start()
            again = enter(timeout=-1)
            releasing.join()
            assert again is not None
            again.release()

    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.lock("report")
            permit = await gate.acquire(timeout=-1)
            assert permit is not None
            waiting = asyncio.create_task(gate.acquire(timeout=-1))
            while not (waiting.done() or await gate.waiters()):
                await asyncio.sleep(0.001)
            assert not waiting.done()
            permit.release()
            again = await waiting
            assert again is not None
            again.release()
            async with gate.hold(timeout=-1):
                pass

    run(main())


@pytest.mark.parametrize("value", [10**30, HUGE, -(10**30), -1, 0, 1001, True, 1.0, 2.0, "2", None])
@each_place
def test_no_n_overflows(kind: Kind, value: Any) -> None:
    with kind.sync_join() as peer, pytest.raises(BadInput) as wrong:
        peer.semaphore("report", 2).acquire(n=value)
    assert "\n" not in str(wrong.value)
    assert "n must be a whole number of permits from 1 to 1000" in str(wrong.value)

    async def main() -> None:
        async with kind.join() as peer:
            with pytest.raises(BadInput):
                await peer.semaphore("report", 2).acquire(n=value)

    run(main())


@pytest.mark.parametrize("value", [5e-10, 1e-3 - 1e-9, HUGE])
@each_place
def test_no_lease_is_shorter_than_a_millisecond(kind: Kind, value: Any) -> None:
    """5e-10 was none at all."""
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        with pytest.raises(BadInput, match=r"lease must be a number of seconds from 0\.001"):
            gate.acquire(lease=value)
        with gate as permit, pytest.raises(BadInput, match=r"lease must be a number of seconds from 0\.001"):
            permit.extend(value)
        shortest = gate.acquire(lease=1e-3)
        assert shortest is not None
        shortest.release()

    async def main() -> None:
        async with kind.join() as peer:
            with pytest.raises(BadInput, match="lease must be"):
                await peer.lock("report").acquire(lease=value)

    run(main())
