"""Collects the signals of this process in order of arrival, for a main thread that waits for them."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
LONGEST_WAIT = 3600.0  # seconds: poll(2) counts milliseconds in 32 bits


class Interrupted(BaseException):
    """A signal arrived during work that it must end. A BaseException, so that no `except Exception` swallows it."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


class Signals:
    """Installs handlers; create it in the main thread. Signals ignored at the start stay ignored, as nohup needs it.

    Ctrl-Z stops this process, until `catch_stops` is called.
    """

    def __init__(self) -> None:
        self.arrived: list[int] = []
        self.raising = False
        self.handled: list[int] = []
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        self.catch(*FORWARDED, signal.SIGCHLD)

    def catch_stops(self) -> None:
        self.catch(signal.SIGTSTP, signal.SIGCONT)

    def catch(self, *signums: int) -> None:
        for each in signums:
            if each == signal.SIGCHLD or signal.getsignal(each) is not signal.SIG_IGN:
                self.handled.append(each)
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

    def wait(self, seconds: float | None, other: int = -1) -> None:
        """Waits for a signal, a call of `news`, or until descriptor `other` can be read; at most this long."""
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        if other >= 0:
            poll.register(other, select.POLLIN)
        poll.poll(None if seconds is None else 1000 * min(seconds, LONGEST_WAIT))
        with suppress(BlockingIOError):
            while os.read(self.reader, 4096):
                pass

    def news(self) -> None:
        """Wakes the main thread from another one."""
        with suppress(BlockingIOError):  # the pipe is full, so it wakes up anyway
            os.write(self.writer, b"\0")

    # Around a fork: a signal that a child collects before its exec would be lost.

    def block(self) -> set[int]:
        """Keeps signals pending. Returns the mask, for `unblock` or `default`."""
        return set(signal.pthread_sigmask(signal.SIG_BLOCK, self.handled))

    def unblock(self, mask: set[int]) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def default(self, mask: set[int]) -> None:
        """In the child: every signal acts as in a new process."""
        for each in (*self.handled, *IGNORED_BY_PYTHON):
            signal.signal(each, signal.SIG_DFL)
        self.unblock(mask)
