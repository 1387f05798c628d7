"""A command that runs inside a gate, with its processes in one process group.

The command dies with this process, however this process ends (PR_SET_PDEATHSIG). Processes that it started may live on;
they keep the slot through the occupancy file that they inherit (net/occupancy.py).
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
KILLED = 128  # plus the signal number is the exit code of a command killed by a signal, as in a shell
libc = ctypes.CDLL(None)


class Command:
    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], occupancy: OccupancyFile, shared: bool
    ) -> None:
        self.words = words
        self.environ = environ
        self.occupancy = occupancy
        self.shared = shared  # whether everything that the command starts keeps the slot too
        self.pid = 0
        self.status: int | None = None  # the exit code, once it has ended
        self.stopped = 0  # the signal that stopped it, 0 while it runs

    def start(self, signals: Signals, terminal: Terminal | None) -> None:
        """Starts it, in the foreground of `terminal` if one is given. OSError if it cannot be run."""
        parent = os.getpid()

        def before_exec() -> None:
            signals.default()
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the parent died before the prctl took effect
                os.kill(os.getpid(), signal.SIGKILL)
            if self.shared:
                self.occupancy.is_group(os.getpid())  # also here, because the parent may die before it can
            if terminal is not None:
                terminal.give(os.getpid())

        os.set_inheritable(self.occupancy.file, self.shared)
        process = subprocess.Popen(
            self.words,
            env=self.environ,
            close_fds=False,  # pass on the descriptors that we inherited; our own close on exec
            process_group=0,
            preexec_fn=before_exec,  # noqa: PLW1509 (it takes no lock that another thread could hold at the fork)
        )
        os.set_inheritable(self.occupancy.file, False)
        self.pid = process.pid
        process.returncode = 0  # we wait for it in `look`, because Popen cannot see that a process is stopped
        if self.shared:
            self.occupancy.is_group(self.pid)

    def look(self) -> None:
        """Updates `status` and `stopped`."""
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
        """Sends a signal to the whole process group."""
        with suppress(ProcessLookupError, PermissionError):  # no process is left that we may signal
            os.killpg(self.pid, signum)

    def is_alive(self) -> bool:
        """Whether the command, or if `shared` anything that it started, is still running."""
        return self.status is None or (self.shared and is_populated(self.occupancy.held))
