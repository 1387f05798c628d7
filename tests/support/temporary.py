"""The temporary directory of a test run. It is a new one for each process that runs tests, and empty after every test.

Processes that a test starts use it too, because TMPDIR names it. pytest keeps its own directories where it always does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

MISTAKES = "mistakes"  # where peers write down what has raised in their loops
HOSTS = "hosts"  # directories that stand for other hosts; removed after every test
PREFIX = "fgt"  # short: it is part of the paths of Unix sockets
LIKE_TMP = 0o1777  # some tests run as other users
PATIENCE = 10.0  # seconds

_used: list[Path] = []


def use_own_folder() -> None:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.gettempdir()
    above = Path(tempfile.gettempdir())
    for old in above.glob(f"{PREFIX}*"):
        pid = old.name.removeprefix(PREFIX)
        if pid == str(os.getpid()) or not Path(f"/proc/{pid}").exists():  # its run was killed
            shutil.rmtree(old, ignore_errors=True)
    folder = above / f"{PREFIX}{os.getpid()}"
    folder.mkdir()
    folder.chmod(LIKE_TMP)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    _used.append(folder)
    file_of_mistakes().touch()
    file_of_mistakes().chmod(0o666)


def file_of_mistakes() -> Path:
    return Path(tempfile.gettempdir()) / MISTAKES


def remove_own_folder() -> None:
    for folder in _used:
        shutil.rmtree(folder, ignore_errors=True)


def host_folder() -> str:
    parent = Path(tempfile.gettempdir()) / HOSTS
    parent.mkdir(mode=0o700, exist_ok=True)
    return tempfile.mkdtemp(dir=parent)


def what_is_there() -> set[str]:
    return set(os.listdir(tempfile.gettempdir()))


def left_since(before: set[str]) -> set[str]:
    """What is there now and was not before. Processes that are about to end may remove some of it."""
    deadline = time.monotonic() + PATIENCE
    while (left := what_is_there() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def remove_hosts() -> None:
    shutil.rmtree(Path(tempfile.gettempdir()) / HOSTS, ignore_errors=True)
