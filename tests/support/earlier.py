"""Earlier states of the project, taken from its history, whose processes meet those of today."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]


def git(*words: str) -> bytes:
    """What git says; empty if it fails, as where there is no history."""
    found = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, check=False)
    return b"" if found.returncode else found.stdout


def source_before(text: str, file: str, folder: Path) -> Path:
    """The sources as they were before this text came into this file, below this folder.

    The latest commit is taken as long as the change is not committed. Without a history the test is skipped.
    """
    came = git("log", "--format=%H", "-S", text, "--", file).decode().split()
    packed = git("archive", "--format=tar", f"{came[-1]}^" if came else "HEAD", "src")
    if not packed:
        pytest.skip("the project's history is not there")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    assert text not in (folder / file).read_text()
    return folder / "src"


def start(source: Path, code: str, *words: str, **more: Any) -> subprocess.Popen[str]:
    """A Python process that runs these sources, not compiled."""
    env = os.environ | {"PYTHONPATH": str(source), "FAIRGATE_PURE": "1"}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code, *words], env=env, text=True, **pipes | more)
