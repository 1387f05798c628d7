"""Bells: named pipes that wake a process, and show when it is dead.

A bell is opened for reading and writing by its owner alone. Writing to it wakes the owner. A process that has it open
for writing only gets POLLERR from the kernel when the owner is gone, however it ended; opening it then fails with
ENXIO. So the bell's random name is its owner's identity, and neither process ids nor start times are needed. A process
that inherits the pipe keeps the owner alive.
"""

from __future__ import annotations

import os
from _thread import RLock
from contextlib import suppress

from fairgate.errors import BadInput
from fairgate.once import once
from fairgate.room.calls import Poll, open_to_ring, ring
from fairgate.room.folder import PRIVATE, group_of, share

SUFFIX = ".bell"
MOST_UNWATCHED = 16  # bells of others that stay open although they are not watched at the moment
ours: set[Bell] = set()  # of this process; a child of fork must not keep its parent alive
forking = RLock()  # no thread forks while another one opens or closes a pipe or a file of ours


def path_of(folder: str, owner: int) -> str:
    return f"{folder}/{owner:016x}{SUFFIX}"


class Bell:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.owner: int = (int.from_bytes(os.urandom(8), "little") >> 2) + 1
        self.path = path_of(folder, self.owner)
        self.busy = False  # a request is being made, or waits
        self.lines: dict[int, int] = {}  # by owner: the writing ends of other bells
        self.watched: set[int] = set()  # those of them that are watched
        for _ in once(forking):
            try:
                self.fd: int = self.made()
            except OSError as wrong:
                self.remove()
                raise BadInput(f"cannot create a named pipe in {folder}: {wrong.strerror}") from wrong
            ours.add(self)
        self.poll = Poll(self.fd)

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
        if owners == self.watched:
            return set()
        for owner in self.watched - owners:
            self.watched.discard(owner)
            self.poll.forget(self.lines[owner])
        dead = set()
        for owner in owners - self.watched:
            if owner == self.owner:
                continue
            if owner not in self.lines:
                fd = open_to_ring(path_of(self.folder, owner))
                if fd < 0:
                    dead.add(owner)
                    continue
                self.lines[owner] = fd
            self.watched.add(owner)
            self.poll.watch(self.lines[owner])
        if len(self.lines) > MOST_UNWATCHED + len(self.watched):
            for owner in [each for each in self.lines if each not in self.watched]:
                os.close(self.lines.pop(owner))
        return dead

    def forget(self, owner: int) -> None:
        self.watched.discard(owner)
        fd = self.lines.pop(owner)
        self.poll.forget(fd)
        os.close(fd)

    def wait(self, nanoseconds: int) -> tuple[list[int], set[int]]:
        """The tickets that were rung, and the watched owners that have died."""
        tickets, ready = self.poll.wait(nanoseconds)
        dead = {owner for owner in self.watched if self.lines[owner] in ready} if ready else set()
        for owner in dead:  # the kernel would report it again and again
            self.forget(owner)
        return tickets, dead

    def ring(self) -> None:
        """Let its owner look, unless that has closed it meanwhile: the descriptor may be another file's by now."""
        for _ in once(forking):
            if self.fd >= 0:
                ring(self.fd, 0)

    def close(self, remove: bool = True) -> None:
        """Closing twice is a no-op: if a room is closed while a thread waits, both of them do it.

        Without `remove` others can still see whether processes have inherited the pipe. If not, its owner counts as
        dead.
        """
        for _ in once(forking):
            if self.fd >= 0:
                for fd in self.lines.values():
                    os.close(fd)
                self.lines.clear()
                self.watched.clear()
                if remove:
                    self.remove()
                os.close(self.fd)
                self.fd = -1
                ours.discard(self)

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path)
