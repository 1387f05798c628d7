"""A command that runs inside of a gate: its processes, all of one group.

The command itself dies with this process, however this one ends (PR_SET_PDEATHSIG). What it started may live on; the
occupancy (net/occupancy.py) that they inherit keeps the slot theirs.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from fairgate.live.signals import Signals
from fairgate.live.terminal import Terminal
from fairgate.net.occupancy import OccupancyFile, is_populated

PR_SET_PDEATHSIG = 1
KILLED = 128  # and the signal's number: how a shell tells of a command that died of one
libc = ctypes.CDLL(None)


class Command:
    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], occupancy: OccupancyFile, shared: bool
    ) -> None:
        self.words = words
        self.environ = environ
        self.occupancy = occupancy
        self.shared = shared  # with all that the command starts
        self.pid = 0
        self.status: int | None = None  # its exit code
        self.stopped = 0  # the signal that stopped it

    def start(self, signals: Signals, terminal: Terminal | None) -> None:
        """In the foreground of this terminal. OSError if it cannot be run."""
        parent = os.getpid()

        def before_exec() -> None:
            signals.default()
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before it could be said that we die with it
                os.kill(os.getpid(), signal.SIGKILL)
            if self.shared:
                self.occupancy.is_group(os.getpid())  # here, for the parent may die before it can
            if terminal is not None:
                terminal.give(os.getpid())

        os.set_inheritable(self.occupancy.file, self.shared)
        process = subprocess.Popen(
            self.words,
            env=self.environ,
            close_fds=False,  # what others let us inherit is the command's; our own are closed by its exec
            process_group=0,
            preexec_fn=before_exec,  # noqa: PLW1509 (it takes no lock that another thread could hold at the fork)
        )
        os.set_inheritable(self.occupancy.file, False)
        self.pid = process.pid
        process.returncode = 0  # it is waited for below, because Popen knows nothing of being stopped
        if self.shared:
            self.occupancy.is_group(self.pid)

    def look(self) -> None:
        """What became of it: `status`, or `stopped`."""
        if self.status is not None:
            return
        self.stopped = 0
        pid, how = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return
        if os.WIFSTOPPED(how):
            self.stopped = os.WSTOPSIG(how)
        elif os.WIFSIGNALED(how):
            self.status = KILLED + os.WTERMSIG(how)
        else:
            self.status = os.WEXITSTATUS(how)

    def send(self, signum: int) -> None:
        """To all of the group."""
        with suppress(ProcessLookupError, PermissionError):  # nobody is left, or nobody whom we may end
            os.killpg(self.pid, signum)

    def is_alive(self) -> bool:
        """It, or what it started, if that counts."""
        return self.status is None or (self.shared and is_populated(self.occupancy.held))
