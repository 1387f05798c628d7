"""What a process sees that is another user, or has mounts of its own. Only root can become that."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from fairgate.errors import FairgateError
from tests.room.children import Child

ALICE, BOB = 4001, 4002  # users that this host does not have
TEAM = 4100  # a group
NEW_MOUNTS = 0x20000
BIND = 4096
RECURSIVE_AND_PRIVATE = 16384 | 1 << 18

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def open_folder() -> Iterator[str]:
    """A new directory that all users can enter, unlike those of pytest."""
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def become(user: int, groups: Sequence[int] = ()) -> None:
    os.setgroups(list(groups))
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def answer(work: Callable[[], object]) -> str:
    """What a forked child says: the result of the work, or its error."""

    def talk(me: Child) -> None:
        try:
            me.say(work())
        except FairgateError as wrong:
            me.say(f"{type(wrong).__name__}: {wrong}")

    with Child(talk) as child:
        return child.hear()


def as_user(user: int, work: Callable[[], object], groups: Sequence[int] = ()) -> str:
    def changed() -> object:
        become(user, groups)
        return work()

    return answer(changed)


def with_own_mounts(work: Callable[[], object]) -> str:
    """`work` may mount whatever it likes. The test is skipped where that is not allowed."""

    def separated() -> object:
        if libc.unshare(NEW_MOUNTS) or libc.mount(b"none", b"/", None, RECURSIVE_AND_PRIVATE, None):
            return "not allowed"
        return work()

    said = answer(separated)
    if said == "not allowed":
        pytest.skip("this process may not mount anything")
    return said


def mount(kind: str, folder: str, options: str = "") -> None:
    check(libc.mount(kind.encode(), folder.encode(), kind.encode(), 0, options.encode()))


def bind(folder: str, onto: str) -> None:
    check(libc.mount(folder.encode(), onto.encode(), None, BIND, None))


def check(failed: int) -> None:
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
