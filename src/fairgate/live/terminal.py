"""The terminal of this process, and who is in its foreground: what a shell does for its jobs."""

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
        """Are we in its foreground?"""
        return self.foreground() == os.getpgrp()

    def foreground(self) -> int:
        try:
            return os.tcgetpgrp(self.file) if self.file >= 0 else -1
        except OSError:  # it is gone
            return -1

    def give(self, group: int) -> None:
        """To its foreground with this process group. From the background, too, which would stop us but for the mask."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        try:
            os.tcsetpgrp(self.file, group)
        except OSError:
            pass  # the terminal is gone, or the group is: then there is nothing to give
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def take_back(self, group: int) -> None:
        """If this group still has it: it may have passed it on."""
        if self.foreground() == group:
            self.give(os.getpgrp())


def stop_our_group() -> None:
    """As Ctrl-Z does to a job that has the terminal. Returns when we are continued; at once if nobody could do that.

    The others of the group first; then this thread, so that it goes no further before it has stopped.
    """
    handler = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, handler)
