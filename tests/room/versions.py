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
    process = start_module(name, plain, *arguments)
    said, wrong = process.communicate()
    assert process.returncode == 0, f"it ended with {process.returncode}: {(said + wrong)[-1000:]}"
    assert said.startswith("plain" if plain else "compiled")
    return said


def start_module(name: str, plain: bool, *arguments: str) -> subprocess.Popen[str]:
    if not plain and not COMPILED:
        pytest.skip("the room is not compiled")
    env = {key: value for key, value in os.environ.items() if key != "FAIRGATE_PURE"}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(fairgate.__file__).parents[1]), str(PROJECT)])
    if plain:
        env["FAIRGATE_PURE"] = "1"
    command = [sys.executable, "-m", f"tests.room.{name}", *arguments]
    return subprocess.Popen(command, env=env, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
