"""Fixtures: a short temporary path, kinds of gates (kinds.py), and a way to run commands in this process.

The path of a Unix socket is limited to 107 bytes, most of which pytest's own directories would take.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairgate.cli import app
from fairgate.net.secret import VARIABLE
from tests.live.commands import Say
from tests.live.kinds import CLUSTER, Kind, opened
from tests.live.peers import SECRET


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="fairgate") as folder:
        yield Path(folder).resolve()


@pytest.fixture(autouse=True)
def secret(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a secret, which all clusters on loopback addresses use."""
    path = tmp_path_factory.mktemp("secret") / "file"
    path.touch(0o600)
    path.write_bytes(SECRET.key)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    """The kind of gates with the name `request.param`."""
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    with opened(request.param, tmp_path) as kind:
        yield kind


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Kind]:
    """A cluster over Unix sockets."""
    with opened(CLUSTER, tmp_path) as kind:
        yield kind


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command in this process; returns its exit code, stdout and stderr."""

    def do(*words: str) -> tuple[int, str, str]:
        code = app.run(words)
        return code, *capsys.readouterr()

    return do
