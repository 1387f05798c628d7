"""`fairgate who`, `top`, `break`, `resize` and `peer` for the gates of one host."""

from __future__ import annotations

import json
import os
import pty
import pwd
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fairgate.cli.inspect.view import Fitted
from fairgate.room.room import Room
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
    start,
    until_waiting,
)
from tests.room.visitors import end_group, holder, orphans, waiter
from tests.support.scrape import scrape

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / "run"


@pytest.fixture
def children(folder: Path) -> Iterator[ExitStack]:
    folder.mkdir(mode=0o700)
    with ExitStack() as stack:
        yield stack


def who(say: Say, *words: str) -> dict[str, Any]:
    found = json.loads(say("who", "--json", *words)[1])
    assert isinstance(found, dict)
    return found


# who.


def test_looking_creates_nothing(folder: Path, say: Say) -> None:
    assert say("who") == (0, f"no gate is in use here ({folder})\n", "")
    assert say("who", "gpu") == (1, "", f"fairgate: there is no gate gpu here ({folder})\n")
    nothing: dict[str, list[str]] = {"gates": [], "unused": [], "unusable": [], "clusters": []}
    assert who(say) == {"folder": str(folder), "guarantee": "host", **nothing}
    code, out, err = say("who", "gpu", "--json")
    assert (code, json.loads(out)["gates"], err) == (1, [], f"fairgate: there is no gate gpu here ({folder})\n")
    assert not folder.exists()


def test_a_gate_that_nobody_uses_is_there(say: Say) -> None:
    assert run("run", "gpu", "-k", "2", "--", "true").returncode == 0
    assert say("who", "gpu") == (0, "gpu: 0 of 2 inside, 0 waiting\n", "")


def test_who_lists_holders_and_waiters_in_order(folder: Path, say: Say) -> None:
    before = time.time()
    first = inside("gpu", "--lease", "100")
    waiters = []
    for count in (1, 2):
        waiters.append(start("run", "gpu", "--", "echo", f"number {count}"))
        until_waiting("gpu", count)
    [found] = who(say, "gpu")["gates"]
    [one] = found["inside"]
    assert (found["name"], found["path"], found["k"], found["entries"]) == ("gpu", f"{folder}/gpu.gate", 1, 1)
    assert (one["pid"], one["slot"], one["slots"], one["permits"]) == (first.pid, 0, [0], 1)
    assert (one["user"], one["host"], one["order"]) == (ME, os.uname().nodename, None)
    assert before < one["since"] < time.time() < one["deadline"] <= one["since"] + 100.1
    assert one["fence"] > 0
    assert not any(one[name] for name in ("ghost", "stopped", "other_namespace"))
    assert [(each["pid"], each["order"], each["note"]) for each in found["waiting"]] == [
        (waiters[0].pid, 1, "echo 'number 1'"),
        (waiters[1].pid, 2, "echo 'number 2'"),
    ]
    assert all(each["fence"] is each["slot"] is each["deadline"] is None for each in found["waiting"])
    out = say("who")[1]
    assert "gpu: 1 of 1 inside, 2 waiting" in out
    for number, process in enumerate(waiters, 1):
        [row] = [row for row in out.splitlines() if f"waits {number}" in row]
        assert str(process.pid) in row
    end(first)
    assert [line(process) for process in waiters] == ["number 1", "number 2"]
    assert [end(process) for process in waiters] == [0, 0]


def test_who_of_a_gate_named_by_a_path(tmp_path: Path, say: Say) -> None:
    path = str(tmp_path / "lab.gate")
    one = inside(path, "-k", "2")
    assert say("who") == (0, f"no gate is in use here ({tmp_path / 'run'})\n", "")
    assert f"{path}: 1 of 2 inside, 0 waiting" in say("who", path)[1]
    [found] = who(say, path)["gates"]
    assert found["inside"][0]["pid"] == one.pid
    end(one)


