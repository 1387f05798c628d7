"""The units of `fairgate peer --print-unit` in a real systemd: process 1 of namespaces of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.commands import FAIRGATE, SOON, run, start, until
from tests.live.guests import ended

SYSTEMD = Path("/lib/systemd/systemd")
TARGETS = ("sysinit", "basic", "shutdown", "multi-user", "network-online", "test")  # instead of those of the machine
ENTER = """
set -e
umount -l /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mkdir /sys/fs/cgroup/{name}
echo $$ > /sys/fs/cgroup/{name}/cgroup.procs
exec unshare --cgroup --pid --fork --kill-child --mount --uts --ipc /bin/sh -c '
    set -e
    mount -t proc proc /proc
    umount -l /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
    mount -t tmpfs tmpfs /run
    mkdir -p /run/systemd /run/lock
    export container=other SYSTEMD_UNIT_PATH={units}
    exec {systemd} --system --unit=test.target --log-target=console --show-status=no
'
"""
LEAVE = "mount -t cgroup2 none /sys/fs/cgroup && find /sys/fs/cgroup/{name} -depth -type d -exec rmdir {{}} +"


class Manager:
    """A systemd that sees the units of this folder alone."""

    def __init__(self, folder: Path) -> None:
        self.units = folder / "units"
        self.units.mkdir()
        for target in TARGETS:
            (self.units / f"{target}.target").write_text(f"[Unit]\nDescription={target}\nDefaultDependencies=no\n")
        self.name = f"fairgate-{os.getpid()}"
        self.unshare = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c"]

    def begin(self) -> subprocess.Popen[bytes]:
        script = ENTER.format(name=self.name, units=self.units, systemd=SYSTEMD)
        self.process = subprocess.Popen(
            [*self.unshare, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return self.process

    def end(self) -> None:
        """Once all its processes are dead."""
        leave = [*self.unshare, LEAVE.format(name=self.name)]
        until(lambda: subprocess.run(leave, capture_output=True, check=False).returncode == 0)

    def first(self) -> int:
        """The id of its process 1, or 0."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["nsenter", "--all", "--target", str(self.first()), "systemctl", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SOON)

    def is_up(self) -> bool:
        return bool(self.first()) and self.ctl("is-active", "test.target").returncode == 0

    def show(self, unit: str) -> dict[str, str]:
        shown = self.ctl("show", "-p", "ActiveState,StatusText,MainPID,NRestarts", unit).stdout
        return {name: value for name, _, value in [row.partition("=") for row in shown.splitlines()]}

    def add(self, *words: str) -> str:
        """The unit of this peer, by its name."""
        text = run("peer", *words, "--print-unit", env=os.environ).stdout
        name = text.partition("/system/")[2].partition(",")[0]
        (self.units / name).write_text(text)
        return name


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    if os.geteuid() != 0 or not SYSTEMD.exists():
        pytest.skip("needs root, and systemd")
    tmp_path.chmod(0o700)
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "gates"))
    found = Manager(tmp_path)
    process = found.begin()
    try:
        with ended([process]):
            until(lambda: process.poll() is not None or found.is_up())
            if process.poll() is not None:
                assert process.stdout is not None
                pytest.skip(f"systemd cannot run in namespaces here: {process.stdout.read()[-200:]!r}")
            yield found
    finally:
        found.end()


def test_a_standing_peer_of_a_cluster_is_a_service(manager: Manager, tmp_path: Path) -> None:
    """It is started once it serves, and stopped once it has drained."""
    seed = f"unix:{tmp_path}/0"
    unit = manager.add("--create", "--listen", seed, "--drain", "1h")
    assert manager.ctl("daemon-reload").returncode == 0
    assert manager.ctl("start", unit).returncode == 0
    shown = manager.show(unit)
    assert (shown["ActiveState"], shown["NRestarts"]) == ("active", "0")
    assert shown["StatusText"] == "1 peer in cluster fairgate, guarantee: lease"
    guest = "echo in; read line"
    inner = ["nsenter", "--all", "--target", str(manager.first())]
    command = [*inner, "env", f"FAIRGATE_DIR={os.environ['FAIRGATE_DIR']}", *FAIRGATE]
    holder = start("run", "gpu", "--join", seed, "--", "sh", "-c", guest, command=command)
    with ended([holder]):
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        assert manager.ctl("stop", "--no-block", unit).returncode == 0
        until(lambda: manager.show(unit)["StatusText"] == "SIGTERM: draining, 1 guest inside")
        assert manager.show(unit)["ActiveState"] == "deactivating"
        holder.communicate(b"\n", timeout=SOON)
    until(lambda: manager.show(unit)["ActiveState"] == "inactive")


def test_a_peer_of_a_host_is_a_service(manager: Manager) -> None:
    unit = manager.add("gpu", "-k", "3")
    assert manager.ctl("daemon-reload").returncode == 0
    assert manager.ctl("start", unit).returncode == 0
    assert manager.show(unit)["StatusText"] == "keeps gpu open with k=3"
    assert manager.ctl("kill", "--signal=KILL", unit).returncode == 0
    until(lambda: manager.show(unit)["NRestarts"] == "1" and manager.show(unit)["ActiveState"] == "active")
    assert manager.ctl("stop", unit).returncode == 0
    assert manager.show(unit)["ActiveState"] == "inactive"
