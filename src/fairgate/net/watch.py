"""Watches other processes on this host: whether they are alive, and immediate notice of their death.

Pids are reused, so a process is identified by its pid *and* its start time from /proc. A pidfd refers to one process
forever: it is opened first and the start time compared afterwards, so it cannot refer to another one. It becomes
readable when the process ends for any reason, even before it is reaped.
"""

import asyncio
import os
import select
from collections.abc import Callable
from pathlib import Path

UNKNOWN = 0  # the start time cannot be read: /proc is mounted with hidepid
START_FIELD = 19  # in /proc/PID/stat, counted from the field after the name


def start_time(pid: int) -> int:
    """When the process was started, in clock ticks since boot; UNKNOWN if it does not exist or cannot be read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return UNKNOWN
    return int(after_name(stat)[START_FIELD])


def after_name(stat: bytes) -> list[bytes]:
    """The fields of /proc/PID/stat after the name, which may contain spaces and brackets."""
    return stat[stat.rindex(b")") + 2 :].split()


def open_pidfd(pid: int, started: int) -> int | None:
    """A pidfd of exactly this process, which the caller closes; None if it is dead."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if start_time(pid) not in (started, UNKNOWN) or has_ended(pidfd):
        os.close(pidfd)
        return None
    return pidfd


def has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def is_alive(pid: int, started: int) -> bool:
    pidfd = open_pidfd(pid, started)
    if pidfd is None:
        return False
    os.close(pidfd)
    return True


class Watch:
    """Calls `on_death(peer)` from the running loop, once for every watched process that ends."""

    def __init__(self, on_death: Callable[[int], None]) -> None:
        self.on_death = on_death
        self.loop = asyncio.get_running_loop()
        self.pidfds: dict[int, int | None] = {}  # by peer; None if it was already dead

    def add(self, peer: int, pid: int, started: int) -> None:
        """Starts watching. A process that is already dead is reported on the next turn of the loop."""
        if peer in self.pidfds:
            return
        pidfd = self.pidfds[peer] = open_pidfd(pid, started)
        if pidfd is None:
            self.loop.call_soon(self.died, peer)
        else:
            self.loop.add_reader(pidfd, self.died, peer)

    def only(self, wanted: dict[int, tuple[int, int]]) -> None:
        """Watches exactly these, given as {peer: (pid, start time)}."""
        for peer in [peer for peer in self.pidfds if peer not in wanted]:
            self.discard(peer)
        for peer, (pid, started) in wanted.items():
            self.add(peer, pid, started)

    def discard(self, peer: int) -> None:
        pidfd = self.pidfds.pop(peer, None)
        if pidfd is not None:
            self.loop.remove_reader(pidfd)
            os.close(pidfd)

    def died(self, peer: int) -> None:
        if peer in self.pidfds:
            self.discard(peer)
            self.on_death(peer)

    def close(self) -> None:
        for peer in list(self.pidfds):
            self.discard(peer)
