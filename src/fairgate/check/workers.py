"""Who looks at the states: this process alone, or several others for it.

A batch of states goes to whoever is free, and what comes back is added in the order of the batches: so the states
get the same numbers as with one worker, and the first violation is the same. Each process numbers the things
of a state (interning.py) as it meets them. A worker tells what it has added, and translates states that were
found by another one.
"""

import multiprocessing
from array import array
from collections import deque
from collections.abc import Generator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias

from fairgate.check.expand import Batch, Expander, translated
from fairgate.check.model import Model
from fairgate.errors import BadInput
from fairgate.processes import leave_ctrl_c_to_the_parent

Packed: TypeAlias = "array[int]"
News = list[tuple[str, Any]]  # kinds and things, in the order of their numbers
Waiting: TypeAlias = "deque[tuple[Packed, int]]"  # and who found them
Batches = Generator[tuple[Batch, int], None, None]  # and who found what is in it
Task: TypeAlias = "tuple[Packed, int, list[News]]"  # a batch, who found it, and what it speaks of that is new
NOBODY = -1  # the first state is known to all
AHEAD = 2  # batches that a worker has: one it looks at, one for when that is done


class Alone:
    """The work is done here."""

    def __init__(self, model: Model) -> None:
        self.expander = Expander(model)

    def expand(self, waiting: Waiting) -> Batches:
        while waiting:  # and what has been looked at is kept no longer
            yield self.expander.expand(waiting.popleft()[0]), NOBODY

    def end(self) -> None:
        pass


class Crew:
    """The work is done by processes that are forked here.

    Each has a batch at hand while the one before it is on its way back, else it would stand idle until this process
    has added what came. Two processes that write to each other at once may wait for ever, so they take turns: every
    result is answered, by a further batch or by none, and a worker takes the answer before it sends its next one.
    """

    def __init__(self, model: Model, workers: int) -> None:
        context = multiprocessing.get_context("fork")
        self.pipes: list[Connection] = []
        self.processes: list[BaseProcess] = []
        for me in range(workers):
            here, there = context.Pipe()
            self.pipes.append(here)
            process = context.Process(target=work, args=(me, model, there, list(self.pipes)), daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
        self.news: list[list[News]] = [[] for _ in range(workers)]  # what each has added, as it came in
        self.told = [[0] * workers for _ in range(workers)]  # and how much of it each other one knows

    def expand(self, waiting: Waiting) -> Batches:
        batches = len(waiting)
        under_way: list[deque[int]] = [deque() for _ in self.pipes]  # of each worker, its batches
        done: dict[int, tuple[Batch, int]] = {}

        def give(me: int, most: int) -> None:
            given: list[Task] = []
            while waiting and len(given) < most:
                under_way[me].append(batches - len(waiting))
                given.append(self.told_to(me, *waiting.popleft()))
            self.send(me, given)

        for me in range(len(self.pipes)):
            give(me, AHEAD)
        for wanted in range(batches):
            while wanted not in done:
                for me in self.ready():
                    done[under_way[me].popleft()] = self.take(me)
                    give(me, 1)
            yield done.pop(wanted)

    def told_to(self, me: int, packed: Packed, finder: int) -> Task:
        """A batch, and what this worker must learn to read it."""
        news: list[News] = []
        if finder not in (me, NOBODY):
            news = self.news[finder][self.told[me][finder] :]
            self.told[me][finder] = len(self.news[finder])
        return packed, finder, news

    def send(self, me: int, tasks: list[Task]) -> None:
        try:
            self.pipes[me].send(tasks)
        except OSError as gone:
            raise self.died(me) from gone

    def ready(self) -> list[int]:
        pipes = wait(self.pipes)
        return [me for me, pipe in enumerate(self.pipes) if pipe in pipes]

    def take(self, me: int) -> tuple[Batch, int]:
        try:
            arrays, news = self.pipes[me].recv()
        except (EOFError, OSError) as gone:
            raise self.died(me) from gone
        if news:
            self.news[me].append(news)
        return Batch(arrays), me

    def died(self, me: int) -> BadInput:
        self.processes[me].join(1)
        code = self.processes[me].exitcode
        return BadInput(
            f"worker {me} ended before its work did (exit code {code}): try fewer --workers, or a smaller case"
        )

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
        for pipe in self.pipes:
            pipe.close()


def work(me: int, model: Model, pipe: Connection, others: list[Connection]) -> None:
    """A worker's life: until it is ended, or whoever gives it work is gone."""
    leave_ctrl_c_to_the_parent()
    for other in others:  # else nobody would notice the end of the process at the other end
        other.close()
    inbox: deque[Task] = deque()
    answered = True  # was my last result?
    worker = Worker(me, model)
    try:
        while True:
            while not inbox:
                inbox += pipe.recv()
                answered = True
            result = worker.look_at(*inbox.popleft())
            if not answered:
                inbox += pipe.recv()
            pipe.send(result)
            answered = False
    except (EOFError, OSError):
        return


class Worker:
    """Looks at batches of states in its own numbers, whoever found them."""

    def __init__(self, me: int, model: Model) -> None:
        self.me = me
        self.table = model.table
        self.expander = Expander(model)
        self.known = len(self.table.things)  # the others know these
        self.shared = list(range(self.known))
        self.numbers: dict[int, list[int]] = {}  # finder -> its numbers in mine

    def look_at(self, packed: Packed, finder: int, news: list[News]) -> tuple[list[Packed], News]:
        if finder not in (self.me, NOBODY):
            of_finder = self.numbers.setdefault(finder, list(self.shared))
            of_finder += [self.table.number(kind, thing) for added in news for kind, thing in added]
            packed = translated(packed, of_finder)
        batch = self.expander.expand(packed)
        added = self.table.since(self.known)
        self.known = len(self.table.things)
        return batch.arrays, added
