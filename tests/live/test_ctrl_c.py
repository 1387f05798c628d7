"""Ctrl-C in the middle of acquire and release: whoever survives it leaves no gate stuck."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fairgate import sync
from fairgate.net.pipe import Pipe
from tests.live.gates import SOON, all_are_free_now


def test_a_signal_at_any_moment_leaves_no_lock_taken() -> None:
    """Of a connection, that is; where the plain files run it may be heard after any call."""

    async def main() -> None:
        pipe = Pipe(None, 100)
        for _ in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                while True:
                    pipe.write_now(b"")  # nobody is there: so this is the lock and nothing else
            except KeyboardInterrupt:
                assert not pipe.writing.locked()

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        asyncio.run(main())
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seconds", [2.0, pytest.param(60.0, marks=pytest.mark.stress)])
def test_ctrl_c_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    rng = random.Random(1)
    command = [sys.executable, "-m", "tests.live.interrupted", str(seconds)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == b"ready\n"
        with sync.join() as peer:
            gate = peer.semaphore("gate", 2)
            stopping = threading.Event()
            entries: list[int] = []

            def visit() -> None:
                while not stopping.is_set():
                    gate.hold(SOON).release()
                    entries.append(1)
                    time.sleep(0.001)

            thread = threading.Thread(target=visit)
            thread.start()
            deadline = time.monotonic() + seconds - 0.5
            while time.monotonic() < deadline:
                time.sleep(rng.uniform(0.004, 0.02))
                other.send_signal(signal.SIGINT)
            told = other.stdout.readline().split()
            stopping.set()
            thread.join(2 * SOON)
            assert len(told) == 2, other.poll()
            print(f"{told[0].decode()} visits, {told[1].decode()} interrupted; {len(entries)} visits of the other")
            assert int(told[1]) > 10
            assert entries
            all_are_free_now(gate)
    finally:
        other.kill()
        other.communicate()
