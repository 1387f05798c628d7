"""Expands states in this process alone, or in several worker processes.

Any free worker takes the next batch of states, but results are added in the order of the batches. So states get the
same numbers as with one worker, and the first violation is the same. Each process numbers things (interning.py) as it
meets them. A worker reports the things that it has added, and translates states that another worker found.
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
News = list[tuple[str, Any]]  # kinds and things that a worker added, in the order of their numbers
Waiting: TypeAlias = "deque[tuple[Packed, int]]"  # batches of states to expand, and the worker that found each
Batches = Generator[tuple[Batch, int], None, None]  # results, and the worker that found what is in each
Task: TypeAlias = "tuple[Packed, int, list[News]]"  # a batch, its finder, and things in it that are new to the worker
NOBODY = -1  # the finder of states whose numbers need no translation: the first state, and all states without workers
AHEAD = 2  # batches given to a worker: one to expand, and one to start on when that is done


class Alone:
    """Expands states in this process."""

    def __init__(self, model: Model) -> None:
        self.expander = Expander(model)

    def expand(self, waiting: Waiting) -> Batches:
        while waiting:  # popping frees each batch as soon as it is expanded
            yield self.expander.expand(waiting.popleft()[0]), NOBODY

    def end(self) -> None:
        pass


class Crew:
    """Expands states in worker processes, forked from this one.

    A worker has its next batch at hand when it sends a result. Otherwise it would be idle until this process has added
    the result. Two processes that write to each other at the same time can deadlock, so they take turns: this process
    answers every result, with another batch or with none, and a worker reads the answer before it sends its next one.
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
        self.news: list[list[News]] = [[] for _ in range(workers)]  # things that each worker added, as reported
        self.told = [[0] * workers for _ in range(workers)]  # told[me][finder]: how many of finder's news `me` has

    def expand(self, waiting: Waiting) -> Batches:
        batches = len(waiting)
        under_way: list[deque[int]] = [deque() for _ in self.pipes]  # per worker, the batches it has
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
        """A batch, and the things that this worker must know to read it."""
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
            f"worker {me} died before the search was over (exit code {code}): use fewer workers, or a smaller case"
        )

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
        for pipe in self.pipes:
            pipe.close()


def work(me: int, model: Model, pipe: Connection, others: list[Connection]) -> None:
    """The main loop of a worker process. It ends when the worker is terminated or its parent is gone."""
    leave_ctrl_c_to_the_parent()
    for other in others:  # inherited copies of the parent's ends: while they are open, its death goes unnoticed
        other.close()
    inbox: deque[Task] = deque()
    answered = True  # did the parent answer the last result?
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
    """Expands batches of states in its own numbers, whichever worker found them."""

    def __init__(self, me: int, model: Model) -> None:
        self.me = me
        self.table = model.table
        self.expander = Expander(model)
        self.known = len(self.table.things)  # things reported so far; the first ones were known before the fork
        self.shared = list(range(self.known))  # things that have the same number in every process
        self.numbers: dict[int, list[int]] = {}  # finder -> its numbers translated into mine

    def look_at(self, packed: Packed, finder: int, news: list[News]) -> tuple[list[Packed], News]:
        if finder not in (self.me, NOBODY):
            of_finder = self.numbers.setdefault(finder, list(self.shared))
            of_finder += [self.table.number(kind, thing) for added in news for kind, thing in added]
            packed = translated(packed, of_finder)
        batch = self.expander.expand(packed)
        added = self.table.since(self.known)
        self.known = len(self.table.things)
        return batch.arrays, added