def test_unused_gates_are_only_named(folder: Path, children: ExitStack, say: Say) -> None:
    for number in range(10):
        Room(str(folder), f"old{number}", 3).close()
    assert say("who")[1].splitlines() == [
        f"no gate is in use here ({folder})",
        "",
        "10 unused gates: old0, old1, old2, old3, old4, old5, old6, old7 and 2 more",
    ]
    assert who(say)["unused"] == [f"old{number}" for number in range(10)]
    assert say("who", "old1") == (0, "old1: 0 of 3 inside, 0 waiting\n", "")
    assert who(say, "old1")["gates"][0]["k"] == 3


def test_a_bad_file_is_one_line(folder: Path, children: ExitStack, say: Say) -> None:
    children.enter_context(holder(str(folder), 1, "gpu"))
    (folder / "bad.gate").write_bytes(os.urandom(40_000))
    code, out, err = say("who")
    assert (code, out.splitlines()[0].rstrip()) == (0, "gpu: 1 of 1 inside, 0 waiting")
    hint = "use another name, or remove it if it is a gate that nobody uses"
    why = f"cannot use {folder}/bad.gate: it is not a gate file; {hint}"
    assert err == f"fairgate: {why}\n"
    assert who(say)["unusable"] == [{"name": "bad", "why": why}]
    assert say("who", "bad") == (2, "", err)


def test_states_are_marked(folder: Path, children: ExitStack, say: Say) -> None:
    _, group = orphans(str(folder), note="./train.sh")
    try:
        late = children.enter_context(waiter(str(folder), 1))
        late.stop()
        [left, waits] = [row.split() for row in say("who")[1].splitlines()[3:]]
        [found] = who(say)["gates"]
    finally:
        end_group(group)
    [one] = found["inside"]
    assert left == ["0", left[1], "s", "group", str(group), ME, "left", "behind", str(one["fence"]), "./train.sh"]
    assert waits == ["waits", "1", waits[2], "s", str(late.pid), ME, "stopped", "-"]
    assert (one["ghost"], one["group"], one["stopped"]) == (True, group, False)
    assert (found["waiting"][0]["ghost"], found["waiting"][0]["stopped"]) == (False, True)


def test_slots_and_leases(folder: Path, children: ExitStack, say: Say) -> None:
    children.enter_context(holder(str(folder), 3, permits=2, lease=1000))
    children.enter_context(holder(str(folder), 3, lease=1e-6))
    title, header, _, first, second = say("who")[1].splitlines()
    assert title.rstrip() == "g: 3 of 3 inside, 0 waiting"
    assert "lease left" in header
    assert "state" not in header
    assert first.split()[0] == "0,1"
    assert first.rstrip().endswith(" s")
    assert second.split()[0] == "2"
    assert second.rstrip().endswith(" over")


def test_text_of_others_is_printed_without_control_characters(folder: Path, children: ExitStack, say: Say) -> None:
    children.enter_context(holder(str(folder), 1, "[red]gpu", note="a\x1b[31mb\nc\u202e [bold]d"))
    out = say("who")[1]
    assert "[red]gpu: 1 of 1 inside" in out
    assert "a?[31mb c? [bold]d" in out
    assert who(say)["gates"][0]["inside"][0]["note"] == "a\x1b[31mb\nc\u202e [bold]d"


