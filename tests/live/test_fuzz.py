"""Forged frames for every live protocol, in processes of their own: fuzz.py says what must not happen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fairgate.live.live_protocols import live_protocols
from tests.live.fuzz import MEMBER, STRANGER, TRAITOR

FRAMES, MANY = 150, 100_000
ROLES = (STRANGER, MEMBER, TRAITOR)


def attacked(protocols: str, role: str, frames: int, seed: int, seconds: float) -> None:
    command = [sys.executable, "-m", "tests.live.fuzz", protocols, role, str(frames), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"{' '.join(command)} hangs: {late.stdout!r:.2000}")
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.stdout.count("\n") == len(protocols.split(","))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_few_forged_frames(role: str, seed: int) -> None:
    attacked(",".join(live_protocols()), role, FRAMES, seed, 100)


@pytest.mark.stress
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("protocol", live_protocols())
@pytest.mark.parametrize("seed", [2, 3])
def test_many_forged_frames(protocol: str, role: str, seed: int) -> None:
    attacked(protocol, role, MANY // 2, seed, 1500)
