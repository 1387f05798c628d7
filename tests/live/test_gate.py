"""Live gates of this host: the basics, with several peers in one process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import fairgate
from fairgate import sync


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def test_one_peer_has_all_slots() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.semaphore("gpu", k=3)
            permits = [await gate.acquire(timeout=30) for _ in range(3)]
            assert sorted([permit.slot for permit in permits if permit is not None and permit.slot is not None]) == [
                0,
                1,
                2,
            ]
            assert await gate.locked()
            assert await gate.try_acquire() is None
            assert await gate.acquire(timeout=0.05) is None
            for permit in permits:
                assert permit is not None
                permit.release()
                permit.release()
            assert await gate.holders() == []
            async with gate as permit:
                assert permit.valid

    asyncio.run(main())


def test_two_peers_take_turns() -> None:
    with sync.join() as one, sync.join() as two:
        first, second = one.lock("report"), two.lock("report")
        for _ in range(20):
            with first as permit:
                assert second.acquire(timeout=0.001) is None
                fence = permit.fence
            with second as permit:
                assert permit.fence > fence


def test_another_k_is_refused() -> None:
    with sync.join() as one, sync.join() as two, one.semaphore("gpu", k=3):
        gate = two.semaphore("gpu", k=2)
        with pytest.raises(fairgate.KMismatch, match="lets 3 in, and you asked for 2"):
            gate.acquire()
