"""`fairgate who`, `top` and `break` for the gates of a cluster. test_clusters.py has what they share with `run`."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.commands import Say, end, end_by, inside, standing, until
from tests.live.test_who import read_until


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def seed() -> Iterator[str]:
    keeper, address = standing("--create", "--listen", "127.0.0.1:0")
    yield address
    assert end_by(signal.SIGTERM, keeper)[0] == 0


def test_silent_peers_are_named(say: Say) -> None:
    creator, seed = standing("--create", "--listen", "127.0.0.1:0", "--lease", "600")  # so that it is not excluded
    holder = inside("report", "--join", seed)
    holder.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
    [gate] = json.loads(say("who", "--json", "--join", seed)[1])["gates"]
    assert gate["silent"] == [{"pid": holder.pid, "host": os.uname().nodename}]
    out = say("who", "--join", seed)[1]
    assert "report: at least 0 of 1 inside, at least 0 waiting (1 peer does not answer; bv95)" in out
    assert f"pid {holder.pid} on {os.uname().nodename} does not answer" in out
    code, out, err = say("break", "report", "0", "--yes", "--join", seed)
    assert (code, out) == (1, "")
    assert f"pid {holder.pid} does not answer: if it is dead, its slots are free when its lease is over" in err
    holder.send_signal(signal.SIGCONT)
    end(holder)
    assert end_by(signal.SIGTERM, creator)[0] == 0


def test_excluded_peers_that_may_be_inside_are_named(say: Say) -> None:
    creator, seed = standing("--create", "--listen", "127.0.0.1:0", "--lease", "60")
    other, _ = standing("report", "--join", seed)
    holder = inside("report", "--join", seed)
    holder.kill()
    holder.communicate()
    until(lambda: "was excluded" in say("who", "--join", seed)[1])
    out = say("who", "--join", seed)[1]
    assert "report: 0 of 1 inside, 0 waiting" in out
    assert f"pid {holder.pid} on {os.uname().nodename} was excluded; what it may hold is free when its lease" in out
    code, out, _ = say("peer", "status", "--join", seed)
    assert code == 0
    assert f"excluded: pid {holder.pid} on {os.uname().nodename} at 127.0.0.1:" in out
    assert "its lease may not be over yet" in out
    for process in (other, creator):
        assert end_by(signal.SIGTERM, process)[0] == 0


def test_a_peer_that_was_killed_and_is_back_is_not_shown_as_excluded(say: Say, tmp_path: Path) -> None:
    """Though it has another pid, another id and another port."""
    creator, seed = standing("--create", "--listen", "127.0.0.1:0", "--lease", "1")
    start = ("report", "--join", seed, "--listen", "127.0.0.1:0", "--state", str(tmp_path / "state"))
    killed, _ = standing(*start)
    killed.kill()
    killed.communicate()
    gone = f"excluded: pid {killed.pid} on {os.uname().nodename}"
    until(lambda: gone in say("peer", "status", "--join", seed)[1])
    back, _ = standing(*start)
    assert "excluded" not in say("peer", "status", "--join", seed)[1]
    for process in (back, creator):
        assert end_by(signal.SIGTERM, process)[0] == 0


def test_a_gate_that_is_not_open_is_said_in_one_line(seed: str, say: Say) -> None:
    missing = "fairgate: no gate report is open here (1 peer of cluster fairgate)\n"
    assert say("who", "report", "--join", seed) == (1, "", missing)
    code, out, err = say("who", "report", "--json", "--join", seed)
    assert (code, json.loads(out)["gates"], err) == (1, [], missing)
    assert say("who", "--join", seed)[0] == 0


def test_json_has_what_the_table_has(seed: str, say: Say) -> None:
    holder = inside("report", "--join", seed, "--lease", "100")
    found = json.loads(say("who", "--json", "--join", seed)[1])
    assert (found["cluster"], found["guarantee"], found["peers"]) == ("fairgate", "lease", 2)
    [gate] = found["gates"]
    [one] = gate["inside"]
    assert (gate["name"], gate["k"], gate["protocol"], gate["waiting"]) == ("report", 1, "bv95", [])
    assert (one["pid"], one["slot"]) == (holder.pid, 0)
    assert one["since"] < one["deadline"] <= one["since"] + 100.1
    end(holder)


def test_top_shows_what_changes_and_ends_cleanly(seed: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fairgate", "top", "--join", seed])
    seen = read_until(terminal, b"no gate is open here")
    holder = inside("report", "--join", seed)
    seen += read_until(terminal, b"report: 1 of 1 inside")
    seen += read_until(terminal, b"guarantee: lease")
    os.write(terminal, b"q")
    seen += read_until(terminal, b"\x1b[?1049l")  # left the alternate screen
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"Traceback" not in seen
    os.close(terminal)
    end(holder)
