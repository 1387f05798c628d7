"""A short path for every test: that of a Unix socket has 107 bytes, and pytest's own directories take most of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="fairgate") as folder:
        yield Path(folder).resolve()
