"""Who looks at the states: this process alone, or several others for it.

A batch of states goes to whoever is free, and what comes back is added in the order of the batches: so the states
get the same numbers as with one worker, and the first violation is the same. Each process numbers the things
of a state (tables.py) as it meets them. A worker tells what it has added, and translates states that were
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
from fairgate.sim.trials import leave_ctrl_c_to_the_parent

Packed: TypeAlias = "array[int]"
News = list[tuple[str, Any]]  # kinds and things, in the order of their numbers
Waiting: TypeAlias = "deque[tuple[Packed, int]]"  # and who found them
Batches = Generator[tuple[Batch, int], None, None]  # and who found what is in it
NOBODY = -1  # the first state is known to all


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
    """The work is done by processes that are forked here, one batch at a time each."""

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
        under_way: dict[int, int] = {}  # worker -> its batch
        done: dict[int, tuple[Batch, int]] = {}
        idle = list(range(len(self.pipes)))
        for wanted in range(batches):
            while wanted not in done:
                while idle and waiting:
                    me = idle.pop()
                    under_way[me] = batches - len(waiting)
                    self.give(me, *waiting.popleft())
                for me in self.ready(under_way):
                    done[under_way.pop(me)] = self.take(me)
                    idle.append(me)
            yield done.pop(wanted)

    def give(self, me: int, packed: Packed, finder: int) -> None:
        news: list[News] = []
        if finder not in (me, NOBODY):
            news = self.news[finder][self.told[me][finder] :]
            self.told[me][finder] = len(self.news[finder])
        try:
            self.pipes[me].send((packed, finder, news))
        except OSError as gone:
            raise self.died(me) from gone

    def ready(self, under_way: dict[int, int]) -> list[int]:
        pipes = wait([self.pipes[me] for me in under_way])
        return [me for me in under_way if self.pipes[me] in pipes]

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
    table = model.table
    known = len(table.things)
    numbers: dict[int, list[int]] = {}  # finder -> its numbers in mine
    shared = list(range(known))
    expander = Expander(model)
    try:
        while True:
            packed, finder, news = pipe.recv()
            if finder not in (me, NOBODY):
                of_finder = numbers.setdefault(finder, list(shared))
                of_finder += [table.number(kind, thing) for added in news for kind, thing in added]
                packed = translated(packed, of_finder)
            batch = expander.expand(packed)
            pipe.send((batch.arrays, table.since(known)))
            known = len(table.things)
    except (EOFError, OSError):
        return
