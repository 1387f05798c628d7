"""Collects the signals of this process in order of arrival, for a main thread that waits for them."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
OWN = (signal.SIGTSTP, signal.SIGCONT)


class Interrupted(BaseException):
    """A signal arrived during work that it must end. A BaseException, so that no `except Exception` swallows it."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


class Signals:
    """Installs handlers; create it in the main thread. Signals ignored at the start stay ignored, as nohup needs it."""

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
        """Inside this block signals are raised as Interrupted, including one that has already arrived."""
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
        """Waits for a signal or a call of `news`, at most this long."""
        select.select([self.reader], [], [], seconds)
        with suppress(BlockingIOError):
            while os.read(self.reader, 4096):
                pass

    def news(self) -> None:
        """Wakes the main thread from another one."""
        with suppress(BlockingIOError):  # the pipe is full, so it wakes up anyway
            os.write(self.writer, b"\0")

    def default(self) -> None:
        """For a child between fork and exec, where a collected signal would be lost with the exec."""
        for each in self.handled:
            signal.signal(each, signal.SIG_DFL)
