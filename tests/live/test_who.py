"""`fairgate who`, `top`, `break` and `peer`."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fairgate.cli.inspect.view import Fitted
from tests.live.commands import (
    SOON,
    Say,
    Watched,
    end,
    end_by,
    gate,
    inside,
    line,
    run,
    standing,
    start,
    until,
    until_waiting,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / "run"


def who(say: Say, *words: str) -> dict[str, Any]:
    found = json.loads(say("who", "--json", *words)[1])
    assert isinstance(found, dict)
    return found


def test_who_without_open_gates(folder: Path, say: Say) -> None:
    assert say("who") == (0, f"no gate is open here (0 peers in {folder})\n", "")
    assert who(say) == {"folder": str(folder), "guarantee": "host", "peers": 0, "gates": []}


def test_who_lists_holders_and_waiters_in_order(say: Say) -> None:
    before = time.time()
    holder = inside("gpu", "--lease", "100")
    waiters = []
    for count in (1, 2):
        waiters.append(start("run", "gpu", "--", "echo", f"number {count}"))
        until_waiting("gpu", count)
    [found] = who(say, "gpu")["gates"]
    [one] = found["inside"]
    assert (found["name"], found["k"], found["protocol"], found["silent"]) == ("gpu", 1, "bv95", [])
    assert (one["pid"], one["slot"], one["ghost"], one["host"]) == (holder.pid, 0, False, os.uname().nodename)
    assert before < one["since"] < time.time() < one["deadline"] <= one["since"] + 100.1
    assert one["fence"] > 0
    assert [waiter["pid"] for waiter in found["waiting"]] == [waiter.pid for waiter in waiters]
    assert [waiter["note"] for waiter in found["waiting"]] == ["echo 'number 1'", "echo 'number 2'"]
    out = say("who")[1]
    assert "gpu: 1 of 1 inside, 2 waiting (bv95)" in out
    first, second = [out.splitlines().index(row) for row in out.splitlines() if "waits" in row]
    assert str(waiters[0].pid) in out.splitlines()[first]
    assert str(waiters[1].pid) in out.splitlines()[second]
    assert say("who", "cpu")[1].startswith("no gate cpu is open here")
    end(holder)
    assert [line(waiter) for waiter in waiters] == ["number 1", "number 2"]
    assert [end(waiter) for waiter in waiters] == [0, 0]


def test_who_names_silent_peers(say: Say) -> None:
    holder = inside("report")
    holder.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
    assert who(say)["gates"][0]["silent"] == [{"pid": holder.pid, "host": os.uname().nodename}]
    out = say("who")[1]
    assert "report: at least 0 of 1 inside, at least 0 waiting (1 peer does not answer; bv95)" in out
    assert f"pid {holder.pid} on {os.uname().nodename} does not answer" in out
    code, out, err = say("break", "report", "0", "--yes")
    assert (code, out) == (2, "")
    assert err.endswith(f"pid {holder.pid} does not answer: kill it to free what it holds\n")
    holder.send_signal(signal.SIGCONT)
    end(holder)


def test_a_narrow_table_keeps_pids_and_one_line_each(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = start("run", "report", "--", "sh", "-c", "echo in; read line\n: " + "long " * 20)
    assert line(holder) == "in"
    for columns, shown in (("50", ()), ("70", ("host",)), ("100", ("host", "fence"))):
        monkeypatch.setenv("COLUMNS", columns)
        _, header, _, row = say("who")[1].splitlines()
        assert tuple([name for name in ("host", "fence") if name in header]) == shown
        assert str(holder.pid) in row
        assert row.rstrip().endswith("…")
    end(holder)


def test_what_does_not_fit_on_the_screen_is_counted() -> None:
    console = Console(width=20, height=4, file=StringIO())
    for lines, expected in ((4, "0\n1\n2\n3\n"), (6, "0\n1\n2\n+3 more lines")):
        with console.capture() as captured:
            console.print(Fitted("\n".join(map(str, range(lines)))), end="")
        assert "\n".join([each.rstrip() for each in captured.get().split("\n")]) == expected


# break.


def test_break_ends_the_command_and_lets_the_next_one_in(say: Say) -> None:
    holder = start("run", "report", "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(holder) == "in"
    waiter = start("run", "report", "--", "echo", "in")
    until_waiting("report")
    assert "--yes" in say("break", "report", "0")[2]
    code, out, err = say("break", "report", "0", "--yes")
    assert (code, err) == (0, "")
    assert out.startswith(f"slot 0 of gate report is free again: pid {holder.pid} was notified")
    assert line(waiter) == "in"
    _, complaint = holder.communicate(timeout=SOON)
    assert holder.returncode == 128 + signal.SIGTERM
    assert complaint == b"fairgate: gate report: the permit for slot 0 was lost: it was revoked by `fairgate break`\n"
    assert end(waiter) == 0


def test_break_of_a_ghost_leaves_its_processes(say: Say) -> None:
    holder = start("run", "report", "--", "sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $! $$; wait")
    behind, command = line(holder).split()
    watched = Watched(int(behind))
    holder.kill()
    holder.communicate()
    waiter = start("run", "report", "--", "echo", "in")
    until_waiting("report")
    assert f"group {command}" in say("who")[1]
    code, out, err = say("break", "report", "0", "--yes")
    assert (code, err) == (0, "")
    assert f"process group {command} was not notified and may still be running" in out
    assert line(waiter) == "in"
    assert end(waiter) == 0
    assert not watched.has_ended(0)
    os.kill(watched.pid, signal.SIGKILL)
    watched.close()


@pytest.mark.parametrize("name", ["report", "other"])
def test_break_without_a_holder_is_an_error(name: str, say: Say) -> None:
    holder = inside("report", "-k", "2")
    expected = "nobody is in slot 1 of gate report" if name == "report" else "no gate other is open here"
    assert say("break", name, "1", "--yes") == (2, "", f"fairgate: {expected}\n")
    end(holder)


# peer.


def test_a_standing_peer_keeps_k_and_protocol(folder: Path, say: Say) -> None:
    peer = start("peer", "gpu", "cpu", "-k", "3")
    said = line(peer)
    assert (
        said
        == f"pid {peer.pid} is a peer in {folder} and keeps gpu, cpu open (k=3, centralised) until a signal ends it"
    )
    assert [(one["name"], one["k"]) for one in who(say)["gates"]] == [("cpu", 3), ("gpu", 3)]
    assert run("run", "gpu", "-k", "3", "--", "echo", "in").stdout == "in\n"
    assert run("run", "gpu", "-k", "2", "--", "echo", "in").returncode == 2
    peer.send_signal(signal.SIGTERM)
    assert peer.communicate(timeout=SOON) == (b"SIGTERM: leaving\n", b"")
    assert peer.returncode == 0
    assert gate("gpu") is None


def test_a_standing_peer_refuses_another_k() -> None:
    holder = inside("gpu", "-k", "3")
    done = run("peer", "gpu", "-k", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fairgate: gate gpu is open with k=3")
    end(holder)


# top.


def test_top_needs_a_terminal(say: Say) -> None:
    assert say("top") == (2, "", "fairgate: top needs a terminal: use fairgate who instead\n")


@pytest.mark.parametrize(("key", "code", "cluster"), [(b"q", 0, False), (b"\x03", 130, False), (b"q", 0, True)])
def test_top_shows_what_changes_and_ends_cleanly(key: bytes, code: int, cluster: bool) -> None:
    keeper, seed = standing("--create", "--listen", "127.0.0.1:0") if cluster else (None, "")
    words = ["--join", seed] if cluster else []
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fairgate", "top", *words])
    seen = b""

    def shows(mark: bytes) -> bool:
        nonlocal seen
        if select.select([terminal], [], [], 0.01)[0]:
            seen += os.read(terminal, 4096)
        return mark in seen

    until(lambda: shows(b"no gate is open here"))
    holder = inside("report", *words)
    until(lambda: shows(b"report: 1 of 1 inside"))
    until(lambda: shows(b"guarantee: none") == cluster)
    os.write(terminal, key)
    until(lambda: shows(b"\x1b[?1049l"))  # left the alternate screen
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert b"Traceback" not in seen
    os.close(terminal)
    end(holder)
    if keeper is not None:
        assert end_by(signal.SIGTERM, keeper)[0] == 0
