"""Finding a cluster by its name with mDNS, on the loopback interface."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairgate import BadInput, sync
from fairgate.live.mdns import advertise, find
from tests.live.commands import end_by, run, standing

HERE = "127.0.0.1"
GROUP = "224.0.0.251"
SOON = 30
LAB, OTHER = f"lab{os.getpid()}", f"other{os.getpid()}"  # unique, because all tests on this host share the loopback


def can_multicast() -> bool:
    """Whether the loopback can multicast; in some containers it cannot."""
    with socket.socket(type=socket.SOCK_DGRAM) as hears, socket.socket(type=socket.SOCK_DGRAM) as says:
        try:
            hears.bind(("", 0))
            member = socket.inet_aton(GROUP) + socket.inet_aton(HERE)
            hears.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            says.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(HERE))
            says.sendto(b"?", (GROUP, hears.getsockname()[1]))
            hears.settimeout(1)
            return hears.recv(1) == b"?"
        except OSError:
            return False


multicast = pytest.mark.skipif(not can_multicast(), reason="no multicast on this loopback")


@multicast
def test_a_cluster_is_found_by_its_name_and_joined() -> None:
    with (
        sync.join(listen=f"{HERE}:0", cluster=LAB) as keeper,
        advertise(OTHER, "10.0.0.5:7400", [HERE]),
        advertise(LAB, keeper.engine.identity.address, [HERE]),
    ):
        seeds = find(LAB, SOON, [HERE])
        assert seeds == [keeper.engine.identity.address]
        assert find(OTHER, SOON, [HERE]) == ["10.0.0.5:7400"]
        with sync.join(*seeds, cluster=LAB) as guest, guest.lock("report").hold(timeout=SOON):
            assert len(keeper.lock("report").holders()) == 1


@multicast
def test_the_commands_find_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that listens on the loopback uses mDNS there."""
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    words = ("--mdns", "--cluster", f"cli{LAB}", "--listen", f"{HERE}:0")
    keeper, _ = standing("--create", *words)
    done = run("run", "report", *words, "--join-timeout", str(SOON), "--", "echo", "in")
    assert (done.stdout, done.stderr) == ("in\n", "")
    assert end_by(signal.SIGTERM, keeper) == (0, "SIGTERM: leaving\n", "")
    done = run("run", "report", *words, "--join-timeout", "0.5", "--", "echo", "in")
    complaint = f"fairgate: no peer of cluster cli{LAB} answered by mDNS within 0.5 s\n"
    assert (done.returncode, done.stderr) == (2, complaint)


@multicast
def test_an_unknown_cluster_is_not_found() -> None:
    with advertise(LAB, f"{HERE}:7400", [HERE]), pytest.raises(BadInput) as refused:
        find("lap", 1, [HERE])
    assert str(refused.value) == "no peer of cluster lap answered by mDNS within 1 s"


@multicast
def test_a_peer_that_left_is_not_found() -> None:
    advertise(LAB, f"{HERE}:7400", [HERE]).close()
    with pytest.raises(BadInput, match=f"no peer of cluster {LAB} answered"):
        find(LAB, 1, [HERE])


def test_a_unix_socket_cannot_be_advertised() -> None:
    with pytest.raises(BadInput, match="must be of the form host:port"):
        advertise(LAB, "unix:/run/fairgate/1.sock", [HERE])


def test_the_missing_package_is_named() -> None:
    lines = "import sys; sys.modules['zeroconf'] = None; import fairgate.live.mdns"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=SOON, check=False)
    assert done.stderr.splitlines()[-1] == (
        "fairgate.errors.BadInput: mDNS needs the package zeroconf: pip install zeroconf"
    )
