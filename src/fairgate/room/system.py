"""What a room asks of the kernel about other processes and the machine. `calls` has what every request needs."""

import fcntl
import os
import sys

from fairgate.errors import BadInput

MACHINE_ID = "/etc/machine-id"
HEXADECIMAL = "0123456789abcdef"


def lock_owner(fd: int) -> int:
    """The process that has the lock, as far as this one can see it, else 0."""
    inode = b":%d" % os.fstat(fd).st_ino
    with open("/proc/locks", "rb") as file:
        for row in file:
            fields = row.split()
            if fields[1] == b"FLOCK" and fields[5].endswith(inode):
                return int(fields[4])
    return 0


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


def process(pid: int) -> tuple[bytes, bytes]:
    """Its state and its process group, or empty strings if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            text = file.read(512)
    except OSError:
        return b"", b""
    state, _, group = text[text.rindex(b")") + 2 :].split(None, 3)[:3]
    return state, group


def is_stopped(pid: int) -> bool:
    return process(pid)[0] in (b"T", b"t")


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
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            text = file.read(1024)
    except OSError:
        return 0
    return int(text[text.rindex(b")") + 2 :].split()[19]) * (10**9 // os.sysconf("SC_CLK_TCK"))


def is_populated(group: int) -> bool:
    """Does a process group have a process that is not a zombie? Where nobody reaps them, zombies stay for long."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    found = [process(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    return any(state not in (b"Z", b"X") for state, of in found if of == b"%d" % group)


def pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def boot_id() -> int:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return int(file.read().replace("-", "")[:15], 16)


def machine_id(path: str = MACHINE_ID) -> str:
    """32 digits that name this installation, or "" if it has no name. Raises BadInput if that cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(64).strip()
    except FileNotFoundError:
        return ""
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    return text if len(text) == 32 and not text.strip(HEXADECIMAL) else ""  # else "uninitialized"
