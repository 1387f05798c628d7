"""Fixtures of the room's tests: a directory for its files, and children that are ended after the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.room.others import open_folder


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def children() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def shared() -> Iterator[str]:
    """A directory that all users can enter."""
    with open_folder() as folder:
        yield folder
