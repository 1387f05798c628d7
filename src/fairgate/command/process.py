"""A command that runs inside a gate, with its processes in one process group.

The command dies with this process, however this process ends (PR_SET_PDEATHSIG). Processes that it started may live on.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from fairgate.command.signals import Signals
from fairgate.command.terminal import Terminal

PR_SET_PDEATHSIG = 1
KILLED = 128  # plus the signal number is the exit code of a command killed by a signal, as in a shell
CANNOT_RUN, NOT_FOUND = 126, 127
libc = ctypes.CDLL(None)


def find_program(word: str) -> str:
    """The path of the program that a command's first word names. Raises OSError if there is none to execute."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [word] if os.sep in word else [os.path.join(folder, word) for folder in folders]
    exists = False
    for path in paths:
        if os.path.isdir(path):
            if path == word:
                raise IsADirectoryError(21, "it is a directory")
        elif os.access(path, os.X_OK):
            return path
        elif os.path.exists(path):
            exists = True
    raise PermissionError(13, "it is not executable") if exists else FileNotFoundError(2, "command not found")


class Command:
    def __init__(self, program: str, words: list[str], environ: Mapping[str, str]) -> None:
        self.program = program
        self.words = words
        self.environ = environ
        self.pid = 0  # also its process group
        self.status: int | None = None  # the exit code, once it has ended
        self.stopped = 0  # the signal that stopped it, 0 while it runs

    def start(
        self,
        signals: Signals,
        terminal: Terminal | None,
        before: Callable[[int], None],
        failed: Callable[[OSError], int],
    ) -> None:
        """Starts it, in the foreground of `terminal` if one is given.

        The child calls `before` with its process group, and `failed` if the program cannot be executed after all; it
        then ends with the exit code that `failed` returns.
        """
        parent = os.getpid()
        mask = signals.block()
        self.pid = os.fork()
        if self.pid == 0:
            code = CANNOT_RUN
            try:
                os.setpgid(0, 0)
                die_with(parent)
                before(os.getpid())
                if terminal is not None:
                    terminal.give(os.getpid())
                signals.default(mask)
                os.execve(self.program, self.words, self.environ)
            except OSError as wrong:
                code = failed(wrong)
            finally:
                os._exit(code)
        with suppress(OSError):  # the child has done it, and runs its program already
            os.setpgid(self.pid, self.pid)
        signals.unblock(mask)

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


def die_with(parent: int) -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the prctl took effect
        os.kill(os.getpid(), signal.SIGKILL)
