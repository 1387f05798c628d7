"""Clusters that lose peers: real processes that are killed, stopped, restarted, or leave. Leases are short here."""

from __future__ import annotations

import json
import os
import runpy
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairgate import sync
from fairgate.errors import BadInput, PermitLost
from fairgate.live.saved import SavedCluster, StateFolder
from tests.live.commands import end, end_by, inside, line, run, start, until, until_waiting
from tests.live.test_hosts import free_port

FENCED = Path(__file__).parents[2] / "examples" / "fenced.py"
HERE = "127.0.0.1"
LEASE = 2.0
SOON = 20.0
Process = subprocess.Popen[bytes]


class Host:
    """A standing peer with a state directory of its own, as on a host of its own. Always the same command starts it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.listen = f"{HERE}:{free_port()}"
        self.words = ("peer", "--listen", self.listen, "--state", str(folder), *words)
        self.start()

    def start(self) -> None:
        self.process: Process = start(*self.words)
        assert self.listen in line(self.process)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str, str]:
        return end_by(signal.SIGTERM, self.process)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture
def hosts(folder: Path) -> Iterator[list[Host]]:
    """Three standing peers, which all vote."""
    first = Host(folder / "0", "--create", "--lease", str(LEASE))
    found = [first, *[Host(folder / str(number), "--join", first.listen) for number in (1, 2)]]
    until(lambda: status(first.listen)["survives"] == 1)
    yield found
    for host in found:
        host.kill()


def status(*seeds: str) -> Any:
    joins = [word for seed in seeds for word in ("--join", seed)]
    return json.loads(run("peer", "status", "--json", *joins).stdout)


def enters(gate: sync.Semaphore) -> bool:
    """Whether a permit is granted and stays. On a busy machine, it may be lost at once."""
    try:
        gate.hold(SOON).release()
    except PermitLost:
        return False
    return True


# Deaths.


def test_the_slot_of_a_killed_holder_is_free_within_a_lease(hosts: list[Host]) -> None:
    seed = hosts[0].listen
    holder = inside("report", "--join", seed)
    waiter = start("run", "report", "--join", seed, "--", "echo", "in")
    until_waiting("report", 1, seed)
    killed = time.monotonic()
    holder.kill()
    assert line(waiter) == "in"
    assert 0.5 < time.monotonic() - killed < LEASE + 1  # not at once: it might only have been cut off
    holder.communicate()
    assert end(waiter) == 0


def test_a_killed_waiter_holds_nobody_up(hosts: list[Host]) -> None:
    """The token is accounted for, so nothing waits for the lease of the dead."""
    seed = hosts[0].listen
    with sync.join(seed) as one, sync.join(seed) as two:
        permit = one.lock("report").hold(SOON)
        dead = start("run", "report", "--join", seed, "--", "true")
        until_waiting("report", 1, seed)
        dead.kill()
        dead.communicate()
        until(lambda: len(one.engine.members.peers) == 5)
        permit.release()
        began = time.monotonic()
        with two.lock("report").hold(SOON):
            assert time.monotonic() - began < 0.5


def test_a_leaving_peer_hands_over_at_once(hosts: list[Host]) -> None:
    seed = hosts[0].listen
    with sync.join(seed) as other:
        leaving = sync.join(seed)
        permit = leaving.lock("report").hold(SOON)
        leaving.close()
        began = time.monotonic()
        with other.lock("report").hold(SOON):
            assert time.monotonic() - began < 0.5
            assert permit.lost


def test_any_one_of_three_may_die(hosts: list[Host]) -> None:
    """Also the one that leads, which is the creator at first."""
    with sync.join(hosts[1].listen) as peer:
        hosts[0].kill()
        with sync.join(hosts[2].listen) as newcomer, newcomer.lock("report").hold(SOON), peer.lock("other").hold(SOON):
            pass
        assert peer.lock("report").statistics().guarantee == "lease"


# Minorities.


def test_a_minority_grants_nothing_and_says_so(hosts: list[Host], caplog: pytest.LogCaptureFixture) -> None:
    with sync.join(hosts[2].listen) as peer:
        gate = peer.lock("report")
        permit = gate.hold(SOON)
        began = time.monotonic()
        for host in hosts[:2]:
            host.process.send_signal(signal.SIGSTOP)
        until(lambda: gate.statistics().guarantee == "no majority")
        assert time.monotonic() - began < 1.5
        assert "only 1 of 3 voters of the cluster answer: nobody is let in until a majority does" in caplog.text
        until(lambda: not permit.valid)
        assert time.monotonic() - began < LEASE + 0.5
        with pytest.raises(PermitLost, match="cannot reach a majority of the voters"):
            permit.check()
        permit.release()
        assert gate.acquire(timeout=0.3) is None
        found = run("who", "--join", hosts[2].listen).stdout
        assert "guarantee: no majority; nobody is let in, because no majority of the voters answers" in found
        told = run("peer", "status", "--join", hosts[2].listen)
        assert told.returncode == 1
        assert "it does not answer" in told.stdout
        with pytest.raises(BadInput, match=f"{hosts[2].listen}: connected, but not let in: most voters of the cluster"):
            sync.join(hosts[2].listen, join_timeout=0.5)
        for host in hosts[:2]:
            host.process.send_signal(signal.SIGCONT)
        until(lambda: enters(gate))
        assert gate.statistics().guarantee == "lease"


def test_abandoning_the_majority(hosts: list[Host], folder: Path) -> None:
    """Refused while the majority answers. Afterwards fences go on rising, and the others join again."""
    with sync.join(hosts[2].listen) as peer:
        with peer.lock("report").hold(SOON) as permit:
            before = permit.fence or 0
        hosts[2].kill()
        words = ("abandon-majority", "--state", str(folder / "2"), "--yes")
        done = run(*words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "answers: it needs no such help" in done.stderr
        cluster = status(hosts[0].listen)["id"]
        for host in hosts[:2]:
            host.kill()
        assert run("abandon-majority", "--state", str(folder / "2")).stderr.endswith("use --yes\n")
        done = run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        hosts[2].start()
        hosts[0].start()
        found = status(hosts[2].listen, hosts[0].listen)
        assert (found["id"], found["survives"]) == (cluster, 0)
        with peer.lock("report").hold(SOON) as permit:  # it has found its cluster again by itself
            assert (permit.fence or 0) > before


# Pauses.


STOPPED = """
import runpy, sys
from fairgate import PermitLost, sync

