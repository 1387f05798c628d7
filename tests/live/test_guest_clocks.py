"""A standing peer and its guests have one clock: what the peer promises means nothing in another time namespace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairgate
from fairgate import sync
from tests.live.commands import SOON, line
from tests.live.guests import GuestHost, end
from tests.room.clocks import new_clock
from tests.room.others import answer, needs_root

pytestmark = needs_root

Processes = list[subprocess.Popen[bytes]]


@pytest.fixture
def processes() -> Iterator[Processes]:
    started: Processes = []
    yield started
    end(*started)


def elsewhere(work: Callable[[], object]) -> str:
    """What a process says that starts its own processes in another time namespace."""

    def shifted() -> object:
        return work() if new_clock() else "not allowed"

    said = answer(shifted)
    if said == "not allowed":
        pytest.skip("this process may not create time namespaces")
    return said


def test_a_guest_with_another_clock_is_refused(tmp_path: Path, processes: Processes) -> None:
    """It would go on for 200 s after the peer's promise to it has ended."""
    host = GuestHost(tmp_path)
    processes.append(peer := host.peer())
    processes.append(host.inside("gpu", "-k", "2"))

    def visit() -> object:
        guest = host.run("gpu", "-k", "2", "--", "echo", "inside")
        out, err = guest.communicate(timeout=SOON)
        return guest.returncode, out, err

    told = (
        f"the standing peer of cluster fairgate on this host (pid {peer.pid}) is in another time namespace, where the"
        " clock of leases differs from the one here: run this process there (nsenter --time), or start a peer for this"
        " namespace and give both of them FAIRGATE_DIR"
    )
    assert elsewhere(visit) == str((2, b"", f"fairgate: {told}\n".encode()))

    def join() -> object:
        if pid := os.fork():
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.environ |= host.env
        with sync.join(host.seed) as peer, pytest.raises(fairgate.BadInput) as refused:
            peer.lock("cpu")
        os._exit(7 if str(refused.value) == told else 1)

    assert elsewhere(join) == "7"
    assert not os.path.exists(f"{host.rooms}/cpu.gate")


@pytest.mark.parametrize("state", ["inside", "idle"])
def test_a_peer_with_another_clock_than_its_guests_is_refused(
    tmp_path: Path, processes: Processes, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = GuestHost(tmp_path)
    processes.append(peer := host.peer())
    monkeypatch.setenv("FAIRGATE_DIR", host.env["FAIRGATE_DIR"])
    with sync.join(host.seed) as guest:
        gate = guest.lock("gpu")
        permit = gate.acquire()
        assert permit is not None
        if state == "idle":
            permit.release()
        peer.kill()
        peer.wait()

        def start() -> object:
            started = host.start_peer()
            _, err = started.communicate(timeout=SOON)
            return started.returncode, err

        said = elsewhere(start)
    assert said.startswith(f"(2, b'fairgate: cannot use {host.rooms}/gpu.gate: processes in another time namespace use")
    assert said.count("\\n") == 1

    def start_alone() -> object:
        started = host.start_peer()
        said = line(started)
        end(started)
        return said

    assert "is a peer" in elsewhere(start_alone)
