"""The file of a room: created, checked, mapped, grown and locked.

The lock is an flock that is tried again and again, not waited for in the kernel. If nobody has taken it for a while and
the process that has it is stopped, that process is continued, so that it can finish its change. It then stops itself
again (STOP in the header).

Only /proc/locks tells which process has the lock, and reading it holds up all file locks of the machine. So the
processes that wait take turns (LOOK_AT in the header): hundreds that read it at once would keep the owner of the lock
from going on, and so from ever unlocking.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from fairgate.errors import BadInput, GateStuck
from fairgate.once import once
from fairgate.room import calls, keeping, links, system, table
from fairgate.room.bell import forking
from fairgate.room.calls import FOREVER
from fairgate.room.folder import PRIVATE, STICKY, group_of, share
from fairgate.room.layout import (
    BOOT,
    CAPACITY,
    CLUSTER,
    DIRTY,
    IS_A_ROOM,
    IS_BEING_MADE,
    KEPT,
    LAST_FENCE,
    LIMIT,
    LOOK_AT,
    MAGIC,
    MOST_SEATS,
    MOST_SLOTS,
    REBUILT,
    RESCUED,
    SEATS,
    SLOTS,
    STOP,
    SWEPT,
    THIS_VERSION,
    TURNS,
    VERSION,
    K,
)
from fairgate.room.links import DAMAGE, Table
from fairgate.room.opening import FIRST_SEATS, FIRST_SIZE, allocate, is_elsewhere, open_file, start
from fairgate.room.senses import LiveSenses
from fairgate.room.table import Change, nobody_is_stopped
from fairgate.room.words import mapped

PATIENCE = 30_000_000  # ns for the lock, before its owner is looked up
HOUR = 3600  # seconds
SECOND = 10**9  # ns
STUCK = 10 * SECOND  # until the lock of a process counts as stuck
LOOK_PAUSE = 100_000_000  # ns from one look at the owner of the lock to the next, of all processes together
LOOK_SHARE = 10  # if looks are slow, they take at most this part of the time
LONGEST_PAUSE = 2 * SECOND
NOT_LOOKED = -1  # in place of a process
LAST_SWEPT = ".swept"  # a file: its time tells when
HEADER = 8 * SLOTS
BEGIN = IS_A_ROOM.to_bytes(8, "little") + THIS_VERSION.to_bytes(8, "little")  # MAGIC and VERSION
BLOCK = 512  # bytes: what st_blocks counts
files: set[RoomFile] = set()  # that are open; a child of fork must not keep the lock of its parent


class RoomFile:
    """One gate's file. `m` is its table, which may be used only with the lock."""

    m: Table

    def __init__(self, path: str, k: int, create: bool = True, cluster: bool = False) -> None:
        """Open the file, or create it with this k (1 if it is 0). Raises BadInput if it cannot be used.

        `cluster`: it is a room of a cluster.
        """
        if not 0 <= k <= MOST_SLOTS:
            raise BadInput(f"k must be 1..{MOST_SLOTS}, not {k}")
        self.path = path
        self.cluster = cluster
        self.pid = os.getpid()
        self.fd = -1
        self.seats = 0
        self.capacity = 0
        self.mapped = False
        self.locked = False  # perhaps, if it is True
        while not self.opened(k, create):
            pass
        self.name: int = system.name_in(system.pid_namespace(), self.pid)

    def opened(self, k: int, create: bool) -> bool:
        """False if the file was swept between opening and locking it."""
        for _ in once(forking):
            self.fd = open_file(self.path, k, create, self.cluster)
            files.add(self)
        try:
            self.take_lock()
            if self.is_linked():
                self.use(k)
                self.m[TURNS] = (self.m[TURNS] + 1) % LIMIT
                system.mark_open(self.fd)
                self.touch()
                self.unlock()
                return True
        except BaseException:
            self.drop()  # which also unlocks it
            raise
        self.drop()
        return False

    def use(self, k: int) -> None:
        """With the lock: check the table.

        A file without one gets it only if it is ours: after a power failure its contents may be lost. Our files have
        the sticky bit (folder.py), which no program sets for files of its own.
        """
        found = os.fstat(self.fd)
        if is_blank(self.fd, found.st_size):
            if not found.st_mode & STICKY:
                raise BadInput(
                    f"cannot use {self.path}: it is empty, and may be another program's; use another name, or remove it"
                    " if nothing needs it"
                )
            if system.is_open_elsewhere(self.fd):
                raise BadInput(f"cannot use {self.path}: it was emptied while processes use it; end them first")
            self.allocate(FIRST_SIZE)
            self.map()
            start(self.m, MOST_SLOTS, FIRST_SEATS, k or 1, self.cluster)
        else:
            self.map()
        if self.m[MAGIC] == IS_BEING_MADE or self.m[VERSION] != THIS_VERSION:
            self.finish_or_convert(k, found.st_size)
        self.check()
        if found.st_blocks * BLOCK < found.st_size:  # a copy may have holes
            self.allocate(found.st_size)
        if self.m[BOOT] != system.boot_id():
            self.start_again(k)

    def finish_or_convert(self, k: int, size: int) -> None:
        """The creator of the table has not finished it, or it is of an older version. Raises BadInput if it is in use.

        Anything else is left as it is, and refused.
        """
        from fairgate.room import older  # noqa: PLC0415 (hardly any file needs it)

        if self.m[MAGIC] == IS_BEING_MADE and size >= older.SIZE_THEN:
            self.allocate(FIRST_SIZE)
            self.map()
            start(self.m, MOST_SLOTS, FIRST_SEATS, k or 1, self.cluster)
        m = older.converted(self.m)
        if m is not self.m:
            self.convert(m, k)

    def convert(self, m: Table, k: int) -> None:
        """`m`: what the table of an older version says, as one of today."""
        self.check_kind(m)
        if is_elsewhere(m):
            raise BadInput(f"cannot use {self.path}: it belongs to another machine; remove it if it is a copy")
        senses = LiveSenses(os.path.dirname(self.path))
        if system.is_open_elsewhere(self.fd) or senses.living(m, links.all_seats(m)):
            raise BadInput(
                f"cannot use {self.path}: processes of an older version of fairgate are using it; end them first, or"
                " use that version"
            )
        self.end_kept(m)
        self.allocate(max(8 * len(m), os.fstat(self.fd).st_size))
        self.map()
        self.m[LAST_FENCE] = m[LAST_FENCE]
        start(self.m, m[CAPACITY], m[SEATS], k or m[K], self.cluster)

    def start_again(self, k: int) -> None:
        """The table is of another boot, or of a time namespace with another clock. Raises BadInput if it is in use."""
        if is_elsewhere(self.m):
            raise BadInput(f"cannot use {self.path}: it belongs to another machine; remove it if it is a copy")
        senses = LiveSenses(os.path.dirname(self.path))
        if system.is_open_elsewhere(self.fd) or senses.living(self.m, links.all_seats(self.m)):
            if system.is_this_boot(self.m[BOOT]):
                raise system.OtherClock(self.path)
            raise BadInput(
                f"cannot use {self.path}: processes with another boot id are using it, as in a container with a /proc"
                " of its own; use another directory"
            )
        self.end_kept(self.m)
        start(self.m, self.capacity, self.seats, k or self.m[K], self.cluster)

    def end_kept(self, m: Table) -> None:
        """Of a table that nobody uses: only KEPT has the latest fence of a process that kept its slot."""
        if m[KEPT]:
            with suppress(*DAMAGE):
                keeping.end(m, Change(0, nobody_is_stopped))

    def touch(self) -> None:
        """Files that were not used for a day are swept."""
        if time.time() - os.fstat(self.fd).st_mtime > HOUR:
            with suppress(OSError):  # its mode may have changed
                os.utime(self.fd)

    def claim_sweep(self, by_path: bool) -> bool:
        """Is it up to this process to sweep the directory now?

        The directory of named gates has a file for that. One that a user has named gets no further files: there every
        gate has its own turn.
        """
        if not by_path:
            return claim_hour(os.path.dirname(self.path))
        now = calls.clock()
        due = not 0 <= now - self.m[SWEPT] < HOUR * SECOND
        if due:
            self.m[SWEPT] = now
        return due

    def allocate(self, size: int) -> None:
        try:
            allocate(self.fd, size)
        except OSError as wrong:
            raise BadInput(f"cannot use {self.path}: {wrong.strerror}") from wrong

    def map(self) -> None:
        """Map the file through a descriptor of its own: mmap keeps a copy of it, which a forked child inherits.

        A copy of `fd` would keep the lock taken when this process dies.
        """
        other = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)
        try:
            size = os.fstat(other).st_size
            if size < HEADER:
                raise BadInput(
                    f"cannot use {self.path}: it is too short for a gate file ({size} bytes); remove it if nobody uses"
                    " the gate"
                )
            self.m = mapped(other, size // 8 * 8)
        except ValueError as wrong:  # it has become shorter meanwhile; BadInput is one, too
            raise wrong if isinstance(wrong, BadInput) else BadInput(f"cannot use {self.path}: {wrong}") from None
        finally:
            os.close(other)
        self.mapped = True

    def grow(self) -> None:
        """With the lock: make room for twice as many seats."""
        self.check_whole()
        seats = 2 * self.m[SEATS]
        if seats > MOST_SEATS:
            raise BadInput(f"{self.path} is full: {self.m[SEATS]} requests")
        self.allocate(8 * links.size(self.m[CAPACITY], seats))
        self.map()
        table.grow(self.m, seats)
        self.seats = seats

    # The lock.

    def prepare(self, change: Change) -> None:
        """With the lock: map what has grown, and repair the table if a process died while it changed it.

        Nobody keeps a slot from then on.
        """
        m = self.m
        if m[STOP] and m[STOP] != self.name:  # it has unlocked, or died
            m[STOP] = 0
        if m[SEATS] != self.seats or m[CAPACITY] != self.capacity:
            try:
                self.map()
                self.check()
            except BadInput:
                self.m = m  # which leads here again
                raise
            m = self.m
        if m[DIRTY]:
            self.rebuild(change)
        if m[KEPT]:
            self.end_keeping(change)
        self.check_whole()

    def check(self) -> None:
        """Raises BadInput if the header cannot be used."""
        wrong = table.why_unusable(self.m)
        if wrong:
            raise BadInput(
                f"cannot use {self.path}: {wrong}; use another name, or remove it if it is a gate that nobody uses"
            )
        self.check_kind(self.m)
        self.seats = self.m[SEATS]
        self.capacity = self.m[CAPACITY]

    def check_kind(self, m: Table) -> None:
        if (m[CLUSTER] != 0) != self.cluster:
            whose = "a gate of a cluster: join that" if not self.cluster else "not a gate of a cluster: remove it"
            raise BadInput(f"cannot use {self.path}: it is {whose}")

    def check_whole(self) -> None:
        """Raises BadInput if the file was cut off meanwhile: then there are only zeros (words.pyx)."""
        if self.m[MAGIC] != IS_A_ROOM:
            raise BadInput(f"{self.path} was cut off or overwritten: remove it if nobody uses the gate")

    def rebuild(self, change: Change) -> None:
        """Raises BadInput if that is not possible."""
        try:
            table.rebuild(self.m, change)
            self.m[REBUILT] = self.m[REBUILT] + 1
        except DAMAGE as wrong:
            raise BadInput(f"{self.path} is damaged ({wrong!r}): remove it if nobody uses the gate") from wrong

    def end_keeping(self, change: Change) -> None:
        """See keeping.py. Raises BadInput if the table is damaged and cannot be rebuilt."""
        try:
            keeping.end(self.m, change)
        except DAMAGE:
            self.m[KEPT] = 0
            self.rebuild(change)

    def take_lock(self) -> None:
        """Raises GateStuck if that takes too long."""
        self.locked = True  # an interrupt may come at any moment: unlocking in vain is harmless
        if not calls.try_lock(self.fd):
            self.wait_for_lock(FOREVER)

    def wait_for_lock(self, patience: int) -> None:
        """Raises BlockingIOError after this many ns, and GateStuck if it may wait forever and that takes too long."""
        if patience < FOREVER:
            if not calls.lock(self.fd, patience):
                self.locked = False
                raise BlockingIOError
            return
        watch = LockWatch(self)
        since = watch.since
        while not calls.lock(self.fd, PATIENCE, since):
            wrong = watch.look()
            if wrong is not None:
                if calls.try_lock(self.fd):
                    return
                raise wrong

    def turns(self) -> int:
        """How often the lock was taken. While that number rises, the lock is only busy."""
        return self.m[TURNS] if self.mapped else int.from_bytes(os.pread(self.fd, 8, 8 * TURNS), "little")

    def continue_owner(self) -> int:
        """If the process that has the lock is stopped, let it finish its change.

        Returns that process, 0 if it cannot be seen, or NOT_LOOKED: it is not up to this process to look now.
        """
        began = calls.clock()
        if self.is_reachable():
            if 0 < self.m[LOOK_AT] - began <= LONGEST_PAUSE:  # else it is not of this boot
                return NOT_LOOKED
            self.m[LOOK_AT] = began + LOOK_PAUSE
        pid = system.lock_owner(self.fd)
        if pid and pid != self.pid and calls.is_stopped(pid):
            self.continue_stopped(pid)
        if self.mapped:
            now = calls.clock()
            self.m[LOOK_AT] = now + min(max(LOOK_SHARE * (now - began), LOOK_PAUSE), LONGEST_PAUSE)
        return pid

    def is_reachable(self) -> bool:
        """Map the table, if there is one: a process may have to wait for the lock before it can check it."""
        if not self.mapped:
            header = os.pread(self.fd, HEADER, 0)
            if len(header) == HEADER and header.startswith(BEGIN):
                self.map()
        return self.mapped

    def continue_stopped(self, pid: int) -> None:
        if self.mapped:
            self.m[STOP] = system.name_of(pid)
            if system.lock_owner(self.fd) != pid or not calls.is_stopped(pid):  # somebody else continued it
                self.m[STOP] = 0
                return
            self.m[RESCUED] = self.m[RESCUED] + 1
        with suppress(PermissionError, ProcessLookupError):  # another user's: all have to wait for it
            os.kill(pid, signal.SIGCONT)

    def stuck(self, pid: int) -> GateStuck | None:
        """Why nobody can have the lock, which this process has had for long; None if that process is only slow."""
        if not pid:
            whom = "a process that cannot be seen from here, as in another container: continue it if it is stopped"
        elif calls.is_stopped(pid):
            whom = f"process {pid}, which is stopped: continue it with kill -CONT {pid}"
        elif not system.is_alive(pid):
            whom = f"a process that process {pid}, which is dead, has forked: end it"
        else:
            return None
        return GateStuck(f"{self.path} has been locked for {STUCK // SECOND} s by {whom}")

    def unlock(self) -> None:
        calls.unlock(self.fd)
        self.locked = False

    def stop_again(self) -> None:
        """After the change and its rings: a process that was continued to finish them stops itself again."""
        if self.m[STOP] == self.name:
            self.m[STOP] = 0
            os.kill(self.pid, signal.SIGSTOP)

    def is_linked(self) -> bool:
        """Is it still the file of that name? Its number of links does not tell: a dead creator may have left one."""
        return calls.is_same_file(self.path, self.fd)

    def close(self) -> None:
        self.touch()
        self.drop()

    def drop(self) -> None:
        for _ in once(forking):
            files.discard(self)
            os.close(self.fd)
            self.fd = -1


class LockWatch:
    """One wait for the lock of a file."""

    def __init__(self, file: RoomFile) -> None:
        self.file = file
        self.restart()

    def restart(self) -> None:
        self.turns = self.file.turns()
        self.since = calls.clock()

    def look(self) -> GateStuck | None:
        """To be called now and then while one waits: help the owner of the lock on. Returns why that is in vain."""
        turns = self.file.turns()
        if turns != self.turns:
            self.turns = turns
            self.since = calls.clock()
            return None
        pid = self.file.continue_owner()
        if pid == NOT_LOOKED or calls.clock() - self.since < STUCK:
            return None
        return self.file.stuck(pid)


def is_blank(fd: int, size: int) -> bool:
    """Is the file empty, or only zeros?"""
    if size > FIRST_SIZE or os.pread(fd, 8, 0).strip(b"\0"):
        return False
    return not os.pread(fd, size, 0).strip(b"\0")


def claim_hour(folder: str) -> bool:
    """True for the first process in an hour. In a new directory there is nothing to sweep yet."""
    path = f"{folder}/{LAST_SWEPT}"
    new = False
    try:
        if abs(time.time() - os.lstat(path).st_mtime) < HOUR:
            return False
    except FileNotFoundError:
        new = True
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE)
    except OSError:
        return False
    with suppress(PermissionError):  # another user's
        share(fd, group_of(os.stat(folder)))
    os.utime(fd)
    os.close(fd)
    return not new
