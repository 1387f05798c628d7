"""Runs a module of these tests in another process, with the room in plain Python or compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairgate
from fairgate.room import table

PROJECT = Path(__file__).parents[2]
COMPILED = list(Path(fairgate.__file__).parent.glob("room/table.*.so"))


def version() -> str:
    """Which one this process uses."""
    return "plain" if str(table.__file__).endswith(".py") else "compiled"


def run_module(name: str, plain: bool, *arguments: str) -> str:
    """What tests.room.`name` prints. The test is skipped if it should be compiled and is not."""
    if not plain and not COMPILED:
        pytest.skip("the room is not compiled")
    env = {key: value for key, value in os.environ.items() if key != "FAIRGATE_PURE"}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(fairgate.__file__).parents[1]), str(PROJECT)])
    if plain:
        env["FAIRGATE_PURE"] = "1"
    command = [sys.executable, "-m", f"tests.room.{name}", *arguments]
    ended = subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"it ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-1000:]}"
    assert ended.stdout.startswith("plain" if plain else "compiled")
    return ended.stdout
