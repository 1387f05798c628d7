"""What a room asks of the kernel: the clock, the file's lock, pipes, and /proc."""

import errno
import fcntl
import os
import select
import signal
import stat
import sys
import time

from fairgate.errors import BadInput

YIELDS = 3  # attempts at the lock that only let others run; later ones sleep in between
SHORTEST, LONGEST = 20e-6, 2e-3  # seconds of these sleeps
DEAD, REMOVED, UNSEEN = -1, -2, -3
MACHINE_ID = "/etc/machine-id"
HEXADECIMAL = "0123456789abcdef"


def clock() -> int:
    """Nanoseconds. CLOCK_BOOTTIME goes on while the machine sleeps, as whatever a lease protects does."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


# The lock.


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(fd: int, patience: int) -> bool:
    """Try for this many nanoseconds. It never blocks in the kernel, because the holder of the lock may be stopped."""
    if try_lock(fd):
        return True
    end = clock() + patience
    pause = SHORTEST
    for attempt in range(1 << 62):
        if attempt < YIELDS:
            os.sched_yield()
        else:
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST)
        if try_lock(fd):
            return True
        if clock() > end:
            break
    return False


def unlock(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)


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


# Pipes.


def ring(fd: int, ticket: int) -> bool:
    """Write to a bell. False if nobody reads there any more; a full pipe has rung already.

    A program that wants to be ended by SIGPIPE is not ended by this one.
    """
    mortal = signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE}) if mortal else set()
    try:
        os.write(fd, ticket.to_bytes(8, "little", signed=True))
    except BlockingIOError:
        pass
    except BrokenPipeError:
        if mortal:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
        return False
    finally:
        if mortal:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def open_to_ring(path: str) -> int:
    """The writing end of a bell.

    DEAD: no process has the other end. REMOVED: there is no such bell any more. UNSEEN: it cannot be opened, so its
    owner may be alive.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as wrong:
        return {errno.ENXIO: DEAD, errno.ENOENT: REMOVED}.get(wrong.errno or 0, UNSEEN)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        return UNSEEN
    return fd


class Poll:
    """Waits for one's own bell, and for the death of the processes behind other bells."""

    def __init__(self, bell: int) -> None:
        self.bell = bell
        self.poll = select.poll()
        self.poll.register(bell, select.POLLIN)

    def watch(self, fd: int) -> None:
        self.poll.register(fd, 0)  # only POLLERR: nobody reads there any more

    def forget(self, fd: int) -> None:
        self.poll.unregister(fd)

    def wait(self, nanoseconds: int) -> tuple[list[int], list[int]]:
        """The tickets that were rung, and the descriptors whose processes are dead."""
        ready = [fd for fd, _ in self.poll.poll(max(0, nanoseconds) / 1e6)]
        if self.bell not in ready:
            return [], ready
        ready.remove(self.bell)
        return read_tickets(self.bell), ready


def read_tickets(bell: int) -> list[int]:
    try:
        data = os.read(bell, 4096)
    except BlockingIOError:
        return []
    return memoryview(data[: len(data) // 8 * 8]).cast("q").tolist()


# Processes.


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
