"""Detecting the death of processes at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairgate.net.watch import Watch, is_alive, start_time
from tests.live.peers import run

FOREVER = "import sys; print('here', flush=True); sys.stdin.read()"


def start(code: str = FOREVER) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


@pytest.fixture(params=["asyncio", "uvloop"])
def fast(request: pytest.FixtureRequest) -> bool:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return bool(request.param == "uvloop")


def test_kill_9_is_noticed_before_the_process_is_reaped(fast: bool) -> None:
    victim, other = start(), start()

    async def main() -> None:
        dead: asyncio.Queue[int] = asyncio.Queue()
        watch = Watch(dead.put_nowait)
        for peer, process in ((7, victim), (8, other)):
            watch.add(peer, process.pid, start_time(process.pid))
        os.kill(victim.pid, signal.SIGKILL)
        assert await dead.get() == 7
        assert not is_alive(victim.pid, start_time(victim.pid))  # a zombie by now
        assert list(watch.pidfds) == [8]
        other.terminate()  # other signals count too
        assert await dead.get() == 8
        assert dead.empty()
        watch.close()

    try:
        run(main(), fast)
    finally:
        end(victim)
        end(other)


def test_a_process_that_is_already_dead_is_reported_once_and_asynchronously(fast: bool) -> None:
    gone = start()
    started = start_time(gone.pid)
    end(gone)

    async def main() -> None:
        dead: asyncio.Queue[int] = asyncio.Queue()
        watch = Watch(dead.put_nowait)
        watch.add(7, gone.pid, started)
        watch.add(7, gone.pid, started)
        assert dead.empty()  # never from within add()
        assert await dead.get() == 7
        watch.add(8, os.getpid(), start_time(os.getpid()) - 1)  # the pid was reused
        assert await dead.get() == 8
        watch.add(9, gone.pid, started)
        watch.discard(9)
        await asyncio.sleep(0)
        assert dead.empty()
        watch.close()

    run(main(), fast)


def test_a_discarded_process_dies_unnoticed_and_nothing_leaks(fast: bool) -> None:
    process = start()
    started = start_time(process.pid)

    async def main() -> None:
        dead: list[int] = []
        watch = Watch(dead.append)
        open_before = len(list(Path("/proc/self/fd").iterdir()))
        for peer in range(20):
            watch.add(peer, process.pid, started)
        watch.discard(0)
        watch.discard(0)
        last: asyncio.Queue[int] = asyncio.Queue()
        witness = Watch(last.put_nowait)
        witness.add(1, process.pid, started)
        watch.close()
        process.kill()
        assert await last.get() == 1
        assert dead == []
        await asyncio.sleep(0)
        assert len(list(Path("/proc/self/fd").iterdir())) == open_before

    try:
        run(main(), fast)
    finally:
        end(process)


def test_start_times_tell_processes_apart() -> None:
    process = start()
    try:
        assert start_time(process.pid) >= start_time(os.getpid()) > 0
        assert is_alive(process.pid, start_time(process.pid))
        assert not is_alive(process.pid, start_time(process.pid) + 1)
    finally:
        end(process)
    assert start_time(process.pid) == 0


def test_a_process_with_an_odd_name() -> None:
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) b (c', 0, 0, 0); "
    process = start(rename + FOREVER)
    try:
        assert "a) b (c" in Path(f"/proc/{process.pid}/comm").read_text()
        assert start_time(process.pid) >= start_time(os.getpid())
    finally:
        end(process)
