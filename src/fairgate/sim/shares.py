"""One run with many gates, shared by several processes: each runs some of the gates, and they meet at every round.

The processes are forked before the first round. Each of them plans every round with the same random numbers and carries
out what concerns its own gates. All of them need to know who is inside at all gates, because a node leaves one of the
gates that it is in, no matter which process runs it. So they exchange that at every round, and the result is the same
as that of one process.
"""

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from fairgate.errors import FairgateError
from fairgate.sim.summary import Measures

Work = Callable[["OtherShare"], Measures]

INSIDE, STOP, OVER, FAILED = "inside", "stop", "over", "failed"  # the messages between processes


class Stopped(Exception):
    """Another process has ended, so this one must end too."""


class Share:
    """Gates `number`, `number + of` ... of a run. This base class is a run that is not shared."""

    def __init__(self, number: int = 0, of: int = 1) -> None:
        self.number = number
        self.of = of

    def meet(self, inside: list[int], entries: int) -> list[int]:
        """Give the seats that are inside at this share's gates, and get those of all gates.

        `entries` is the number of entries at this share's gates so far.
        """
        return inside


class OtherShare(Share):
    """A share that is run by a child process."""

    def __init__(self, number: int, of: int, first: Connection) -> None:
        Share.__init__(self, number, of)
        self.first = first

    def meet(self, inside: list[int], entries: int) -> list[int]:
        self.first.send((INSIDE, inside, entries))
        return self.told()

    def told(self) -> list[int]:
        said, *rest = self.first.recv()
        if said == STOP:
            raise Stopped
        seats: list[int] = rest[0]
        return seats

    def listen(self, entries: int) -> None:
        """Raise Stopped if the first process has said so. Between two meetings it says nothing else."""
        if self.first.poll():
            self.told()


class FirstShare(Share):
    """The share of the parent process, which starts the others and collects their results."""

    def __init__(self, of: int, work: Work) -> None:
        Share.__init__(self, 0, of)
        self.entries = 0  # of all shares, at the last meeting
        self.found: dict[int, Measures] = {}  # results of the shares that have finished
        self.others: dict[int, Connection] = {}
        self.processes: list[BaseProcess] = []
        self.work = work

    def start(self) -> None:
        """Start the other processes.

        Ctrl-C waits until they run: Python would lose one during a fork, and a new child would not ignore it yet.
        """
        with ctrl_c_later():
            for number in range(1, self.of):
                self.start_one(number)

    def start_one(self, number: int) -> None:
        here, there = multiprocessing.Pipe()
        ends = [here, *self.others.values()]  # the child closes these: a reader sees EOF only if nobody else has them
        arguments = (OtherShare(number, self.of, there), ends, self.work)
        process = multiprocessing.get_context("fork").Process(target=other, args=arguments, daemon=True)
        process.start()
        there.close()
        self.others[number] = here
        self.processes.append(process)

    def meet(self, inside: list[int], entries: int) -> list[int]:
        seats = list(inside)
        self.entries = entries
        for number in self.others:
            said, *rest = self.hear(number)
            if said != INSIDE:
                raise Stopped
            seats += rest[0]
            self.entries += rest[1]
        for number in self.others:
            self.tell(number, INSIDE, seats)
        return seats

    def tell(self, number: int, *said: Any) -> None:
        try:
            self.others[number].send(said)
        except ConnectionError:
            self.hear(number)  # read what it sent before it ended

    def hear(self, number: int) -> tuple[Any, ...]:
        connection = self.others[number]
        try:
            connection.poll(None)  # Ctrl-C may interrupt here, but not in the middle of a message
            with ctrl_c_later():
                said: tuple[Any, ...] = connection.recv()
        except (EOFError, ConnectionError):
            raise FairgateError("a worker process was killed: use a single worker") from None
        if said[0] == FAILED:
            raise said[1]
        if said[0] == OVER:
            self.found[number] = said[1]
        return said

    def end(self, early: bool) -> list[Measures]:
        """Wait for the other processes and return what they measured.

        If `early`, all are told to stop. Otherwise a process is told to stop only if it still wants to meet: this one
        will not come to another meeting.
        """
        for number in self.others:
            if early and number not in self.found:
                self.tell(number, STOP)
        for number in self.others:
            while number not in self.found:
                if self.hear(number)[0] == INSIDE and not early:
                    self.tell(number, STOP)
        return list(self.found.values())

    def close(self) -> None:
        """Terminate the other processes."""
        for process, connection in zip(self.processes, self.others.values(), strict=True):
            connection.close()
            process.terminate()
            process.join()
            process.close()


def other(share: OtherShare, ends: list[Connection], work: Work) -> None:
    """The main function of a child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the first process, which tells the others
    for end in ends:
        end.close()
    try:
        share.first.send((OVER, work(share)))
    except (ConnectionError, EOFError):
        pass  # the first process is gone
    except Exception as wrong:
        with suppress(ConnectionError):
            share.first.send((FAILED, as_sent(wrong)))


def as_sent(wrong: Exception) -> Exception:
    """The exception, or a FairgateError with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(wrong))
    except Exception:
        return FairgateError(f"{type(wrong).__name__}: {wrong}")
    return wrong


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """Block SIGINT: a Ctrl-C takes effect only after this block."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
