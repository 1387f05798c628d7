"""Live gates of this host: the basics, with several peers in one process."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import fairgate
from fairgate import sync
from fairgate.core.setup import FENCE_COUNT_BITS
from fairgate.errors import PermitLost
from fairgate.live.gate import LATE
from fairgate.live.live_protocols import live_protocols
from fairgate.net.transport import Transport
from tests.live.gates import busy


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
        with pytest.raises(fairgate.KMismatch, match="is open with k=3, not k=2"):
            gate.acquire()


def test_a_connection_that_breaks_between_the_living_is_made_good() -> None:
    """Whatever was on its way is lost; a new view makes it anew."""
    with sync.join() as one, sync.join() as two, sync.join() as three:
        peers = (one, two, three)
        over = threading.Event()

        def contend(peer: sync.Peer) -> int:
            gate = peer.semaphore("gpu", k=2)
            entries = 0
            while not over.is_set():
                with gate.hold(timeout=30):
                    entries += 1
            return entries

        def cut(seed: int) -> None:
            chance = random.Random(seed)
            while not over.is_set():
                engine = chance.choice(peers).engine
                engine.loop.call_soon_threadsafe(drop_one, engine.transport, chance.random())
                time.sleep(0.02)

        with ThreadPoolExecutor() as pool:
            contenders = [pool.submit(contend, peer) for peer in peers]
            cutter = pool.submit(cut, 1)
            time.sleep(2.0)
            over.set()
            assert min([contender.result(60) for contender in contenders]) > 10
            cutter.result(60)


def drop_one(transport: Transport, chance: float) -> None:
    up = sorted(transport.up)
    if up:
        transport.up[up[int(chance * len(up))]].drop("a test cut it")


def test_who_came_later_is_told_of_what_an_earlier_peer_changes() -> None:
    with sync.join() as early, sync.join() as late:
        with late.lock("report"):
            pass
        permit = early.lock("report").acquire(timeout=30)  # early has not heard of late before
        assert permit is not None
        permit.release()


def test_fences_that_run_out_are_those_of_another_view() -> None:
    """Also where nobody is asked for them: coming in again and again."""
    with sync.join() as peer:
        gate = peer.lock("report")
        gate.hold(30).release()
        kept = gate.gate.kept
        assert kept is not None
        view = gate.gate.record.view
        kept.fence += LATE + 1
        kept.retakes += LATE + 1
        late = gate.hold(30)  # asks for another view
        late.release()
        end = time.monotonic() + 30
        while gate.gate.record.view == view:
            assert time.monotonic() < end
            gate.hold(30).release()
        permit = gate.hold(30)
        assert permit.fence is not None
        assert view < permit.fence >> FENCE_COUNT_BITS <= gate.gate.record.view  # another view may have come since


def test_fences_rise_past_entries_that_nobody_else_heard_of() -> None:
    with sync.join() as one, sync.join() as two:
        here, there = one.lock("report"), two.lock("report")
        for _ in range(3):
            fences = []
            for gate in (here, here, here, there, there):
                with gate.hold(30) as permit:
                    fences.append(permit.fence or 0)
            assert fences == sorted(set(fences))


def test_a_lease_that_is_over_is_over_before_anybody_has_said_so() -> None:
    with sync.join() as peer:
        gate = peer.lock("report")
        gate.hold(30).release()
        with busy(peer):  # who would say so
            permit = gate.hold(30, lease=0.02)
            end = time.monotonic() + 30
            while permit.valid:
                assert time.monotonic() < end
            assert not permit.lost
            with pytest.raises(PermitLost, match="lease has expired"):
                permit.check()


@pytest.mark.parametrize("protocol", live_protocols())
def test_entering_alone_changes_no_view(protocol: str) -> None:
    """Not where there are no fences, either: nothing that is not there runs out."""
    with sync.join() as one, sync.join() as two:
        first, second = one.lock("report", protocol), two.lock("report", protocol)
        first.hold(30).release()
        second.hold(30).release()
        views = first.statistics().views
        for _ in range(5):
            first.hold(30).release()
            second.hold(30).release()
        second.holders()  # asks the roster: whatever was changed is known then
        assert first.statistics().views == views
