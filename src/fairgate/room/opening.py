"""Opening the file of a gate, or creating it.

A new file gets its table under another name, and then its own name by link(2). So a gate's file is complete as soon as
it can be seen, with the right mode and group, and a full disk leaves nothing behind.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from fairgate.core.fences import FENCE_COUNT_BITS
from fairgate.errors import BadInput
from fairgate.room import links, system, table
from fairgate.room.calls import clock
from fairgate.room.folder import NOBODY, PRIVATE, Folder, share
from fairgate.room.layout import BOOT, CLUSTER, MACHINE, MOST_SEATS, MOST_SLOTS, SWEPT
from fairgate.room.links import Table
from fairgate.room.words import mapped

FIRST_SEATS = 64
FIRST_SIZE = 8 * links.size(MOST_SLOTS, FIRST_SEATS)
LARGEST = 8 * links.size(MOST_SLOTS, MOST_SEATS)
UNFINISHED = ".new-gate"  # after 16 digits
EPOCH = 1_704_067_200  # 2024 began
KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


def open_file(path: str, k: int, create: bool, cluster: bool = False) -> int:
    """A descriptor of the gate's file, which is created with this k if necessary. Raises BadInput."""
    parent, name = os.path.split(path)
    with Folder(parent) as folder:
        while True:
            try:
                return open_existing(folder, name)
            except FileNotFoundError as wrong:
                if not create:
                    raise BadInput(f"cannot open {path}: {wrong.strerror}") from wrong
            except OSError as wrong:
                raise BadInput(f"cannot open {path}: {wrong.strerror}") from wrong
            try:
                create_file(folder, name, k, cluster)
            except OSError as wrong:
                raise BadInput(f"cannot create {path}: {wrong.strerror}") from wrong


def open_existing(folder: Folder, name: str) -> int:
    """Raises OSError, or BadInput if it is not safe to use."""
    check(folder, name, os.stat(name, dir_fd=folder.fd, follow_symlinks=False))  # opening a device may have effects
    fd = os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder.fd)
    try:
        check(folder, name, os.fstat(fd))  # it may have been replaced in between
    except BaseException:
        os.close(fd)
        raise
    return fd


def check(folder: Folder, name: str, found: os.stat_result) -> None:
    wrong = why_unsafe(found, folder.group)
    if wrong:
        raise BadInput(f"cannot use {folder.path.rstrip('/')}/{name}: {wrong}")


def why_unsafe(found: os.stat_result, group: int) -> str:
    """What is wrong with a gate's file in a directory that this group shares, or ""."""
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        return f"it is {KINDS.get(stat.S_IFMT(found.st_mode), 'a device')}, not a gate file"
    if found.st_size > LARGEST:
        return f"it is too large for a gate file ({found.st_size} bytes)"
    if group == NOBODY and found.st_uid != os.geteuid():
        return f"it belongs to user {found.st_uid}, not to you (user {os.geteuid()})"
    if mode & (0o022 if group == NOBODY else 0o002):
        return f"others can write to it (mode {mode:04o}): correct that with chmod go-w"
    return ""


def create_file(folder: Folder, name: str, k: int, cluster: bool = False) -> None:
    """Create the gate's file, unless another process is faster. Raises OSError."""
    unfinished = f"{os.urandom(8).hex()}{UNFINISHED}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(unfinished, flags, PRIVATE, dir_fd=folder.fd)
    try:
        share(fd, folder.group)
        allocate(fd, FIRST_SIZE)
        start(mapped(fd, FIRST_SIZE), MOST_SLOTS, FIRST_SEATS, k or 1, cluster)
        with suppress(FileExistsError, FileNotFoundError):  # not found: this process was stopped, and it was swept
            os.link(unfinished, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder.fd)
        os.close(fd)


def allocate(fd: int, size: int) -> None:
    """Reserve the space on the disk: a store into a full disk would end the process by SIGBUS. Raises OSError."""
    before = os.fstat(fd).st_size
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError:
        os.ftruncate(fd, before)
        raise


def start(m: Table, capacity: int, seats: int, k: int, cluster: bool) -> None:
    """A new table, or an old one of which no process can be alive. `cluster`: only its peer lets anybody in."""
    m[CLUSTER] = int(cluster)
    table.create(m, capacity, seats, k, first_fence(), system.boot_id())
    m[MACHINE], m[SWEPT] = machine_number(), clock()


def machine_number() -> int:
    """The part of the machine id that a table has, or 0."""
    return int(system.machine_id()[:15] or "0", 16)


def is_elsewhere(m: Table) -> bool:
    """Is it the table of another machine? In this boot it is a container whose machine id differs."""
    machine = machine_number()
    return bool(m[MACHINE] and machine and m[MACHINE] != machine) and not system.is_this_boot(m[BOOT])


def first_fence() -> int:
    """Seconds in the upper half: the fences of a gate that is created again are above its earlier ones."""
    return max(int(time.time()) - EPOCH, 1) << FENCE_COUNT_BITS
