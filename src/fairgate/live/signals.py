"""Signals of this process, kept in the order in which they come, for a main thread that waits for them or for news."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
OWN = (signal.SIGTSTP, signal.SIGCONT)


class Interrupted(BaseException):
    """A signal came where only the end of the work can answer it. No Exception: nobody is to catch it unaware."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


class Signals:
    """From the main thread. What was ignored when we were started stays so, for nohup and its like."""

    def __init__(self) -> None:
        self.arrived: list[int] = []
        self.raising = False
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        self.handled = [each for each in (*FORWARDED, *OWN) if signal.getsignal(each) is not signal.SIG_IGN]
        self.handled.append(signal.SIGCHLD)
        for each in self.handled:
            signal.signal(each, self.on_signal)

    def on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self.raising and signum not in (signal.SIGCHLD, signal.SIGCONT):
            self.raising = False
            raise Interrupted(signum)
        self.arrived.append(signum)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """In here they are raised as Interrupted; one that came before is so too."""
        try:
            self.raising = True
            for signum in self.take():
                self.on_signal(signum, None)
            yield
        finally:
            self.raising = False

    def take(self) -> list[int]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def wait(self, seconds: float | None) -> None:
        """For a signal, or for news from another thread, not longer than this."""
        select.select([self.reader], [], [], seconds)
        with suppress(BlockingIOError):
            while os.read(self.reader, 4096):
                pass

    def news(self) -> None:
        """From another thread: the main thread is to look."""
        with suppress(BlockingIOError):  # it is being woken anyway
            os.write(self.writer, b"\0")

    def default(self) -> None:
        """In a child between fork and exec: else what comes before the exec would be kept, and forgotten with it."""
        for each in self.handled:
            signal.signal(each, signal.SIG_DFL)
