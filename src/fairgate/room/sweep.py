"""Removes what nobody uses any more: gates that were not used for a day, and what killed processes have left behind.

An opening of a gate does it, at most once an hour for a directory (file.py). Only files of our own making are removed,
and only if no living process needs them:

- A gate's file, with its lock, if no process has it open and no seat has a living owner. Files that users have named by
  a path stay.
- A bell that nobody has open, if no seat of a gate in this directory has it: there it shows that its owner is dead.
- A file whose creator died before it got its name.

What cannot be read counts as used.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from itertools import islice

from fairgate.errors import BadInput
from fairgate.room import bell, calls, host, links, system
from fairgate.room.calls import DEAD, clock
from fairgate.room.layout import FREE, IS_A_ROOM, OWNER, STATE
from fairgate.room.links import Table
from fairgate.room.opening import UNFINISHED, is_elsewhere
from fairgate.room.room import SUFFIX
from fairgate.room.senses import LiveSenses
from fairgate.room.system import HEXADECIMAL

DAY = 86_400  # seconds
MINUTE = 60
BUDGET = 100_000_000  # ns: somebody waits for the gate. The rest has time until the next sweep
MOST_FILES = 10_000  # in a directory that a user has named; if there are more, it is not swept
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Unreadable(Exception):
    """A file that may be a gate in use."""


def sweep(folder: str, by_path: bool) -> None:
    """Sweep a directory. `by_path`: it is one that a user has named, with gates and other files."""
    until = clock() + BUDGET
    with suppress(OSError):
        names = names_in(folder, MOST_FILES if by_path else None)
        for name in names:
            if is_ours(name, UNFINISHED) and is_old(f"{folder}/{name}", stat.S_IFREG, MINUTE):
                remove(f"{folder}/{name}")
            elif name.endswith(SUFFIX) and not by_path and clock() < until:
                remove_gate_if_unused(folder, name)
        remove_unused_bells(folder, names, until)


def names_in(folder: str, most: int | None) -> list[str]:
    """Everything in a directory, or nothing if there is more than that.

    From a random one on, so that every file has its turn if there is not enough time for all.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, most)]
        if next(entries, None) is not None:
            return []
    first = int.from_bytes(os.urandom(4), "little") % (len(names) or 1)
    return names[first:] + names[:first]


def is_ours(name: str, suffix: str) -> bool:
    """Is it 16 hexadecimal digits, and the suffix?"""
    digits = name.removesuffix(suffix)
    return len(digits) == 16 == len(name) - len(suffix) and not digits.strip(HEXADECIMAL)


def is_old(path: str, kind: int, age: int) -> bool:
    """Is it a file of this kind that was not changed for so many seconds?"""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_IFMT(found.st_mode) == kind and time.time() - found.st_mtime > age


def remove(path: str) -> None:
    with suppress(OSError):  # another process was faster, or it is another user's in a directory with the sticky bit
        os.unlink(path)


# Gates.


def remove_gate_if_unused(folder: str, name: str) -> None:
    path = f"{folder}/{name}"
    if not is_old(path, stat.S_IFREG, DAY):
        return
    with suppress(OSError):
        fd = os.open(path, READ)
        try:
            if calls.try_lock(fd) and is_unused(fd, folder, path):
                os.unlink(path)
        finally:
            os.close(fd)


def is_unused(fd: int, folder: str, path: str) -> bool:
    """With the lock."""
    found = os.fstat(fd)
    if not os.path.samestat(found, os.lstat(path)) or system.is_open_elsewhere(fd):
        return False
    try:
        m = host.checked(path, os.pread(fd, found.st_size, 0))
    except BadInput:
        return False
    return m is not None and not is_anybody_alive(m, LiveSenses(folder))


def is_anybody_alive(m: Table, senses: LiveSenses) -> bool:
    return is_elsewhere(m) or bool(senses.living(m, links.all_seats(m)))


# Bells.


def remove_unused_bells(folder: str, names: list[str], until: int) -> None:
    bells = [name for name in names if is_ours(name, bell.SUFFIX) and is_left_behind(f"{folder}/{name}")]
    if bells:
        with suppress(Unreadable):
            needed = {bell.path_of(folder, owner) for owner in seated(folder, names, until)}
            for name in bells:
                if f"{folder}/{name}" not in needed:
                    remove(f"{folder}/{name}")


def is_left_behind(path: str) -> bool:
    """Has nobody this bell open? A new one is not open yet."""
    if not is_old(path, stat.S_IFIFO, MINUTE):
        return False
    fd = calls.open_to_ring(path)
    if fd >= 0:
        os.close(fd)
    return fd == DEAD


def seated(folder: str, names: list[str], until: int) -> set[int]:
    """The owners of all seats in this directory. A dead one gets no further seat, so no lock is needed."""
    owners = set()
    for name in names:
        if clock() > until:
            raise Unreadable
        m = gate_in(f"{folder}/{name}")
        if m is not None:
            owners |= {m[seat + OWNER] for seat in links.all_seats(m) if m[seat + STATE] != FREE}
    return owners


def gate_in(path: str) -> Table | None:
    """The table of a file, or None if it is not a gate."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        fd = os.open(path, READ)
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise Unreadable from wrong
    try:
        if os.pread(fd, 8, 0) != IS_A_ROOM.to_bytes(8, "little"):
            return None
        return host.checked(path, os.pread(fd, os.fstat(fd).st_size, 0))
    except (OSError, BadInput) as wrong:
        raise Unreadable from wrong
    finally:
        os.close(fd)
