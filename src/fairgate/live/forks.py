"""Notices that this process is a forked child: it cannot use the peers of its parent."""

import os

FORKED = "this peer belongs to the parent process: join again in the child, after the fork"
process = [os.getpid()]  # our pid, cached: a getpid() per call would cost more than entering does


def forked() -> None:
    process[0] = os.getpid()


os.register_at_fork(after_in_child=forked)
