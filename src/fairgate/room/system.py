"""What a room asks of the kernel about other processes and the machine. `calls` has what every request needs."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from fairgate.errors import BadInput

MACHINE_ID = "/etc/machine-id"
HEXADECIMAL = "0123456789abcdef"
PID_BITS = 23  # the largest possible id is 1 << 22
PROCESS = "/proc/self"
INITIAL_TIME = 0xEFFFFFFA  # the inode of the time namespace in which every machine starts, whose clock is not shifted
CLOCK_BITS = 32  # of a boot id, for the clock


class OtherClock(BadInput):
    """A gate is in use where CLOCK_BOOTTIME is another one."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"cannot use {path}: processes in another time namespace use it, where the clock of leases differs from the"
            " one here: use it from there (nsenter --time), or use another directory here"
        )


def lock_owner(fd: int) -> int:
    """The process that has the lock, as far as this one can see it, else 0."""
    try:
        name = lock_name(fd)
        with open("/proc/locks", "rb") as file:
            for row in file:
                fields = row.split()
                if fields[1] == b"FLOCK" and fields[5] == name:
                    return int(fields[4])
    except OSError:  # too many open files
        pass
    return 0


def lock_name(fd: int) -> bytes:
    """Device and inode of a file, as /proc/locks writes them.

    On btrfs, for one, fstat has another device. `mark_open` has set a lock that tells the right one.
    """
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        for row in file:
            if row.startswith(b"lock:"):
                return row.split()[6]
    found = os.fstat(fd)
    return b"%02x:%02x:%d" % (os.major(found.st_dev), os.minor(found.st_dev), found.st_ino)


def mark_open(fd: int) -> None:
    """Show others that this process has the file open, until it is closed. The mark does not lock anybody out.

    It is a read lock of the open file description, which other descriptors of the same file do not affect.
    """
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, whole_file(fcntl.F_RDLCK))


def is_open_elsewhere(fd: int) -> bool:
    """Has anybody marked the file as open, except through this descriptor?"""
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, whole_file(fcntl.F_WRLCK))
    return not answer.startswith(fcntl.F_UNLCK.to_bytes(2, sys.byteorder))


def whole_file(kind: int) -> bytes:
    """A struct flock: after its type, zeros stand for the whole file."""
    return kind.to_bytes(2, sys.byteorder) + bytes(30)


def stat(pid: int) -> list[bytes]:
    """What /proc/PID/stat says after the name: state, parent, process group and so on. Empty if it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            text = file.read(1024)
    except OSError:
        return []
    return text[text.rindex(b")") + 2 :].split()


def process(pid: int) -> tuple[bytes, bytes]:
    """Its state and its process group, or empty strings if there is no such process."""
    fields = stat(pid)
    return (fields[0], fields[2]) if fields else (b"", b"")


def is_alive(pid: int) -> bool:
    state = process(pid)[0]
    return state not in (b"Z", b"X") if state else exists(pid)


def exists(pid: int) -> bool:
    """Is there such a process, even if /proc does not show it (hidepid)?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def started(pid: int) -> int:
    """When the process was started: nanoseconds of CLOCK_BOOTTIME, rounded down to a tick; 0 if that is not known."""
    return start_in(stat(pid))


def start_in(fields: list[bytes]) -> int:
    return int(fields[19]) * (10**9 // os.sysconf("SC_CLK_TCK")) if fields else 0


def ancestors() -> Iterator[tuple[int, int]]:
    """The parent of this process, the parent of that one and so on: their ids, and when they were `started`.

    It ends where no more can be seen.
    """
    fields = stat(os.getpid()) if is_ours() else []
    while fields:
        pid, born = int(fields[1]), start_in(fields)
        fields = stat(pid) if pid else []
        if not fields or start_in(fields) > born:  # the parent is dead, and its id is in use again
            return
        yield pid, start_in(fields)


def is_ours() -> bool:
    """Does /proc show the ids of this process's own pid namespace?"""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def has_open(path: str) -> bool:
    """Has this process a descriptor of the file?"""
    try:
        wanted = os.stat(path)
        names = os.listdir("/proc/self/fd")
    except OSError:
        return False
    for name in names:
        with suppress(OSError):  # the descriptor of the listing itself is closed again
            if os.path.samestat(os.fstat(int(name)), wanted):
                return True
    return False


def is_populated(group: int) -> bool:
    """Does a process group have a process that is not a zombie? Where nobody reaps them, zombies stay for long."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        found = [process(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # too many open files
        return True
    return any(state not in (b"Z", b"X") for state, of in found if of == b"%d" % group)


def pid_namespace(pid: int | str = "self") -> int:
    """The namespace in which this process has its id. Raises OSError."""
    return os.stat(f"/proc/{pid}/ns/pid").st_ino


def name_of(pid: int) -> int:
    """A number that names a process in all namespaces: its own, and its id there; 0 if that cannot be seen."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for row in file:
                if row.startswith(b"NSpid:"):
                    return name_in(pid_namespace(pid), int(row.split()[-1]))
    except OSError:
        pass
    return 0


def name_in(namespace: int, pid: int) -> int:
    return namespace << PID_BITS | pid


def boot_id(process: str = PROCESS) -> int:
    """Which boot of the machine, and in the lower bits, which CLOCK_BOOTTIME: time namespaces have clocks of their own.

    Processes with different boot ids cannot compare times.
    """
    with open("/proc/sys/kernel/random/boot_id", "rb", 0) as file:
        boot = int(file.read(64).replace(b"-", b"")[:15], 16)
    offset = clock_offset(process)
    if not offset:
        return boot
    from zlib import crc32  # noqa: PLC0415 (most processes are in the first time namespace)

    return boot ^ (crc32(b"%d" % offset) or 1)


def is_this_boot(boot: int) -> bool:
    """Is it the id of the boot that this process is in, with whatever clock?"""
    return boot >> CLOCK_BITS == boot_id() >> CLOCK_BITS


def clock_offset(process: str = PROCESS) -> int:
    """By how many nanoseconds the CLOCK_BOOTTIME of this process is ahead of the machine's.

    Raises BadInput if that cannot be found out.
    """
    try:
        own = os.stat(f"{process}/ns/time").st_ino
    except FileNotFoundError:  # the kernel has no time namespaces
        return 0
    if own == INITIAL_TIME:
        return 0
    if own != os.stat(f"{process}/ns/time_for_children").st_ino:  # then the offsets are those of the children
        raise BadInput(
            "this process has made a time namespace for its children (unshare), so it cannot find out its own clock:"
            " open gates before that, or in a child"
        )
    with open(f"{process}/timens_offsets", "rb", 0) as file:
        rows = [row.split() for row in file.read(4096).splitlines()]
    return next((int(row[1]) * 10**9 + int(row[2]) for row in rows if row[0] == b"boottime"), 0)


def machine_id(path: str = MACHINE_ID) -> str:
    """32 digits that name this installation, or "" if it has no name. Raises BadInput if that cannot be read."""
    try:
        with open(path, "rb", 0) as file:
            text = file.read(64).strip().decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    return text if len(text) == 32 and not text.strip(HEXADECIMAL) else ""  # else "uninitialized"
