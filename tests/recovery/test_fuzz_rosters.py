"""Forged messages about rosters, in processes of their own: fuzz_rosters.py says what must not happen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.recovery.fuzz_rosters import SENDERS

FEW, MANY = 1_000, 100_000


@pytest.mark.parametrize("role", SENDERS)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.stress)])
def test_forged_messages(role: str, count: int) -> None:
    command = [sys.executable, "-m", "tests.recovery.fuzz_rosters", role, str(count), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + count / 50, check=False)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
