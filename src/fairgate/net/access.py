"""Who may use the Unix sockets in a directory, and which process is at the other end of one.

A directory is *private* (it is ours, and nobody else can write to it) or *shared* (its group has all rights, others
have none, and it belongs to root or to us: an administrator created it). Others may read a private directory, but they
cannot connect to its sockets, which have mode 0600. Peers that meet in a directory accept connections by the same rule.
They trust what the kernel says about the process that called connect or listen (SO_PEERCRED), not what that process
says.
"""

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from fairgate.errors import BadInput

CREDENTIALS = Struct("iII")
SO_PEERGROUPS = 59  # Linux; Python has no name for it
MOST_GROUPS = 256  # Python reads no more than 1,024 bytes of an option
ROOT = 0


@dataclass(frozen=True)
class Credentials:
    """Of the process at the other end, as it was when it called connect or listen."""

    pid: int
    uid: int
    groups: frozenset[int]

    def __str__(self) -> str:
        return f"pid {self.pid} of user {self.uid}"


def credentials(sock: socket.socket) -> Credentials:
    pid, uid, gid = CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    try:
        more = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * MOST_GROUPS)
    except OSError:  # it is in more groups than that: only consider its primary group
        more = b""
    return Credentials(pid, uid, frozenset([gid, *memoryview(more).cast("I")]))


@dataclass(frozen=True)
class Access:
    """The access rule of one directory."""

    folder: Path
    owner: int
    group: int | None  # None: private

    def admits(self, who: Credentials) -> bool:
        return who.uid in (self.owner, os.geteuid()) or (self.group is not None and self.group in who.groups)


def access(folder: Path) -> Access:
    """The access rule of the sockets in an existing directory. BadInput if it is not safe to use."""
    try:
        found = folder.stat()
    except OSError as wrong:
        raise BadInput(f"cannot use {folder}: {wrong.strerror}") from wrong
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        raise BadInput(f"cannot use {folder}: it is not a directory")
    me = os.geteuid()
    if found.st_uid == me and mode & 0o022 == 0:
        return Access(folder, me, None)
    if mode & 0o007:
        raise BadInput(
            f"{folder} is accessible to everyone (mode {mode:04o}): use a directory of your own with mode 0700, or one"
            " with mode 0770 to share with a group"
        )
    if found.st_uid not in (me, ROOT):
        raise BadInput(f"{folder} belongs to user {found.st_uid}, neither to you ({me}) nor to root")
    if mode & 0o070 != 0o070:
        raise BadInput(f"{folder} has mode {mode:04o}: set mode 0700, or 0770 to share it with its group")
    if mode & stat.S_ISVTX:
        raise BadInput(f"{folder} has the sticky bit, so users cannot replace each other's files: set mode 0770")
    if found.st_gid not in {os.getegid(), *os.getgroups()} and me != ROOT:
        raise BadInput(f"{folder} is shared with group {found.st_gid}, and you are not in that group")
    return Access(folder, found.st_uid, found.st_gid)
