"""Invalid arguments of both APIs: one line, as BadInput, before anything else happens."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import fairgate
from fairgate import BadInput, sync
from tests.live.gates import run

GATES: list[tuple[Any, Any, str]] = [
    (5, 1, "5 is not a valid gate name"),
    ("", 1, "'' is not a valid gate name"),
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
    ({"n": 0}, "n must be a whole number of permits, 1 or more, not 0"),
    ({"note": 7}, "note must be a string, not 7"),
    ({"note": None}, "note must be a string, not None"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def told(wrong: pytest.ExceptionInfo[BadInput]) -> str:
    return str(wrong.value)


def test_bad_gates() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            for name, k, expected in GATES:
                with pytest.raises(BadInput) as wrong:
                    peer.semaphore(name, k)
                assert told(wrong).startswith(expected)

    run(main())
    with sync.join() as peer:
        for name, k, expected in GATES:
            with pytest.raises(BadInput) as wrong:
                peer.semaphore(name, k)
            assert told(wrong).startswith(expected)


def test_bad_requests_at_a_free_gate() -> None:
    """Also once the gate keeps a seat, so that entering takes the shortest path."""

    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.lock("report")
            for _ in range(2):
                for arguments, expected in REQUESTS:
                    with pytest.raises(BadInput) as wrong:
                        await gate.acquire(**arguments)
                    assert told(wrong) == expected
                async with gate:
                    pass

    run(main())
    with sync.join() as peer:
        gate = peer.lock("report")
        for _ in range(2):
            for arguments, expected in REQUESTS:
                with pytest.raises(BadInput) as wrong:
                    gate.acquire(**arguments)
                assert told(wrong) == expected
            with gate as permit, pytest.raises(BadInput, match="lease must be a number"):
                permit.extend("x")  # type: ignore[arg-type]


def test_a_timeout_below_zero_counts_as_zero() -> None:
    with sync.join() as peer:
        gate = peer.lock("report")
        with gate:
            assert gate.acquire(timeout=-1) is None
