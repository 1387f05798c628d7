"""`fairgate torture` that is ended before its time leaves nothing behind: no directory, no process, no namespace."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fairgate.torture.network import NAMESPACES, PREFIX
from tests.live.commands import SOON, start, until


def runs_in(folder: Path) -> list[str]:
    """The processes whose environment names this directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:  # it has ended, or is not ours
            continue
    return found


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_torture_that_is_interrupted_cleans_up(signum: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start("torture", "--hosts", "3", "--guests", "4", "--k", "2", "--minutes", "9")
    until(lambda: list(tmp_path.glob("fairgate-torture-*/host0/*.log")))
    process.send_signal(signum)
    _, err = process.communicate(timeout=2 * SOON)
    assert (process.returncode, err) == (130, b"")
    assert list(tmp_path.iterdir()) == []
    assert runs_in(tmp_path) == []
    assert list(NAMESPACES.glob(f"{PREFIX}-{process.pid}-*")) == []
