"""What the calls of a room say about files and processes: the compiled ones, and those in plain Python."""

from __future__ import annotations

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
from types import ModuleType
from typing import Any

import pytest

from fairgate.room import calls
from tests.room.children import until
from tests.room.plain import source_of

PR_SET_NAME = 15
PLAIN = ModuleType("plain_calls")
exec(compile(source_of("calls"), "calls (plain)", "exec"), vars(PLAIN))
both = pytest.mark.parametrize("used", [calls, PLAIN], ids=["in use", "plain"])


@contextmanager
def named(name: str) -> Iterator[int]:
    """A process of that name, which waits."""
    code = f"import ctypes; ctypes.CDLL(None).prctl({PR_SET_NAME}, {name.encode()!r}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


@both
@pytest.mark.parametrize("name", ["python", "a) T (b", ") t ("])
def test_a_process_is_stopped_whatever_its_name_says(used: ModuleType, name: str) -> None:
    with named(name) as pid:
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        assert not used.is_stopped(pid)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: used.is_stopped(pid))
        os.kill(pid, signal.SIGCONT)
        until(lambda: not used.is_stopped(pid))
    assert not used.is_stopped(pid)  # it is dead, and was waited for


@both
def test_a_file_that_was_removed_or_replaced_is_another_one(used: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "gate"
    path.touch()
    fd = os.open(path, os.O_RDWR)
    try:
        assert used.is_same_file(str(path), fd)
        path.rename(tmp_path / "old")
        assert not used.is_same_file(str(path), fd)
        path.symlink_to(tmp_path / "old")
        assert not used.is_same_file(str(path), fd)
        path.unlink()
        path.touch()
        assert not used.is_same_file(str(path), fd)
        assert not used.is_same_file(f"{path}/deeper", fd)
    finally:
        os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        used.is_same_file(str(path), fd)
    with pytest.raises(OSError, match="too long"):
        used.is_same_file("x" * 5000, fd)


@both
def test_a_loop_does_not_give_its_processor_away_for_a_lock(
    used: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a crowded machine it would have it back after a tenth of a second."""

    def give_away(*_: Any) -> None:
        raise AssertionError("it gave its processor away")

    path = tmp_path / "gate"
    path.touch()
    with path.open() as owner, path.open() as waiter:
        fcntl.flock(owner, fcntl.LOCK_EX)
        monkeypatch.setattr(os, "sched_yield", give_away)
        monkeypatch.setattr(time, "sleep", give_away)
        sleeps = []
        for _ in range(10):  # now and then it waits for a page, or while another thread has the interpreter
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
            assert not used.lock(waiter.fileno(), 2_000_000)
            sleeps.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before)
        assert 0 in sleeps
        fcntl.flock(owner, fcntl.LOCK_UN)
        assert used.lock(waiter.fileno(), 0)
