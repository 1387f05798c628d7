"""What a peer tells systemd (Type=notify)."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate.live.cluster_options import ClusterOptions
from fairgate.live.directory import ClusterDirectory
from fairgate.live.inspect import look
from tests.live.commands import SOON, line, start, until
from tests.live.guests import GuestHost, ended

in_a_folder = pytest.mark.parametrize("manager", ["path"], indirect=True)


class Manager:
    """The socket of a service manager."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0"))
        self.socket.settimeout(SOON)
        self.env = {"NOTIFY_SOCKET": address}

    def hear(self) -> dict[str, str]:
        """The next message."""
        rows = self.socket.recv(4096).decode().splitlines()
        return {name: value for name, _, value in [row.partition("=") for row in rows]}

    def hear_status(self, *wanted: str) -> dict[str, str]:
        """The next message whose status has these words."""
        while not all(word in (said := self.hear()).get("STATUS", "") for word in wanted):
            pass
        return said


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    tmp_path.chmod(0o700)
    found = Manager(f"{tmp_path}/notify" if request.param == "path" else f"@fairgate-test-{os.getpid()}")
    with found.socket:
        yield found


def test_a_peer_of_a_host_is_ready_when_it_keeps_its_gates(manager: Manager, tmp_path: Path) -> None:
    env = os.environ | manager.env | {"FAIRGATE_DIR": str(tmp_path / "run")}
    process = start("peer", "gpu", "-k", "3", env=env)
    with ended([process]):
        assert manager.hear() == {"READY": "1", "STATUS": "keeps gpu open with k=3"}
        assert (tmp_path / "run" / "gpu.gate").exists()
        process.send_signal(signal.SIGTERM)
        assert manager.hear() == {"STOPPING": "1", "STATUS": "SIGTERM: leaving"}
        assert process.wait(SOON) == 0


@in_a_folder
def test_a_peer_of_a_cluster_is_ready_when_guests_can_enter_and_tells_that_it_drains(
    manager: Manager, tmp_path: Path
) -> None:
    host = GuestHost(tmp_path)
    host.env |= manager.env
    peer = host.start_peer("--drain", "1h")
    with ended([peer]):
        assert manager.hear() == {"READY": "1", "STATUS": "1 peer in cluster fairgate, guarantee: lease"}
        guest = host.inside("gpu")
        with ended([guest]):
            peer.send_signal(signal.SIGTERM)
            assert manager.hear() == {"STOPPING": "1", "STATUS": "SIGTERM: draining, 1 guest inside"}
            assert peer.poll() is None
            guest.communicate(b"\n", timeout=SOON)
        assert manager.hear() == {"STOPPING": "1", "STATUS": "SIGTERM: leaving"}
        assert peer.wait(SOON) == 0


@in_a_folder
def test_a_peer_of_a_cluster_tells_of_members_and_of_a_lost_majority(manager: Manager, tmp_path: Path) -> None:
    host = GuestHost(tmp_path)
    host.env |= manager.env
    others = [host.start_peer("--lease", "4")]
    with ended(others):
        assert manager.hear()["READY"] == "1"
        for number in (2, 3):
            env = os.environ | {"FAIRGATE_DIR": f"{tmp_path}/{number}"}
            others.append(start("peer", "--join", host.seed, env=env))
            manager.hear_status(f"{number} peers in cluster fairgate, guarantee: lease")
        until(lambda: look(ClusterDirectory(ClusterOptions((host.seed,)))).cluster.survives == 1)  # all three vote
        for other in others[1:]:
            other.send_signal(signal.SIGSTOP)
        assert manager.hear_status("guarantee: no majority").keys() == {"STATUS"}


@pytest.mark.parametrize("address", ["", "/none/socket", "vsock:2:1", "@" + "x" * 200])
def test_a_manager_that_cannot_be_told_is_no_problem(address: str, tmp_path: Path) -> None:
    env = os.environ | {"FAIRGATE_DIR": str(tmp_path / "run"), "NOTIFY_SOCKET": address}
    process = start("peer", "gpu", env=env)
    with ended([process]):
        assert "keeps gpu open" in line(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON) == 0
