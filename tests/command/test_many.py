"""Many `fairgate run` at once, and signals that arrive at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command.gates import requests, until_waiting
from tests.live.commands import FAIRGATE, SOON, end, inside, start, until

COUNT = 200


def test_two_hundred_commands_at_once_all_succeed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"echo $FAIRGATE_SLOT + >> {log}; echo $FAIRGATE_SLOT - >> {log}"
    quiet = subprocess.DEVNULL
    words = [*FAIRGATE, "run", "gpu", "-k", "3", "--", "sh", "-c", script]
    processes = [subprocess.Popen(words, stdin=quiet, stderr=subprocess.PIPE) for _ in range(COUNT)]
    assert [process.communicate(timeout=4 * SOON)[1] for process in processes] == [b""] * COUNT
    assert [process.returncode for process in processes] == [0] * COUNT
    inside: set[str] = set()
    entries = 0
    for entry in log.read_text().splitlines():
        slot, change = entry.split()
        assert (slot in inside) == (change == "-")
        inside ^= {slot}
        entries += change == "+"
    assert (entries, inside) == (COUNT, set())
    assert requests("gpu") == []


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_any_moment_ends_the_wait(signum: int) -> None:
    rng = random.Random(signum)
    holder = inside("report")
    for _ in range(20):
        waiter = start("run", "report", "--", "true")
        time.sleep(rng.uniform(0, 0.08))
        waiter.send_signal(signum)
        out, err = waiter.communicate(timeout=SOON)
        assert waiter.returncode in (-signum, 128 + signum)
        assert (out, err) == (b"", b"")
    last = start("run", "report", "--", "true")  # it buries the dead
    until(lambda: {one.pid for one in requests("report")} == {holder.pid, last.pid})
    until_waiting("report")
    assert end(holder) == 1
    assert end(last) == 0
    assert requests("report") == []
