"""Tracks processes that are inside a gate and may outlive the peer that let them in, such as those of a command.

A peer that lets processes in writes a file `IDENT.held` to the runtime directory, keeps it open under an flock, and
lets the processes inherit it. The kernel keeps the lock until the last of them is gone, in whatever order they die.
Because a process can close inherited files (many daemons do), their process group counts too. An expired lease ends an
occupancy in any case: by then the processes have been killed, or their permit is known to be lost.

    occupancy = occupy(rule, Held(...))      before any process is let in; `occupancy.file` is to be inherited
    occupancy.is_group(pid)                  they are running, in this process group
    occupancy.end()                          they are gone
"""

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairgate.errors import BadInput
from fairgate.net.access import Access, open_shared
from fairgate.net.watch import after_name, start_time

HELD = ".held"
NO_LEASE = 0
NO_GROUP = 0
DEAD = (b"Z", b"X")


class Held(msgspec.Struct, frozen=True):
    gate: str
    ident: int
    slot: int
    deadline: int = NO_LEASE  # ns on CLOCK_BOOTTIME
    group: int = NO_GROUP  # a process group
    started: int = 0  # start time of the group's leader
    boot: str = ""

    def is_overdue(self) -> bool:
        return self.deadline != NO_LEASE and time.clock_gettime_ns(time.CLOCK_BOOTTIME) >= self.deadline


@dataclass
class OccupancyFile:
    path: Path
    held: Held
    file: int

    def is_group(self, group: int) -> None:
        self.tell(msgspec.structs.replace(self.held, group=group, started=start_time(group)))

    def is_until(self, deadline: int) -> None:
        self.tell(msgspec.structs.replace(self.held, deadline=deadline))

    def tell(self, held: Held) -> None:
        """Replaces the content with a single write, so that readers see either the old or the new."""
        self.held = held
        os.pwrite(self.file, padded(held), 0)

    def end(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.file)


SIZE = 1024  # bytes: constant, so that a write replaces everything


def padded(held: Held) -> bytes:
    return msgspec.json.encode(held).ljust(SIZE)


def path_of(folder: Path, ident: int) -> Path:
    return folder / f"{ident}{HELD}"


def occupy(rule: Access, held: Held) -> OccupancyFile:
    """Creates and locks the file. BadInput if the directory cannot be written to."""
    held = msgspec.structs.replace(held, boot=boot())
    path = path_of(rule.folder, held.ident)
    try:
        file = open_shared(rule, path, os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.pwrite(file, padded(held), 0)
    except OSError as wrong:
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong
    return OccupancyFile(path, held, file)


def found(folder: Path) -> list[Held]:
    """All occupancies that have not ended. Removes the files of those that have."""
    helds = []
    for path in folder.glob(f"*{HELD}"):
        held = read(path)
        if held is not None:
            helds.append(held)
    return helds


def read(path: Path) -> Held | None:
    """The content of the file; None, after removing the file, if the occupancy has ended."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        held = msgspec.json.decode(os.read(file, SIZE), type=Held)
        if not is_over(held, file):
            return held
    except msgspec.DecodeError:  # not written yet: no process is inside yet
        if is_locked(file):
            return None
    finally:
        os.close(file)
    path.unlink(missing_ok=True)
    return None


def is_over(held: Held, file: int) -> bool:
    return held.boot != boot() or held.is_overdue() or not (is_locked(file) or is_populated(held))


def is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def is_populated(held: Held) -> bool:
    """Whether the process group has a living member. Its number is not reused before it is empty."""
    if held.group == NO_GROUP:
        return False
    try:
        os.killpg(held.group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # a process of another user
    maker = start_time(held.group)
    return maker in (0, held.started) and not is_dead(held.group)  # otherwise the number was reused


def is_dead(group: int) -> bool:
    """Whether the group has only zombies left. Where process 1 does not reap them, they stay forever."""
    states = [state for state, of in map(state_and_group, Path("/proc").glob("[0-9]*/stat")) if of == group]
    return bool(states) and all(state in DEAD for state in states)


def state_and_group(stat: Path) -> tuple[bytes, int]:
    try:
        state, _, group, *_ = after_name(stat.read_bytes())
    except OSError:
        return b"", NO_GROUP
    return state, int(group)


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
