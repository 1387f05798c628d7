"""While the roster cannot be changed, requests are refused with one line, and necessary changes are retried."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairgate
from fairgate import sync
from fairgate.net import members as file
from tests.live.colony import Colony, until
from tests.live.gates import SOON, all_are_free_now
from tests.live.nursery import Plan


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(file, "LOCK_SECONDS", 0.1)
    return tmp_path / "run"


@contextmanager
def stuck(folder: Path) -> Iterator[None]:
    """Holds the lock, like a process that was stopped in the middle of a change."""
    with (folder / "lock").open("r+") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.001)
        yield


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Makes every write to a file of this process fail."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


@pytest.mark.parametrize(("trouble", "why"), [(stuck, "is a peer stopped"), (full, os.strerror(errno.EFBIG))])
def test_new_seats_are_refused_and_existing_seats_still_work(folder: Path, trouble: object, why: str) -> None:
    assert callable(trouble)
    with sync.join() as peer:
        gate = peer.semaphore("gpu", 2)
        with gate:
            with trouble(folder):
                for _ in range(2):
                    with pytest.raises(fairgate.BadInput, match=why):
                        gate.acquire(timeout=SOON)
                assert len(gate.people()) == 1
            with gate.hold(SOON):
                assert gate.locked()
        with trouble(folder):
            gate.hold(SOON).release()  # does not change the roster
        all_are_free_now(gate)


def test_a_death_is_reported_once_the_lock_is_free_again(tmp_path: Path, folder: Path) -> None:
    with Colony(tmp_path) as colony, sync.join() as peer:
        gate = peer.lock("gate")
        gate.hold(SOON).release()
        pid = colony.start(Plan(k=1, stay=1000.0))
        until(lambda: any(visit.entered for visit in colony.visits()), colony.state)
        with stuck(folder):
            colony.kill(pid)
            assert gate.acquire(timeout=0.3) is None  # the death could not be recorded yet
        gate.hold(SOON).release()


def test_a_peer_that_cannot_leave_keeps_answering(folder: Path) -> None:
    """And leaves as soon as it can."""
    with sync.join() as witness:
        peer = sync.join()
        here, there = witness.semaphore("gpu", 1), peer.semaphore("gpu", 1)
        for gate in (there, here):
            gate.hold(SOON).release()
        with stuck(folder):
            peer.engine.shut("this peer has left")
            peer.engine.loop.call_soon_threadsafe(peer.engine.stopping.set)
            here.hold(SOON).release()  # the other sends the token, or answers the census
            assert file.read(folder).peer(peer.engine.me) is not None
        peer.engine.thread.join(SOON)
        assert file.read(folder).peer(peer.engine.me) is None
        all_are_free_now(here)


EXIT = """
from fairgate import sync
peer = sync.join()
gate = peer.semaphore("gpu", 1)
permit = gate.hold(20)
gate.people()
print("in", flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "import os; os._exit(3)", "1 / 0"])
def test_a_process_that_exits_without_closing_leaves_cleanly(folder: Path, end: str) -> None:
    """If Python runs its exit handlers: without a traceback of ours, and without a second's delay."""
    with sync.join() as witness:
        gate = witness.semaphore("gpu", 1)
        gate.hold(SOON).release()
        command = [sys.executable, "-c", EXIT.format(end=end)]
        other = subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=False)
        assert other.stdout == "in\n"
        assert ("Traceback" in other.stderr) == (end == "1 / 0"), other.stderr
        assert "internal error" not in other.stderr
        all_are_free_now(gate)
        assert [peer.id for peer in file.read(folder).peers] == [witness.engine.me]


def test_a_peer_that_cannot_start_reports_why_and_cleans_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sync.join() as witness:
        monkeypatch.setenv("FAIRGATE_DIR", str(folder / ("x" * 100)))
        with pytest.raises(fairgate.BadInput):
            sync.join()
        monkeypatch.setenv("FAIRGATE_DIR", str(folder))
        with stuck(folder), pytest.raises(fairgate.BadInput, match="is a peer stopped"):
            sync.join()
        all_are_free_now(witness.semaphore("gpu", 1))
        assert [peer.id for peer in file.read(folder).peers] == [witness.engine.me]