seed, example, file = sys.argv[1:]
write = runpy.run_path(example)["write"]
with sync.join(seed) as peer:
    gate = peer.lock("report")
    permit = gate.hold(20)
    print("in", flush=True)
    sys.stdin.readline()  # stopped and continued meanwhile
    print("has written" if write(file, "late", permit.fence) else "was refused", flush=True)
    try:
        permit.check()
        print("valid", flush=True)
    except PermitLost as lost:
        print("lost", lost, flush=True)
    with gate.hold(20):
        print("in again", flush=True)
"""


def test_a_member_that_was_stopped_finds_its_permit_lost(hosts: list[Host], folder: Path) -> None:
    """For three leases. Even if it does not look, its late write is refused, because somebody else has written."""
    seed, file = hosts[0].listen, str(folder / "report.db")
    with sqlite3.connect(file) as database:
        database.execute("create table report (text, fence integer)")
        database.execute("insert into report values ('nobody was here', 0)")
    database.close()
    stopped = start(seed, str(FENCED), file, command=[sys.executable, "-c", STOPPED])
    assert line(stopped) == "in"
    with sync.join(seed) as peer:
        stopped.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
        began = time.monotonic()
        with peer.lock("report").hold(SOON) as permit:
            assert 0.5 < time.monotonic() - began < LEASE + 1.5
            assert runpy.run_path(str(FENCED))["write"](file, "in time", permit.fence)
            time.sleep(max(0.0, began + 3 * LEASE - time.monotonic()))
            assert stopped.stdin is not None
            stopped.stdin.write(b"\n")
            stopped.send_signal(signal.SIGCONT)
            assert line(stopped) == "was refused"
            assert line(stopped).startswith("lost the permit for gate report")
        assert line(stopped) == "in again"  # under another id
    assert end(stopped) == 0


def test_a_stopped_command_is_ended_when_its_peer_has_lost_the_lease(hosts: list[Host]) -> None:
    seed = hosts[0].listen
    holder = start("run", "report", "--join", seed, "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(holder) == "in"
    holder.send_signal(signal.SIGSTOP)
    with sync.join(seed) as peer, peer.lock("report").hold(SOON):
        holder.send_signal(signal.SIGCONT)
        holder.communicate(timeout=SOON)
        assert holder.returncode in (128 + signal.SIGTERM, 128 + signal.SIGKILL)  # the slot is taken: there is no grace


# Restarts.


@pytest.mark.parametrize("times", [5, pytest.param(50, marks=pytest.mark.stress)])
def test_a_restarted_creator_joins_its_cluster(hosts: list[Host], times: int) -> None:
    """Always by the same command, with --create in it."""
    cluster = status(hosts[1].listen)["id"]
    for _ in range(times):
        hosts[0].kill()
        hosts[0].start()
        found = status(hosts[0].listen)
        assert (found["id"], len(found["members"])) == (cluster, 3)
        until(lambda: status(hosts[0].listen)["survives"] == 1)


def test_a_creator_without_others_goes_on_after_the_leases(folder: Path) -> None:
    only = Host(folder / "0", "gpu", "--create", "--lease", "1")
    with sync.join(only.listen) as peer:
        permit = peer.lock("report").hold(SOON)
        cluster, before = status(only.listen)["id"], permit.fence or 0
        only.kill()
        restarted = time.monotonic()
        only.start()
        assert time.monotonic() - restarted > 1
        with peer.lock("report").hold(SOON) as again:
            assert not permit.valid
            assert (again.fence or 0) > before
        assert status(only.listen)["id"] == cluster
    assert only.end()[:2] == (0, "SIGTERM: leaving\n")
    restarted = time.monotonic()
    only.start()  # it left, so there are no leases to wait for
    assert status(only.listen)["id"] == cluster
    only.kill()


def test_one_standing_peer_per_host(hosts: list[Host]) -> None:
    done = run(*hosts[0].words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"a standing peer of this host is in this cluster already (pid {hosts[0].process.pid}" in done.stderr


def test_two_clusters_with_one_name_are_told_apart(hosts: list[Host], folder: Path) -> None:
    rival = Host(folder / "rival", "--create")
    ids = [status(seed)["id"] for seed in (hosts[0].listen, rival.listen)]
    assert ids[0] != ids[1]
    errors = [error_of_joining(hosts[0].listen, rival.listen) for _ in range(20)]
    assert any("is in another cluster with the name fairgate" in error for error in errors)
    state = StateFolder(str(folder / "other"))
    state.save(SavedCluster(ids[0], 1, 1, 1, hosts[0].listen, ()))
    state.close()
    done = run("peer", "--join", rival.listen, "--state", str(folder / "other"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is in another cluster with the name fairgate" in done.stderr
    rival.kill()


def error_of_joining(*seeds: str) -> str:
    """Empty if there is none: one of them answered before the other was connected."""
    try:
        sync.join(*seeds).close()
    except BadInput as wrong:
        return str(wrong)
    return ""
