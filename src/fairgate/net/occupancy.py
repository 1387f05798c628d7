"""What is still inside when the peer that let it in is dead: the processes of a command, say.

Whoever lets other processes in writes a file `IDENT.held` into the runtime directory, keeps it open under an flock,
and lets those processes inherit it. The kernel keeps such a lock until the last of them is gone, whoever dies first. A
process can close what it inherited (many daemons do), so their process group counts too. And a lease that is over ends
it all: by then the processes have been ended, or their permit is known to be lost.

    occupancy = occupy(rule, Held(...))      before anybody is let in; `occupancy.file` is to be inherited
    occupancy.is_group(pid)                  now they are there, all of this process group
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
    started: int = 0  # of the process that made the group
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
        """In one write at the start: a reader sees this or what was there before."""
        self.held = held
        os.pwrite(self.file, padded(held), 0)

    def end(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.file)


SIZE = 1024  # bytes: always the same, so that a write replaces all of it


def padded(held: Held) -> bytes:
    return msgspec.json.encode(held).ljust(SIZE)


def path_of(folder: Path, ident: int) -> Path:
    return folder / f"{ident}{HELD}"


def occupy(rule: Access, held: Held) -> OccupancyFile:
    """BadInput if the directory cannot be written to."""
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
    """All that may still be inside. What is over is removed."""
    helds = []
    for path in folder.glob(f"*{HELD}"):
        held = read(path)
        if held is not None:
            helds.append(held)
    return helds


def read(path: Path) -> Held | None:
    """None, and the file removed, if that is over."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        held = msgspec.json.decode(os.read(file, SIZE), type=Held)
        if not is_over(held, file):
            return held
    except msgspec.DecodeError:  # its writer has not begun: nobody is inside by it yet
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
    """Is anybody in that process group? Its number is nobody else's while anybody is; its maker may be gone."""
    if held.group == NO_GROUP:
        return False
    try:
        os.killpg(held.group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody, of another user
    maker = start_time(held.group)
    return maker in (0, held.started) and not is_dead(held.group)  # else the number has been given again


def is_dead(group: int) -> bool:
    """Has it nobody but the dead that nobody has waited for? Where process 1 does not do that, they stay for ever."""
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
