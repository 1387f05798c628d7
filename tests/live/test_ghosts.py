"""Processes whose peer is dead keep their slot, whichever other peers come and go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate import sync
from tests.live.gates import SOON, all_are_free_now

LET_IN = """
import os, subprocess
from fairgate import sync
from fairgate.net.occupancy import Held, occupy
from fairgate.net.runtime import runtime_folder

peer = sync.join()
permit = peer.semaphore("gpu", 1).hold(20)
occupancy = occupy(runtime_folder(), Held("gpu", permit.ticket.ident, permit.slot))
quiet = subprocess.DEVNULL
inside = subprocess.Popen(["sleep", "1000"], pass_fds=[occupancy.file], stdout=quiet, stderr=quiet)
print(inside.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def inside() -> Iterator[list[int]]:
    """Processes inside a gate whose peer was killed."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def let_in(pids: list[int]) -> None:
    other = subprocess.run([sys.executable, "-c", LET_IN], capture_output=True, text=True, timeout=SOON, check=False)
    assert other.returncode == -signal.SIGKILL, other.stderr
    pids.append(int(other.stdout))


@pytest.mark.parametrize("end", ["gate", "peer", "nothing"])
def test_a_ghost_outlives_its_warden(inside: list[int], end: str) -> None:
    with sync.join() as warden, sync.join() as witness:
        first, gate = warden.semaphore("gpu", 1), witness.semaphore("gpu", 1)
        for each in (first, gate):
            each.hold(SOON).release()
        let_in(inside)
        assert first.acquire(timeout=0.2) is None
        if end == "gate":
            first.close()
        elif end == "peer":
            warden.close()
        assert gate.acquire(timeout=0.3) is None
        os.kill(inside.pop(), signal.SIGKILL)
        gate.hold(SOON).release()
        all_are_free_now(gate)


def test_a_ghost_outlives_all_peers(inside: list[int]) -> None:
    with sync.join() as peer:
        peer.semaphore("gpu", 1).hold(SOON).release()
        let_in(inside)
        assert peer.semaphore("gpu", 1).acquire(timeout=0.2) is None
    with sync.join() as peer:  # the first peer again
        gate = peer.semaphore("gpu", 1)
        assert gate.acquire(timeout=0.3) is None
        os.kill(inside.pop(), signal.SIGKILL)
        gate.hold(SOON).release()
