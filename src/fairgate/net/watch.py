"""Other processes of this host: whether they live, and their death at once.

A number is given to a new process when the old one is gone, so a process is its number *and* the time it was started,
as /proc has it. A pidfd is bound to one process for ever: opened first and compared afterwards, it cannot be
another's. It becomes readable when the process ends, however it ends, also while nobody has waited for it yet.
"""

import asyncio
import os
import select
from collections.abc import Callable
from pathlib import Path

UNKNOWN = 0  # a start time that nobody may read: /proc can be mounted so (hidepid)
START_FIELD = 19  # of /proc/PID/stat, counted from the one after the name


def start_time(pid: int) -> int:
    """In clock ticks since the system was booted."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return UNKNOWN
    return int(after_name(stat)[START_FIELD])


def after_name(stat: bytes) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on. The name before it may have spaces and brackets."""
    return stat[stat.rindex(b")") + 2 :].split()


def open_pidfd(pid: int, started: int) -> int | None:
    """A pidfd of this very process, the caller's to close; None if it is dead."""
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
    """Calls `on_death(peer)` once for every watched process that ends, from the loop. Use it inside a running one."""

    def __init__(self, on_death: Callable[[int], None]) -> None:
        self.on_death = on_death
        self.loop = asyncio.get_running_loop()
        self.pidfds: dict[int, int | None] = {}  # by peer. None: it was dead already

    def add(self, peer: int, pid: int, started: int) -> None:
        """From now on. One that is dead already is reported soon."""
        if peer in self.pidfds:
            return
        pidfd = self.pidfds[peer] = open_pidfd(pid, started)
        if pidfd is None:
            self.loop.call_soon(self.died, peer)
        else:
            self.loop.add_reader(pidfd, self.died, peer)

    def only(self, wanted: dict[int, tuple[int, int]]) -> None:
        """These and no others: by peer, its process."""
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
