"""Fixtures: a short temporary path, and a way to run commands in this process.

The path of a Unix socket is limited to 107 bytes, most of which pytest's own directories would take.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairgate.cli import app
from tests.live.commands import Say


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="fairgate") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command in this process; returns its exit code, stdout and stderr."""

    def do(*words: str) -> tuple[int, str, str]:
        code = app.run(words)
        return code, *capsys.readouterr()

    return do
