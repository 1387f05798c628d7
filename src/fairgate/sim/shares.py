"""One run with many gates on several processors: each process runs some of the gates, and they meet at every round.

The processes are copies of one another up to the first round. Each plans every round, with the same luck, and carries
out what concerns its own gates; only who is inside must be known to all, since a node leaves one of the gates that it
is in, whoever runs them. So what comes out is what one process would have found.
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

INSIDE, STOP, OVER, FAILED = "inside", "stop", "over", "failed"  # what processes say to each other


class Stopped(Exception):
    """Another process has ended, and so does this one."""


class Share:
    """Gates `number`, `number + of` ... of a run. This one is the whole of it; see First and Other."""

    def __init__(self, number: int = 0, of: int = 1) -> None:
        self.number = number
        self.of = of

    def meet(self, inside: list[int], entries: int) -> list[int]:
        """Seats inside at the gates of this share: answers with those of all. So many came in by now."""
        return inside


class OtherShare(Share):
    """Run by a process that was started for it."""

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
        """Between two meetings nothing is said but STOP."""
        if self.first.poll():
            self.told()


class FirstShare(Share):
    """Run by the process that was asked for the run, and started the others."""

    def __init__(self, of: int, work: Work) -> None:
        Share.__init__(self, 0, of)
        self.entries = 0  # of all, at the last meeting
        self.found: dict[int, Measures] = {}  # of the shares that are over
        self.others: dict[int, Connection] = {}
        self.processes: list[BaseProcess] = []
        self.work = work

    def start(self) -> None:
        """In the middle of a fork Python would lose a Ctrl-C, and a child not yet know that it is not meant."""
        with ctrl_c_later():
            for number in range(1, self.of):
                self.start_one(number)

    def start_one(self, number: int) -> None:
        here, there = multiprocessing.Pipe()
        ends = [here, *self.others.values()]  # a pipe ends for its reader when nobody has its other end
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
            self.hear(number)  # its last words

    def hear(self, number: int) -> tuple[Any, ...]:
        connection = self.others[number]
        try:
            connection.poll(None)  # here Ctrl-C is heard, and not in the middle of a message
            with ctrl_c_later():
                said: tuple[Any, ...] = connection.recv()
        except (EOFError, ConnectionError):
            raise FairgateError("a process that ran a share of the gates was killed: try --workers 1") from None
        if said[0] == FAILED:
            raise said[1]
        if said[0] == OVER:
            self.found[number] = said[1]
        return said

    def end(self, early: bool) -> list[Measures]:
        """What they found. All are told to stop if this one has, and who would meet it again is: it will not come."""
        for number in self.others:
            if early and number not in self.found:
                self.tell(number, STOP)
        for number in self.others:
            while number not in self.found:
                if self.hear(number)[0] == INSIDE and not early:
                    self.tell(number, STOP)
        return list(self.found.values())

    def close(self) -> None:
        """Nobody is left behind."""
        for process, connection in zip(self.processes, self.others.values(), strict=True):
            connection.close()
            process.terminate()
            process.join()
            process.close()


def other(share: OtherShare, ends: list[Connection], work: Work) -> None:
    """A process for itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first one, which tells the others
    for end in ends:
        end.close()
    try:
        share.first.send((OVER, work(share)))
    except (ConnectionError, EOFError):
        pass  # the first one is gone
    except Exception as wrong:
        with suppress(ConnectionError):
            share.first.send((FAILED, as_sent(wrong)))


def as_sent(wrong: Exception) -> Exception:
    """Not every exception can be told to another process."""
    try:
        pickle.loads(pickle.dumps(wrong))
    except Exception:
        return FairgateError(f"{type(wrong).__name__}: {wrong}")
    return wrong


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """When this is over, not before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