def test_a_narrow_table_keeps_pids_and_one_line_each(
    folder: Path, children: ExitStack, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = children.enter_context(holder(str(folder), 1, note="long " * 30))
    for columns, shown in (("50", ()), ("70", ("user",)), ("100", ("user", "fence"))):
        monkeypatch.setenv("COLUMNS", columns)
        _, header, _, row = say("who")[1].splitlines()
        assert tuple([name for name in ("user", "fence") if name in header]) == shown
        assert str(one.pid) in row
        assert row.rstrip().endswith("…")


@pytest.mark.parametrize(("where", "code", "err"), [
    ("> /dev/full", 1, "fairgate: cannot write the output: No space left on device\n"),
    (">&-", 0, ""),
    ("2>&-", 0, ""),
    ("<&-", 0, ""),
])  # fmt: skip
@pytest.mark.parametrize("how", ["", "--json", "--help"])
def test_streams_that_are_full_or_closed(where: str, code: int, err: str, how: str) -> None:
    done = run("-c", f'exec "$0" -m fairgate who {how} {where}', sys.executable, command=["/bin/sh"])
    assert (done.returncode, done.stderr) == (code, err)


def test_what_does_not_fit_on_the_screen_is_counted() -> None:
    console = Console(width=20, height=4, file=StringIO())
    for lines, expected in ((4, "0\n1\n2\n3\n"), (6, "0\n1\n2\n+3 more lines")):
        with console.capture() as captured:
            console.print(Fitted("\n".join(map(str, range(lines)))), end="")
        assert "\n".join([each.rstrip() for each in captured.get().split("\n")]) == expected


# break.


def test_break_ends_the_command_and_lets_the_next_one_in(say: Say) -> None:
    first = start("run", "report", "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(first) == "in"
    second = start("run", "report", "--", "echo", "in")
    until_waiting("report")
    assert "--yes" in say("break", "report", "0")[2]
    code, out, err = say("break", "report", "0", "--yes")
    assert (code, err) == (0, "")
    assert out.startswith(f"slot 0 of gate report is free again: pid {first.pid} was notified")
    assert line(second) == "in"
    _, complaint = first.communicate(timeout=SOON)
    assert first.returncode == 128 + signal.SIGTERM
    assert complaint.startswith(b"fairgate: gate report: the permit for slot 0 was lost: it was revoked")
    assert end(second) == 0


def test_break_of_a_command_whose_run_was_killed_leaves_its_processes(say: Say) -> None:
    first = start("run", "report", "--", "sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $! $$; wait")
    behind, command = line(first).split()
    watched = Watched(int(behind))
    first.kill()
    first.communicate()
    second = start("run", "report", "--", "echo", "in")
    until_waiting("report")
    assert f"group {command}" in say("who")[1]
    code, out, err = say("break", "report", "0", "--yes")
    assert (code, err) == (0, "")
    assert f"process group {command} was not notified and may still be running" in out
    assert line(second) == "in"
    assert end(second) == 0
    assert not watched.has_ended(0)
    os.kill(watched.pid, signal.SIGKILL)
    watched.close()


def test_break_of_a_stopped_holder_of_two_slots(folder: Path, children: ExitStack, say: Say) -> None:
    one = children.enter_context(holder(str(folder), 3, permits=2))
    one.stop()
    assert say("break", "g", "1", "--yes") == (
        0,
        f"slots 0, 1 of gate g are free again: pid {one.pid} is stopped; it will notice when it continues\n",
        "",
    )
    assert who(say, "g")["gates"][0]["inside"] == []


@pytest.mark.parametrize("answer", ["y", "n"])
def test_break_asks_first(folder: Path, children: ExitStack, answer: str, say: Say) -> None:
    one = children.enter_context(holder(str(folder), 1, note="./train.sh"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fairgate", "break", "g", "0"])
    seen = read_until(terminal, b"Revoke its permit?")
    assert f"slot 0 of gate g is taken by pid {one.pid}: ./train.sh".encode() in seen
    os.write(terminal, answer.encode() + b"\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (answer == "n")
    os.close(terminal)
    assert len(who(say, "g")["gates"][0]["inside"]) == (answer == "n")


def test_break_revokes_only_what_it_asked_about(folder: Path, children: ExitStack) -> None:
    first = children.enter_context(holder(str(folder), 1))
    second = children.enter_context(waiter(str(folder), 1))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fairgate", "break", "g", "0"])
    read_until(terminal, b"Revoke its permit?")
    first.say("leave")
    assert second.hear() == "(0,)"
    os.write(terminal, b"y\n")
    read_until(terminal, f"pid {first.pid} has left slot 0 of gate g meanwhile: nothing was revoked".encode())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    os.close(terminal)
    assert gate("g").inside[0].request.pid == second.pid


def read_until(terminal: int, mark: bytes) -> bytes:
    seen = b""
    while mark not in seen:
        assert select.select([terminal], [], [], SOON)[0], f"nothing after {seen!r}"
        seen += os.read(terminal, 4096)
    return seen


def test_break_without_a_holder_is_an_error(folder: Path, children: ExitStack, say: Say) -> None:
    children.enter_context(holder(str(folder), 2, "report"))
    free = "fairgate: nobody is in slot 1 of gate report\n"
    assert say("break", "report", "1", "--yes") == (1, "", free)
    none = "fairgate: gate report has no slot 2: its slots are 0 to 1\n"
    assert say("break", "report", "2", "--yes") == (2, "", none)
    assert say("break", "other", "1", "--yes") == (2, "", f"fairgate: there is no gate other here ({folder})\n")
    assert not (folder / "other.gate").exists()


# resize.


def test_resize_lets_waiters_in_and_shrinking_waits_for_holders(folder: Path, children: ExitStack, say: Say) -> None:
    first = children.enter_context(holder(str(folder), 1))
    second = children.enter_context(waiter(str(folder), 1))
    assert say("resize", "g", "2") == (0, "gate g: k is now 2\n", "")
    assert second.hear() == "(1,)"
    for k in (1, 2):  # the one that the gate was opened with, and the new one
        children.enter_context(waiter(str(folder), k)).end()
    assert say("resize", "g", "1") == (0, "gate g: k is now 1; 2 are still inside\n", "")
    third = children.enter_context(waiter(str(folder), 1))
    first.end()
    assert third.is_silent()
    second.end()
    assert third.hear() == "(0,)"


def test_resize_refuses_what_cannot_be(folder: Path, children: ExitStack, say: Say) -> None:
    children.enter_context(holder(str(folder), 3, permits=2))
    large = children.enter_context(waiter(str(folder), 3, permits=3))
    assert say("resize", "g", "2") == (
        2,
        "",
        f"fairgate: gate g: k cannot be 2 while pid {large.pid} waits for 3 permits\n",
    )
    assert say("resize", "g", "0")[::2] == (2, "fairgate: k must be a whole number from 1 to 1000, not 0\n")
    assert say("resize", "other", "2")[::2] == (2, f"fairgate: there is no gate other here ({folder})\n")
    assert say("resize", "g", "many")[0] == 2
    assert who(say, "g")["gates"][0]["k"] == 3


# peer.


def test_a_standing_peer_keeps_k(say: Say) -> None:
    peer = start("peer", "gpu", "cpu", "-k", "3")
    assert line(peer) == f"pid {peer.pid} keeps gpu, cpu open with k=3 until a signal ends it"
    assert [(one["name"], one["k"], one["pinned_by"]) for one in who(say)["gates"]] == [
        ("cpu", 3, [peer.pid]),
        ("gpu", 3, [peer.pid]),
    ]
    assert f"gpu: 0 of 3 inside, 0 waiting (kept open by pid {peer.pid})" in say("who")[1]
    assert run("run", "gpu", "-k", "3", "--", "echo", "in").stdout == "in\n"
    assert run("run", "gpu", "-k", "2", "--", "echo", "in").returncode == 2
    assert end_by(signal.SIGTERM, peer) == (0, "SIGTERM: leaving\n", "")
    assert gate("gpu") is None
    assert run("run", "gpu", "-k", "2", "--", "echo", "in").stdout == "in\n"


def test_a_killed_standing_peer_keeps_nothing(folder: Path) -> None:
    peer = start("peer", "gpu", "-k", "3")
    line(peer)
    peer.kill()
    peer.communicate()
    assert gate("gpu") is None
    assert run("run", "gpu", "-k", "2", "--", "echo", "in").stdout == "in\n"
    assert not list(folder.glob("*.bell"))


def test_a_standing_peer_refuses_another_k(folder: Path, children: ExitStack) -> None:
    children.enter_context(holder(str(folder), 3, "gpu"))
    done = run("peer", "gpu", "-k", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fairgate: gate gpu is open with k=3")


def test_a_standing_peer_notices_that_its_gate_was_removed(folder: Path) -> None:
    peer = start("peer", "gpu", "-k", "3")
    line(peer)
    (folder / "gpu.gate").unlink()
    assert peer.communicate(timeout=SOON) == (b"", b"fairgate: gate gpu: its file was removed\n")
    assert peer.returncode == 1


def test_metrics_of_all_gates_of_the_host(folder: Path, tmp_path: Path, children: ExitStack) -> None:
    path = str(tmp_path / "lab.gate")
    peer = start("peer", path, "-k", "3", "--metrics", "0")
    port = int(line(peer).removeprefix("metrics are at http://127.0.0.1:").removesuffix("/metrics"))
    assert line(peer) == (
        f"pid {peer.pid} keeps {path} open with k=3 and serves the metrics of this host's gates until a signal ends it"
    )
    children.enter_context(holder(str(folder), 2, "gpu"))
    found = scrape(port)
    assert [found[name, "gpu"] for name in ("k", "inside", "entries_total")] == [2, 1, 1]
    assert [found[name, path] for name in ("k", "inside", "entries_total")] == [3, 0, 0]
    assert end_by(signal.SIGINT, peer) == (130, "SIGINT: leaving\n", "")


def test_a_peer_that_only_serves_metrics(folder: Path) -> None:
    peer = start("peer", "--metrics", "0")
    port = int(line(peer).removeprefix("metrics are at http://127.0.0.1:").removesuffix("/metrics"))
    assert line(peer) == f"pid {peer.pid} serves the metrics of this host's gates until a signal ends it"
    assert scrape(port) == {("unusable_gates", ""): 0}
    assert end_by(signal.SIGTERM, peer) == (0, "SIGTERM: leaving\n", "")


@pytest.mark.parametrize(("words", "why"), [
    ((), "nothing to do: name a gate to keep open, or use --metrics PORT"),
    (("gpu", "--journal", "file"), "journals are for clusters: a gate of one host sends no messages"),
    (("gpu", "--protocol", "fair_k"), "--protocol is only for clusters: create one with --create --listen unix:PATH"),
    (("gpu", "-k", "0"), "k must be a whole number from 1 to 1000, not 0"),
])  # fmt: skip
def test_what_a_peer_of_one_host_cannot_do(words: tuple[str, ...], why: str, folder: Path, say: Say) -> None:
    code, out, err = say("peer", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"fairgate: {why}")
    assert not folder.exists()


# top.


def test_top_needs_a_terminal(say: Say) -> None:
    assert say("top") == (2, "", "fairgate: top needs a terminal: use fairgate who instead\n")


@pytest.mark.parametrize(("key", "code"), [(b"q", 0), (b"\x03", 130)])
def test_top_shows_what_changes_and_ends_cleanly(key: bytes, code: int, folder: Path, children: ExitStack) -> None:
    (folder / "bad.gate").write_bytes(b"noise")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fairgate", "top"])
    seen = read_until(terminal, b"no gate is in use here")
    seen += read_until(terminal, b"bad.gate: it is cut off")
    children.enter_context(holder(str(folder), 1, "report"))
    seen += read_until(terminal, b"report: 1 of 1 inside")
    os.write(terminal, key)
    seen += read_until(terminal, b"\x1b[?1049l")  # left the alternate screen
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert b"Traceback" not in seen
    os.close(terminal)
