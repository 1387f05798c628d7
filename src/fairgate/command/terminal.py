"""The controlling terminal and its foreground process group: job control as a shell does it."""

import os
import signal
import threading


class Terminal:
    def __init__(self) -> None:
        try:
            self.file = os.open("/dev/tty", os.O_RDWR)
        except OSError:
            self.file = -1  # there is none

    def is_ours(self) -> bool:
        """Whether our process group is in its foreground."""
        return self.foreground() == os.getpgrp()

    def foreground(self) -> int:
        try:
            return os.tcgetpgrp(self.file) if self.file >= 0 else -1
        except OSError:  # the terminal is gone
            return -1

    def give(self, group: int) -> None:
        """Puts this process group in the foreground. Blocks SIGTTOU, which would stop us in the background."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        try:
            os.tcsetpgrp(self.file, group)
        except OSError:
            pass  # the terminal or the group is gone
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def take_back(self, group: int) -> None:
        """Returns the foreground to us, if this group still has it."""
        if self.foreground() == group:
            self.give(os.getpgrp())


def stop_our_group() -> None:
    """Stops our process group, as Ctrl-Z does. Returns when it is continued, or at once if the group is orphaned.

    The rest of the group is stopped first, then this thread directly, so that it cannot run on before it stops.
    """
    handler = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, handler)
