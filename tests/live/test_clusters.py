"""`fairgate run`, `who`, `break` and `peer` in a cluster: real processes connected by TCP."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.commands import (
    SOON,
    Watched,
    end,
    end_by,
    inside,
    line,
    run,
    standing,
    start,
    until_waiting,
)
from tests.live.test_hosts import free_port

HERE = "127.0.0.1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / "run"


@pytest.fixture
def seed() -> Iterator[str]:
    """The address of a peer that creates a cluster, and leaves at the end of the test."""
    keeper, address = standing("--create", "--listen", f"{HERE}:0")
    yield address
    assert end_by(signal.SIGTERM, keeper) == (0, "SIGTERM: leaving\n", "")


def peers(seed: str) -> int:
    last = run("who", "--join", seed).stdout.splitlines()[-1]
    return int(last.split()[0])


# Entering.


def test_commands_of_a_cluster_exclude_each_other(seed: str, tmp_path: Path) -> None:
    script = f"echo + >> {tmp_path}/log; sleep 0.01; echo - >> {tmp_path}/log"
    processes = [start("run", "report", "--join", seed, "--", "sh", "-c", script) for _ in range(4)]
    for process in processes:
        assert process.communicate(timeout=SOON) == (b"", b"")
        assert process.returncode == 0
    assert (tmp_path / "log").read_text() == "+\n-\n" * 4
    assert peers(seed) == 1


def test_a_gate_of_a_cluster_is_independent_of_a_gate_of_this_host(seed: str) -> None:
    holder = inside("report", "--join", seed)
    assert run("run", "report", "-n", "--", "echo", "in").stdout == "in\n"
    assert run("run", "report", "-n", "--join", seed, "--", "echo", "in").returncode == 1
    assert "no gate is in use here" in run("who").stdout
    end(holder)
    assert run("run", "report", "-n", "--join", seed, "--", "echo", "in").stdout == "in\n"


def test_another_k_is_refused_by_the_peer_that_keeps_the_gate_open(seed: str) -> None:
    other, address = standing("gpu", "-k", "3", "--join", seed)
    done = run("run", "gpu", "-k", "2", "--join", address, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("fairgate: gate gpu is open with k=3, not k=2")
    assert end_by(signal.SIGTERM, other)[0] == 0


# Inspecting.


def test_who_shows_the_holder_the_queue_and_the_guarantee(seed: str) -> None:
    holder = inside("report", "--join", seed)
    waiters = []
    for count in (1, 2):
        waiters.append(start("run", "report", "--join", seed, "--", "echo", f"number {count}"))
        found = until_waiting("report", count, seed)
    assert [(one.pid, one.slot) for one in found.inside] == [(holder.pid, 0)]
    assert [one.pid for one in found.waiting] == [waiter.pid for waiter in waiters]
    rows = run("who", "--join", seed).stdout.splitlines()
    assert rows[0].rstrip() == "report: 1 of 1 inside, 2 waiting (bv95)"
    assert [row.split()[3] for row in rows if "waits" in row] == [str(waiter.pid) for waiter in waiters]
    assert rows[-1].rstrip() == "4 peers of cluster fairgate, guarantee: lease; survives 0 more failures"
    end(holder)
    assert [line(waiter) for waiter in waiters] == ["number 1", "number 2"]
    assert [end(waiter) for waiter in waiters] == [0, 0]


def test_break_ends_the_command_on_the_other_host(seed: str) -> None:
    holder = start("run", "report", "--join", seed, "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(holder) == "in"
    waiter = start("run", "report", "--join", seed, "--", "echo", "in")
    until_waiting("report", 1, seed)
    done = run("break", "report", "0", "--yes", "--join", seed)
    assert (done.returncode, done.stderr) == (0, "")
    assert line(waiter) == "in"
    assert holder.communicate(timeout=SOON)[1].startswith(b"fairgate: gate report: the permit for slot 0 was lost")
    assert holder.returncode == 128 + signal.SIGTERM
    assert end(waiter) == 0


def test_the_creator_may_leave() -> None:
    creator, seed = standing("--create", "--listen", f"{HERE}:0")
    other, address = standing("gpu", "--join", seed)
    assert end_by(signal.SIGTERM, creator) == (0, "SIGTERM: leaving\n", "")
    assert "gpu: 0 of 1 inside" in run("who", "--join", seed, "--join", address).stdout
    assert run("run", "gpu", "--join", address, "--", "true").returncode == 0
    assert end_by(signal.SIGTERM, other) == (0, "SIGTERM: leaving\n", "")


# What outlives the command.


def test_run_stays_until_background_processes_of_the_command_end(seed: str) -> None:
    """In a cluster nobody else would keep the slot."""
    holder = start("run", "report", "--join", seed, "--", "sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!; exit 7")
    behind = Watched(int(line(holder)))
    waiter = start("run", "report", "--join", seed, "--", "echo", "in")
    found = until_waiting("report", 1, seed)
    assert [one.pid for one in found.inside] == [holder.pid]
    holder.send_signal(signal.SIGTERM)  # forwarded to the command
    assert behind.has_ended()
    behind.close()
    holder.communicate(timeout=SOON)
    assert holder.returncode == 7
    assert line(waiter) == "in"
    assert end(waiter) == 0


def test_the_slot_of_a_killed_holder_is_free_after_its_lease() -> None:
    creator, seed = standing("--create", "--listen", f"{HERE}:0", "--lease", "2")
    holder = inside("report", "--join", seed)
    waiter = start("run", "report", "--join", seed, "--", "echo", "in")
    until_waiting("report", 1, seed)
    killed = time.monotonic()
    holder.kill()
    assert line(waiter) == "in"
    assert time.monotonic() - killed < 3
    holder.communicate()
    assert end(waiter) == 0
    assert end_by(signal.SIGTERM, creator)[0] == 0


# Ctrl-C.


def test_ctrl_c_ends_a_standing_peer() -> None:
    keeper, _ = standing("--create", "--listen", f"{HERE}:0")
    assert end_by(signal.SIGINT, keeper) == (130, "SIGINT: leaving\n", "")


def test_ctrl_c_ends_a_holder_and_a_waiter(seed: str) -> None:
    holder = start("run", "report", "--join", seed, "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(holder) == "in"
    waiter = start("run", "report", "--join", seed, "--", "echo", "in")
    until_waiting("report", 1, seed)
    assert end_by(signal.SIGINT, waiter) == (130, "", "")
    assert end_by(signal.SIGINT, holder) == (130, "", "")
    assert peers(seed) == 1
    assert run("run", "report", "-n", "--join", seed, "--", "echo", "in").stdout == "in\n"


@pytest.mark.parametrize(
    ("words", "out"),
    [(("run", "x", "--"), ""), (("peer",), "SIGINT: leaving\n"), (("who",), ""), (("break", "x", "0", "--yes"), "")],
)
def test_ctrl_c_while_joining(words: tuple[str, ...], out: str) -> None:
    """Joins a port that accepts and never answers: once connected, the command is certainly waiting."""
    with socket.create_server((HERE, 0)) as listener:
        listener.settimeout(SOON)
        join = ("--join", f"{HERE}:{listener.getsockname()[1]}", "--join-timeout", "600")
        place = words.index("--") if "--" in words else len(words)
        process = start(*words[:place], *join, *words[place:], *(("true",) if "--" in words else ()))
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1)  # its hello
            assert end_by(signal.SIGINT, process) == (130, out, "")


# Without TLS, and partly off this host.


def test_a_peer_with_an_undiallable_address_is_refused(seed: str) -> None:
    """The cluster has neither keys nor --insecure, so its peers may not dial addresses off this host."""
    done = run("peer", "--join", seed, "--listen", f"{HERE}:0", "--advertise", "198.51.100.7:7400", "--insecure")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("fairgate: refused by the cluster: 198.51.100.7:7400 is not a loopback address")
    assert peers(seed) == 1


def test_a_peer_that_may_not_dial_the_members_does_not_join() -> None:
    port = free_port()
    keeper, _ = standing("--create", "--listen", f"{HERE}:{port}", "--advertise", "198.51.100.7:7400", "--insecure")
    done = run("run", "report", "--join", f"{HERE}:{port}", "--", "true")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("fairgate: 198.51.100.7:7400 is not a loopback address")
    found = run("who", "--join", f"{HERE}:{port}", "--insecure").stdout
    assert "no gate is open here" in found
    assert "1 peer of cluster fairgate, guarantee: lease; survives 0 more failures" in found
    assert end_by(signal.SIGTERM, keeper) == (0, "SIGTERM: leaving\n", "")
