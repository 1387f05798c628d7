"""Bells: named pipes that wake a process, and show when it is dead.

A bell is opened for reading and writing by its owner alone. Writing to it wakes the owner. A process that has it open
for writing only gets POLLERR from the kernel when the owner is gone, however it ended; opening it then fails with
ENXIO. So the bell's random name is its owner's identity, and neither process ids nor start times are needed. A process
that inherits the pipe keeps the owner alive.
"""

import os
from contextlib import suppress

from fairgate.errors import BadInput
from fairgate.room.folder import PRIVATE, group_of, share
from fairgate.room.system import Poll, open_to_ring

SUFFIX = ".bell"
ours: set["Bell"] = set()  # of this process; a child of fork must not keep its parent alive


def path_of(folder: str, owner: int) -> str:
    return f"{folder}/{owner:016x}{SUFFIX}"


class Bell:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.owner = (int.from_bytes(os.urandom(8), "little") >> 2) + 1
        self.path = path_of(folder, self.owner)
        try:
            self.fd = self.made()
        except OSError as wrong:
            self.remove()
            raise BadInput(f"cannot create a named pipe in {folder}: {wrong.strerror}") from wrong
        self.poll = Poll(self.fd)
        self.watched: dict[int, int] = {}  # by owner: the writing end of its bell
        ours.add(self)

    def made(self) -> int:
        """Create the pipe, and open it. Raises OSError."""
        group = group_of(os.stat(self.folder))
        while True:
            os.mkfifo(self.path, PRIVATE)
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:  # it was swept, because this process was stopped here for long
                continue
            try:
                share(fd, group)
            except OSError:
                os.close(fd)
                raise
            return fd

    def watch(self, owners: set[int]) -> set[int]:
        """Watch these owners and no others. Returns those that are dead already, or have removed their bells."""
        for owner in [each for each in self.watched if each not in owners]:
            self.forget(owner)
        dead = set()
        for owner in owners:
            if owner not in self.watched and owner != self.owner:
                fd = open_to_ring(path_of(self.folder, owner))
                if fd < 0:
                    dead.add(owner)
                else:
                    self.watched[owner] = fd
                    self.poll.watch(fd)
        return dead

    def forget(self, owner: int) -> None:
        fd = self.watched.pop(owner)
        self.poll.forget(fd)
        os.close(fd)

    def wait(self, nanoseconds: int) -> tuple[list[int], set[int]]:
        """The tickets that were rung, and the watched owners that have died."""
        tickets, ready = self.poll.wait(nanoseconds)
        dead = {owner for owner, fd in self.watched.items() if fd in ready} if ready else set()
        for owner in dead:  # the kernel would report it again and again
            self.forget(owner)
        return tickets, dead

    def close(self) -> None:
        for owner in list(self.watched):
            self.forget(owner)
        ours.discard(self)
        self.remove()
        os.close(self.fd)

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path)
