"""A short path for every test: that of a Unix socket has 107 bytes, and pytest's own directories take most of them.

And a way to do a command of `fairgate` without a process of its own, if it is one that ends by itself.
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
    """Does a command in this process; its exit code, what it printed and what it complained."""

    def do(*words: str) -> tuple[int, str, str]:
        code = app.run(words)
        return code, *capsys.readouterr()

    return do
