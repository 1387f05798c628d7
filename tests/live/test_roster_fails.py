"""The roster cannot be changed for a while: requests are refused in one line, and what must be done is done later."""

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
    """As if a process had been stopped in the middle of a change."""
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
    """This process can write no byte to any file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


@pytest.mark.parametrize(("trouble", "why"), [(stuck, "is a peer stopped"), (full, os.strerror(errno.EFBIG))])
def test_a_new_seat_is_refused_and_a_seat_that_is_there_is_not(folder: Path, trouble: object, why: str) -> None:
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
            gate.hold(SOON).release()  # nothing has to be changed for that
        all_are_free_now(gate)


def test_a_death_is_told_when_the_lock_is_free_again(tmp_path: Path, folder: Path) -> None:
    with Colony(tmp_path) as colony, sync.join() as peer:
        gate = peer.lock("gate")
        gate.hold(SOON).release()
        pid = colony.start(Plan(k=1, stay=1000.0))
        until(lambda: any(visit.entered for visit in colony.visits()), colony.state)
        with stuck(folder):
            colony.kill(pid)
            assert gate.acquire(timeout=0.3) is None  # nobody could be told yet
        gate.hold(SOON).release()


def test_who_cannot_leave_goes_on_answering(folder: Path) -> None:
    """And leaves when it can."""
    with sync.join() as witness:
        peer = sync.join()
        here, there = witness.semaphore("gpu", 1), peer.semaphore("gpu", 1)
        for gate in (there, here):
            gate.hold(SOON).release()
        with stuck(folder):
            peer.engine.shut("this peer has left")
            peer.engine.loop.call_soon_threadsafe(peer.engine.stopping.set)
            here.hold(SOON).release()  # the token comes from the other, or the other answers the census
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
def test_who_ends_without_a_word_leaves_nothing(folder: Path, end: str) -> None:
    """In order, if Python has time for it: no traceback of ours, and no second's delay."""
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


def test_a_peer_that_cannot_begin_says_why_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sync.join() as witness:
        monkeypatch.setenv("FAIRGATE_DIR", str(folder / ("x" * 100)))
        with pytest.raises(fairgate.BadInput):
            sync.join()
        monkeypatch.setenv("FAIRGATE_DIR", str(folder))
        with stuck(folder), pytest.raises(fairgate.BadInput, match="is a peer stopped"):
            sync.join()
        all_are_free_now(witness.semaphore("gpu", 1))
        assert [peer.id for peer in file.read(folder).peers] == [witness.engine.me]
