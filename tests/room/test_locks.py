"""Who has the lock of a file: the kernel tells it by device and inode."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairgate.room.calls import try_lock
from fairgate.room.system import lock_owner, mark_open
from tests.room.others import mount, needs_root, with_own_mounts


def opened(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    mark_open(fd)
    return fd


def test_the_owner_of_a_lock_is_found(folder: str) -> None:
    fd, other = opened(Path(folder) / "gate"), opened(Path(folder) / "gate")
    assert lock_owner(fd) == 0
    assert try_lock(other)
    assert not try_lock(fd)
    assert lock_owner(fd) == os.getpid()
    fcntl.flock(other, fcntl.LOCK_UN)
    assert lock_owner(fd) == 0
    os.close(fd)
    os.close(other)


@needs_root
def test_a_file_with_the_same_inode_on_another_device_is_another_one(folder: str) -> None:
    def work() -> str:
        fds = []
        for name in ("one", "two"):
            (Path(folder) / name).mkdir()
            mount("tmpfs", f"{folder}/{name}")
            fds.append(opened(Path(folder) / name / "gate"))
        assert try_lock(fds[1])
        same = os.fstat(fds[0]).st_ino == os.fstat(fds[1]).st_ino
        return f"{same} {lock_owner(fds[0])} {lock_owner(fds[1]) == os.getpid()}"

    assert with_own_mounts(work) == "True 0 True"


def on_overlay(folder: str) -> None:
    for name in ("lower", "upper", "work", "merged"):
        (Path(folder) / name).mkdir()
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    mount("overlay", f"{folder}/merged", options)


def on_tmpfs(folder: str) -> None:
    (Path(folder) / "merged").mkdir()
    mount("tmpfs", f"{folder}/merged")


@needs_root
@pytest.mark.parametrize("prepare", [on_overlay, on_tmpfs])
def test_the_owner_is_found_on_other_file_systems(folder: str, prepare: Callable[[str], None]) -> None:
    """On an overlay, as containers have it, stat tells another device than the list of locks."""

    def work() -> str:
        try:
            prepare(folder)
        except OSError:
            return "cannot be mounted"
        fd, other = opened(Path(folder) / "merged" / "gate"), opened(Path(folder) / "merged" / "gate")
        assert try_lock(other)
        return str(lock_owner(fd) == os.getpid())

    said = with_own_mounts(work)
    if said == "cannot be mounted":
        pytest.skip("this kernel has no such file system")
    assert said == "True"
