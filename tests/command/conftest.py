"""Every test of `fairgate run` has its own directory of gates, and a secret for clusters on loopback addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairgate.net.secret import VARIABLE
from tests.live.peers import SECRET


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_bytes(SECRET.key)
    monkeypatch.setenv(VARIABLE, str(secret))
    return tmp_path / "run"
