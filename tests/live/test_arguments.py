"""Invalid arguments of both APIs: one line, as BadInput, before anything else happens."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from fairgate import BadInput
from tests.live.gates import run
from tests.live.kinds import Kind, each_place

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
    ({"lease": "x"}, "lease must be a number of seconds, more than 0 and up to 1e+09, not 'x'"),
    ({"lease": 0}, "lease must be a number of seconds, more than 0 and up to 1e+09, not 0"),
    ({"lease": inf}, "lease must be a number of seconds, more than 0 and up to 1e+09, not inf"),
    ({"lease": nan}, "lease must be a number of seconds, more than 0 and up to 1e+09, not nan"),
    ({"timeout": "5"}, "timeout must be a number of seconds up to 1e+09, or None, not '5'"),
    ({"timeout": nan}, "timeout must be a number of seconds up to 1e+09, or None, not nan"),
    ({"note": 7}, "note must be a string, not 7"),
    ({"note": None}, "note must be a string, not None"),
    ({"n": 0}, "n must be a whole number of permits, 1 or more, not 0"),
]
REFUSED_BY_ASYNCIO: tuple[dict[str, Any], str] = (
    {"timeout": True},
    "timeout must be a number of seconds up to 1e+09, or None, not True",
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
def test_a_timeout_below_zero_counts_as_zero(kind: Kind) -> None:
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        with gate:
            assert gate.acquire(timeout=-1) is None
        permit = gate.acquire(timeout=-1)
        assert permit is not None
        permit.release()

    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.lock("report")
            async with gate:
                assert await gate.acquire(timeout=-1) is None

    run(main())
