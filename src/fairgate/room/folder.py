"""Which directories may hold gates, and with whom they are shared.

The mode of a directory decides:

    0700, 0755    private: it is the user's own, and the files in it get mode 0600
    0770, 2775    for a group: all who can write there are trusted equally, and the files get mode 0660 and that group
    1777          private as well: everyone can create files there (/tmp), but not replace those of others
    0777          refused: everyone can replace every file

A gate needs memory, locks and pipes that all its processes share. So only file systems that are known to be local are
accepted: on a network file system every host would have its own.
"""

import os
import stat
import sys

from fairgate.errors import BadInput

LOCAL = {  # file systems, with the numbers by which statfs(2) names them
    b"bcachefs": 0xCA451A4E,
    b"btrfs": 0x9123683E,
    b"ecryptfs": 0xF15F,
    b"ext2": 0xEF53,
    b"ext3": 0xEF53,
    b"ext4": 0xEF53,
    b"f2fs": 0xF2F52010,
    b"jfs": 0x3153464A,
    b"nilfs2": 0x3434,
    b"overlay": 0x794C7630,
    b"ramfs": 0x858458F6,
    b"reiserfs": 0x52654973,
    b"rootfs": 0x858458F6,
    b"tmpfs": 0x01021994,
    b"ubifs": 0x24051905,
    b"xfs": 0x58465342,
    b"zfs": 0x2FC12FC1,
}
STICKY = stat.S_ISVTX  # tells our files from others, and systemd-tmpfiles does not remove them when they are old
PRIVATE = STICKY | 0o600
SHARED = STICKY | 0o660
MOST_LINKS = 40  # as in the kernel
NOBODY = -1


class Folder:
    """An open directory that has been checked. Raises BadInput if no gate may be in it."""

    def __init__(self, path: str) -> None:
        self.path = resolved(path)
        try:
            self.fd = open_folder(self.path)
        except OSError as wrong:
            raise BadInput(f"cannot use {path}: {wrong.strerror}") from wrong
        try:
            found = os.fstat(self.fd)
            self.group = group_of(found)
            wrong_with = why_unsafe(found) or why_not_local(self.fd)
            if wrong_with:
                raise BadInput(f"cannot use {path}: {wrong_with}")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.fd)


def open_folder(path: str) -> int:
    """For fstat, mount_of and as the start of paths. Automounts are mounted only if a path goes on below them."""
    return os.open(f"{path}/.", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


# Users.


def group_of(found: os.stat_result) -> int:
    """The group that shares this directory, or NOBODY."""
    shared = found.st_mode & 0o030 == 0o030 and not found.st_mode & 0o002
    return found.st_gid if shared else NOBODY


def share(fd: int, group: int) -> None:
    """Give a new file to the group of its directory, regardless of the umask. Raises OSError if we are not in it."""
    if group != NOBODY:
        if os.fstat(fd).st_gid != group:
            os.fchown(fd, -1, group)
        os.fchmod(fd, SHARED)


def why_unsafe(found: os.stat_result) -> str:
    """Why other users could interfere with the gates of this directory, or ""."""
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o002 and not mode & stat.S_ISVTX:
        return f"everyone can replace files there (mode {mode:04o}): use mode 0700, or 2770 to share it with a group"
    if group_of(found) == NOBODY and found.st_uid not in (os.geteuid(), 0):
        return (
            f"it belongs to user {found.st_uid}, not to you (user {os.geteuid()}), and has mode {mode:04o}: use a"
            " directory of your own, or one with mode 2770 to share it with a group"
        )
    return ""


def resolved(path: str) -> str:
    """The absolute path without links. Raises BadInput if there is a link that others can replace."""
    rest = f"{current_folder()}/{path}".split("/")[::-1] if not path.startswith("/") else path.split("/")[::-1]
    at = ""
    links = 0
    while rest:
        name = rest.pop()
        if name == "..":
            at = os.path.dirname(at).rstrip("/")
        elif name not in ("", "."):
            below = f"{at}/{name}"
            link = target_of(at, below)
            if link:
                links += 1
                rest += link.split("/")[::-1]
                if link.startswith("/"):
                    at = ""
            else:
                at = below
            if links > MOST_LINKS:
                raise BadInput(f"cannot use {path}: too many symbolic links")
    return at or "/"


def current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError as wrong:
        raise BadInput("the current directory was removed: use an absolute path") from wrong


def target_of(parent: str, path: str) -> str:
    """Where a link leads, or "" if it is none."""
    try:
        found = os.lstat(path)
        if not stat.S_ISLNK(found.st_mode):
            return ""
        above = os.stat(parent or "/")
        ours = above.st_mode & stat.S_ISVTX and found.st_uid in (os.geteuid(), 0)
        if above.st_mode & 0o002 and not ours:
            raise BadInput(f"cannot use {path}: others can replace this symbolic link")
        return os.readlink(path)
    except OSError as wrong:
        raise BadInput(f"cannot use {path}: {wrong.strerror}") from wrong


# File systems.


def why_not_local(fd: int) -> str:
    """Why the file system of an open file cannot hold gates, or ""."""
    mount = mount_of(fd)
    if mount:
        kind = mount.partition(b" - ")[2].split(b" ", 1)[0]
        return "" if kind in LOCAL else f"{kind.decode(errors='replace')} is not known to be a local file system"
    number = number_of_file_system(fd)
    return "" if number in LOCAL.values() else f"file system {number:#x} is not known to be local"


def mount_of(fd: int) -> bytes:
    """The line of /proc/self/mountinfo about the mount of an open file. In a chroot it may be hidden, then b"".

    The number of the mount is needed: the files of btrfs have other device numbers than their mount.
    """
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb", 0) as file:
            number = file.read(4096).partition(b"mnt_id:")[2].split(None, 1)[0]
        with open("/proc/self/mountinfo", "rb") as file:
            return next((line for line in file if line.startswith(number + b" ")), b"")
    except OSError as wrong:
        raise BadInput(f"cannot read {wrong.filename}: {wrong.strerror}; fairgate needs /proc") from wrong


def number_of_file_system(fd: int) -> int:
    import ctypes  # noqa: PLC0415 (slow to import, and rarely needed)

    answer = ctypes.create_string_buffer(512)  # a struct statfs begins with the number
    if ctypes.CDLL(None).fstatfs(fd, answer):
        return 0
    return int.from_bytes(answer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)
