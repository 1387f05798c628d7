"""Listening Unix sockets and their files.

The file of a socket outlives a process that is killed. So a path is taken over if the socket there refuses connections:
then no process has it open. Anything else is left alone. Checking a path and binding it happen under a lock on the
directory; otherwise two processes could both find a dead socket, and the second would remove the socket of the first.

A peer that joins through a socket listens beside it, on a fresh name (`path_beside`). Such names that dead peers have
left behind are removed by the next process that listens on the original path.
"""

import errno
import fcntl
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairgate.errors import BadInput

BACKLOG = 128
LONGEST_PATH = 107  # bytes in the path of a Unix socket on Linux, without the terminating zero
TAG_BYTES = 4  # of a fresh name
TAG = re.compile(rf"\.[0-9a-f]{{{2 * TAG_BYTES}}}")
LOCK_SECONDS = 5.0


def path_beside(path: str) -> str:
    """A fresh path for a socket in the same directory. BadInput if it would be too long."""
    fresh = f"{path}.{secrets.token_hex(TAG_BYTES)}"
    if is_too_long(fresh):
        most = LONGEST_PATH - len(fresh) + len(path)
        raise BadInput(
            f"unix:{path} is too long for this peer to put its own socket beside it (at most {most} bytes): give it"
            " another address to listen on"
        )
    return fresh


def is_too_long(path: str | os.PathLike[str]) -> bool:
    return len(os.fsencode(path)) > LONGEST_PATH


def listen_unix(path: str | os.PathLike[str], shared: bool = False) -> socket.socket:
    """A listening Unix socket, for its owner only or also for the directory's group.

    Replaces the socket of a dead process. BadInput if something else is there, or the path cannot be used.
    """
    path = Path(path)
    if is_too_long(path):
        size = len(os.fsencode(path))
        raise BadInput(
            f"{path} is too long for a Unix socket ({size} bytes, at most {LONGEST_PATH}): use a shorter path"
        )
    try:
        with locked(path.parent):
            remove_dead(path)
            return bind(path, shared)
    except OSError as wrong:
        raise BadInput(f"cannot listen on unix:{path}: {wrong.strerror}") from wrong


def bind(path: Path, shared: bool) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        if shared:
            os.chown(path, -1, path.parent.stat().st_gid)
        path.chmod(0o660 if shared else 0o600)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def remove_dead(path: Path) -> None:
    """Removes the socket of a dead process, and those that dead peers left beside it. BadInput if it is not dead."""
    for name in os.listdir(path.parent):
        if name.startswith(path.name) and TAG.fullmatch(name, len(path.name)) and is_dead(path.parent / name):
            (path.parent / name).unlink(missing_ok=True)
    if not os.path.lexists(path):
        return
    if not is_socket(path):
        raise BadInput(f"cannot listen on unix:{path}: there is a file that is not a socket")
    if not is_dead(path):
        raise BadInput(f"cannot listen on unix:{path}: another process listens there; join it, or use another path")
    path.unlink(missing_ok=True)


def is_dead(path: Path) -> bool:
    """Whether this is a socket that no process has open. A socket that we may not connect to counts as alive."""
    if not is_socket(path):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(path)) == errno.ECONNREFUSED


def is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a lock on the directory, normally only for a moment. BadInput if another process keeps it."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise BadInput(f"another process has held the lock of {folder} for {LOCK_SECONDS:g} s: is it stopped?")
            time.sleep(0.002)
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # explicitly: a child forked meanwhile may still have it open
        os.close(lock)


def try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class SocketFile:
    """The file of a socket that we listen on, to be removed at the end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.identity = identity_of(path)

    def remove(self) -> None:
        """Call it while the socket still listens: nobody replaces it then. A no-op if the file is another one."""
        with suppress(OSError):
            if identity_of(self.path) == self.identity:
                os.unlink(self.path)


def identity_of(path: str) -> tuple[int, int, int]:
    """It includes the time, because inode numbers are reused."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino, found.st_ctime_ns
