"""Locks of users' threads are taken by `once` (once.py): Python 3.14 handles signals at the start of a `with` body."""

from __future__ import annotations

import re
from pathlib import Path

import fairgate

OF_USERS = re.compile(r"^\s*with .*\b(forking|mutex|user_lock)\b")


def test_they_are_taken_once() -> None:
    sources = sorted(Path(fairgate.__file__).parent.rglob("*.py"))
    assert len(sources) > 300
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if OF_USERS.search(line)
    ]
    assert found == []
