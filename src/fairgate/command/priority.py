"""Real-time priority for a peer that others wait for, and an end of it if the peer computes without a pause."""

from __future__ import annotations

import logging
import os
import resource
import signal

LONGEST = 1_000_000  # us of processor time without a pause

log = logging.getLogger("fairgate.live")


def come_first() -> None:
    """Let this process, and the threads that it starts, run before the crowd that waits for it, if it may.

    A late peer loses the permits of all its guests. A peer works for less than a millisecond at a time, so others
    hardly notice. One that takes much longer would keep them from running: it steps back.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return
    signal.signal(signal.SIGXCPU, lambda *_: step_back())
    resource.setrlimit(resource.RLIMIT_RTTIME, (LONGEST, resource.RLIM_INFINITY))


def step_back() -> None:
    """All threads get normal priority."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))
    log.warning("this peer has computed for %g s without a pause, so it gives up its real-time priority", LONGEST / 1e6)
