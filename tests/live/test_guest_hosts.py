"""Hosts of one cluster in real processes, each with a standing peer and guests. Peers are stopped and restarted."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate.room.calls import is_stopped
from tests.live.commands import SOON, WAITS, line, start, until
from tests.live.guests import GuestHost, ended
from tests.live.test_hosts import free_port

LEASE = 2.0
K = ("-k", "3")
Processes = list[subprocess.Popen[bytes]]


class TcpHost(GuestHost):
    """A host with a directory and a port of its own. Always the same command starts its peer."""

    def __init__(self, folder: Path, processes: Processes, *words: str) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.seed = f"127.0.0.1:{free_port()}"
        self.words = (*words, "--state", f"{folder}/state")
        self.processes = processes
        self.restart()

    def start_peer(self, *words: str) -> subprocess.Popen[bytes]:
        return start("peer", "--listen", self.seed, *self.words, *words, env=self.env)

    def restart(self) -> None:
        self.processes.append(process := self.peer())
        self.standing = process

    def run_note(self, number: int) -> subprocess.Popen[bytes]:
        """A guest that notes its turn, and fails if another one is in its slot."""
        slot, turn = f"{self.folder}/$FAIRGATE_SLOT", f"$FAIRGATE_SLOT $FAIRGATE_FENCE {number}"
        script = f"mkdir {slot} && echo {turn} >> {self.folder}/order && rmdir {slot}"
        return self.run("gpu", *K, "--", "sh", "-c", script)

    def turns(self) -> list[tuple[int, int, int]]:
        """Slot, fence and number of each."""
        lines = (self.folder / "order").read_text().splitlines()
        return [(int(slot), int(fence), int(number)) for slot, fence, number in map(str.split, lines)]


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(process.pid))


@pytest.fixture
def processes() -> Iterator[Processes]:
    started: Processes = []
    with ended(started):
        yield started


@pytest.fixture
def hosts(tmp_path: Path, processes: Processes) -> list[TcpHost]:
    """Three, so that any one of them may be lost."""
    first = TcpHost(tmp_path / "0", processes, "--create", "--lease", str(LEASE))
    return [first, *[TcpHost(tmp_path / str(number), processes, "--join", first.seed) for number in (1, 2)]]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 128 + signal.SIGTERM),
        pytest.param(("--on-lost", "kill"), 128 + signal.SIGKILL, marks=pytest.mark.stress),
        pytest.param(("--on-lost", "warn"), 4, marks=pytest.mark.stress),
    ],
)
def test_the_command_of_a_guest_whose_peer_was_stopped(
    hosts: list[TcpHost], processes: Processes, words: tuple[str, ...], code: int
) -> None:
    """What the peer has promised runs out, and another host gets the slot."""
    processes.append(guest := hosts[1].run("gpu", *words, "--", "sh", "-c", "echo in; read line; exit 4"))
    assert line(guest) == "in"
    stop(hosts[1].standing)
    processes.append(other := hosts[2].run("gpu", "--", "sh", "-c", WAITS))
    assert line(other) == "in"
    if "warn" in words:
        assert guest.poll() is None
        assert guest.stdin is not None
        guest.stdin.write(b"\n")
    assert guest.wait(SOON) == code
    assert guest.stderr is not None
    assert b"gate gpu: the peer of this host has not renewed its lease" in guest.stderr.read()
    hosts[1].standing.send_signal(signal.SIGCONT)
    processes.append(again := hosts[1].run("gpu", "--", "true"))
    hosts[1].until_waiting("gpu", 1)
    other.communicate(timeout=SOON)
    assert again.wait(SOON) == 0


@pytest.mark.parametrize(
    "how", ["stopped", pytest.param("killed", marks=pytest.mark.stress), pytest.param("left", marks=pytest.mark.stress)]
)
def test_guests_wait_through_the_absence_of_their_peer(hosts: list[TcpHost], processes: Processes, how: str) -> None:
    """Three guests inside lose their permits, and twenty that wait keep their order. Nobody is let in twice."""
    host = hosts[1]
    holders = [host.inside("gpu", *K) for _ in range(3)]
    processes += holders
    waiters: Processes = []
    for number in range(20):
        waiters.append(host.run_note(number))
        processes.append(waiters[-1])
        host.until_waiting("gpu", number + 1)
    peer = host.standing
    if how == "stopped":
        stop(peer)
    else:
        peer.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
        peer.communicate(timeout=SOON)
        host.restart()
    assert [holder.wait(SOON) for holder in holders] == [128 + signal.SIGTERM] * 3
    if how == "stopped":  # until its lease is over: before, it could let the next ones in, and would lose their permits
        processes.append(other := hosts[2].run("gpu", *K, "--", "true"))
        assert other.wait(SOON) == 0
        peer.send_signal(signal.SIGCONT)
    assert [waiter.wait(SOON) for waiter in waiters] == [0] * 20
    turns = host.turns()
    assert sorted([number for *_, number in turns]) == list(range(20))
    for slot in range(3):  # fences rise with every grant of a slot
        order = [number for where, _, number in sorted(turns) if where == slot]
        assert order == sorted(order)
