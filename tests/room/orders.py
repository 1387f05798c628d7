"""Every order of the memory accesses of processes that keep their slots (fairgate.room.keeping) and end each other's.

Each process runs in a thread of its own, and waits for its turn before each access to a word that is used without the
lock. Stores go through a store buffer, as on a processor: others see them later, in order, unless there is a barrier.
A run follows a list of choices: which process goes on, whose oldest store becomes visible, or who dies. Afterwards the
other choices are tried, until no state is new. A process is determined by what it has read, so a state is the table,
the buffers, and what each process has read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairgate.room.layout import (
    DIRTY,
    ENDINGS,
    FENCE,
    INSIDE,
    KEPT,
    LAST_FENCE,
    OWNER,
    STATE,
    TICKET,
    WAITING,
)
from tests.room.plain import keeping, links, rules, table

NOW = 100_000_000
GOES_ON, IS_SEEN, DIES = range(3)
Choice = tuple[int, int]  # which process, and which of these


class Ended(BaseException):
    """This process is dead, or the run is over."""


class BrokenOrder(AssertionError):
    """A property does not hold after these choices."""


@dataclass(frozen=True)
class Case:
    entries: tuple[int, ...]  # that each process makes; the first one keeps the slot at the beginning
    deaths: int = 0


class Memory(list[int]):
    """A table. Words that are used without the lock are accessed one at a time."""

    def __init__(self, run: Run, words: list[int]) -> None:
        super().__init__(words)
        self.run = run
        seats = links.all_seats(words)
        self.watched = {KEPT, ENDINGS, *[seat + FENCE for seat in seats]}
        if run.deaths:  # a process may die between these, too
            self.watched |= {LAST_FENCE, *[seat + STATE for seat in seats]}

    def __getitem__(self, at: int) -> int:  # type: ignore[override]  # no slices
        if at not in self.watched:
            return list.__getitem__(self, at)
        process = self.run.take_turn()
        own = [value for where, value in process.buffer if where == at]
        value = own[-1] if own else list.__getitem__(self, at)
        process.read.append(value)
        return value

    def __setitem__(self, at: int, value: int) -> None:  # type: ignore[override]  # no slices
        if at not in self.watched:
            list.__setitem__(self, at, value)
        else:
            self.run.take_turn().buffer.append((at, value))

    def show_all(self, process: Visitor) -> None:
        while process.buffer:
            self.show(process)

    def show(self, process: Visitor) -> None:
        """The oldest store becomes visible to others."""
        at, value = process.buffer.pop(0)
        list.__setitem__(self, at, value)

    def swap(self, at: int, old: int, new: int) -> bool:
        process = self.run.take_turn()
        self.show_all(process)
        found = list.__getitem__(self, at) == old
        if found:
            list.__setitem__(self, at, new)
        process.read.append(found)
        return found


@dataclass(eq=False)
class Visitor:
    """One process. It does what fairgate.room.desk and fairgate.room.permit do."""

    run: Run
    number: int
    entries: int
    seat: int = 0
    ticket: int = 0
    fence: int = 0
    endings: int = 0
    keeps: bool = False
    inside: bool = False
    dead: bool = False
    done: bool = False
    needs: Callable[[], bool] | None = None  # before it can go on
    follows: bool = False
    place: str = ""
    turns: int = 0  # since then
    read: list[int] = field(default_factory=list)
    buffer: list[tuple[int, int]] = field(default_factory=list)
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def live(self) -> None:
        try:
            self.turn.acquire()
            if self.dead or self.run.over:
                raise Ended
            while self.entries:
                fence = self.enter()
                self.follows = fence == self.fence + 1
                self.fence = fence
                self.run.entered(self, fence)
                self.reach("inside")
                self.leave()
                self.entries -= 1
                self.reach("outside")
            self.done = True
        except Ended:
            pass
        except BaseException as wrong:
            self.run.wrong = wrong
        self.run.main.release()

    def reach(self, place: str) -> None:
        """What it has read before does not matter any more."""
        self.place = place
        self.turns = 0
        self.read.clear()

    def enter(self) -> int:
        m = self.run.m
        if self.keeps and keeping.enter(m, self.seat, self.fence, self.endings, NOW):
            return self.fence + 1
        if self.keeps:
            self.keeps = False
            with self.locked() as change:
                rules.leave(m, change, self.seat, self.ticket)
            self.reach("asking")
        with self.locked() as change:
            request = rules.Request(self.number + 1, self.number + 1, 1, 0, 1, 0)
            self.seat = rules.ask(m, change, self, request)
            self.ticket = m[self.seat + TICKET]
            fence = self.fence_if_inside()
        while not fence:
            self.reach("waiting")
            self.wait(self.is_concerned)
            with self.locked() as change:
                rules.look(m, change, self, self.seat, self.run.dead_owners(), False)
                fence = self.fence_if_inside()
        return fence

    def fence_if_inside(self) -> int:
        m = self.run.m
        return m[self.seat + FENCE] if m[self.seat + STATE] == INSIDE else 0

    def is_concerned(self) -> bool:
        """Is it inside, or is a process dead that it may be watching?"""
        return self.run.seen(self.seat + STATE) != WAITING or bool(self.run.dead_owners())

    def leave(self) -> None:
        m = self.run.m
        if self.keeps:
            self.run.leaves(self)
            if keeping.rest(m, self.seat, self.fence, self.endings):
                return
            self.keeps = False
        with self.locked() as change:
            self.run.leaves(self)
            if self.follows and keeping.is_alone(m, self.seat, self.ticket):
                self.endings = keeping.keep(m, self.seat)
                self.keeps = True
            else:
                rules.leave(m, change, self.seat, self.ticket)

    @contextmanager
    def locked(self) -> Iterator[table.Change]:
        self.wait(lambda: self.run.holder is None)
        self.run.holder = self
        m = self.run.m
        change = table.Change(NOW, self.is_stopped)
        if m[DIRTY]:
            table.rebuild(m, change)
        if m[KEPT]:
            keeping.end(m, change)
        yield change
        self.run.take_turn()  # it may die before it unlocks
        m.show_all(self)
        self.run.holder = None

    def wait(self, needs: Callable[[], bool]) -> None:
        self.needs = needs
        self.run.take_turn()
        self.needs = None

    def state(self) -> tuple[object, ...]:
        known = self.seat, self.ticket, self.fence, self.endings, self.keeps, self.follows, self.entries
        return (*known, self.dead, self.done, self.place, self.turns, tuple(self.read), tuple(self.buffer))

    def is_gone(self, seat: int) -> bool:
        return list.__getitem__(self.run.m, seat + OWNER) in self.run.dead_owners()

    def is_stopped(self, seat: int) -> bool:
        return False


class Run:
    """One order."""

    def __init__(self, case: Case) -> None:
        words = [0] * links.size(1, len(case.entries) + 1)
        table.create(words, 1, len(case.entries) + 1, 1, 0, 0)
        self.visitors = [Visitor(self, number, entries) for number, entries in enumerate(case.entries)]
        self.deaths = case.deaths
        self.top = 0  # the highest fence that was granted
        self.main = threading.Semaphore(0)
        self.holder: Visitor | None = None  # of the lock
        self.running: Visitor | None = None  # None: no order is left to try
        self.wrong: BaseException | None = None
        self.over = False
        self.begin(words)
        self.m = Memory(self, words)
        self.threads = [threading.Thread(target=visitor.live, daemon=True) for visitor in self.visitors]
        for thread in self.threads:
            thread.start()

    def begin(self, words: list[int]) -> None:
        """The first process has entered twice, so that it keeps its slot."""
        first = self.visitors[0]
        change = table.Change(NOW, first.is_stopped)
        first.seat = rules.ask(words, change, first, rules.Request(1, 1, 1, 0, 1, 0))
        first.ticket, first.fence = words[first.seat + TICKET], words[first.seat + FENCE]
        first.endings, first.keeps = keeping.keep(words, first.seat), True
        self.top = first.fence

    # For the threads of the processes.

    def take_turn(self) -> Visitor:
        """Wait until it is this process' turn. Returns the process."""
        visitor = self.running
        assert visitor is not None
        self.main.release()
        visitor.turn.acquire()
        if visitor.dead or self.over:
            raise Ended
        return visitor

    def barrier(self) -> None:
        if self.running is not None:
            self.m.show_all(self.take_turn())

    def entered(self, visitor: Visitor, fence: int) -> None:
        if any(other.inside and not other.dead for other in self.visitors):
            raise BrokenOrder("two are inside")
        if fence <= self.top:
            raise BrokenOrder("a fence was given twice")
        self.top = fence
        visitor.inside = True

    def leaves(self, visitor: Visitor) -> None:
        visitor.inside = False

    def dead_owners(self) -> set[int]:
        return {visitor.number + 1 for visitor in self.visitors if visitor.dead}

    def seen(self, at: int) -> int:
        return list.__getitem__(self.m, at)

    # For the explorer.

    def choices(self) -> list[Choice]:
        found = []
        for visitor in self.visitors:
            if visitor.dead or visitor.done:
                continue
            if visitor.needs is None or visitor.needs():
                found.append((visitor.number, GOES_ON))
            if visitor.buffer:
                found.append((visitor.number, IS_SEEN))
            if self.deaths:
                found.append((visitor.number, DIES))
        return found

    def follow(self, choice: Choice) -> None:
        visitor = self.visitors[choice[0]]
        if choice[1] == IS_SEEN:
            self.m.show(visitor)
            return
        if choice[1] == DIES:
            self.deaths -= 1
            self.m.show_all(visitor)  # the kernel saw to that when it ended the process
            visitor.dead = True
            visitor.inside = False
            if self.holder is visitor:
                self.holder = None
        visitor.turns += 1
        self.running = visitor
        visitor.turn.release()
        self.main.acquire()
        if self.wrong is not None:
            raise self.wrong

    def state(self) -> tuple[object, ...]:
        return (*self.m, *[one.state() for one in self.visitors])

    def check_end(self) -> None:
        """Nobody can go on: all must have ended, and the next one must be let in."""
        if not all(visitor.dead or visitor.done for visitor in self.visitors):
            raise BrokenOrder("somebody waits forever")
        self.running = None
        words = list(self.m)
        last = Visitor(self, len(self.visitors), 1)
        change = table.Change(NOW, last.is_stopped)
        if words[DIRTY]:
            table.rebuild(words, change)
        if words[KEPT]:
            keeping.end(words, change)
        rules.bury_all(words, change, last)
        seat = rules.ask(words, change, last, rules.Request(99, 99, 1, 0, 1, 0))
        if words[seat + STATE] != INSIDE:
            raise BrokenOrder("a slot stays taken")
        if words[seat + FENCE] <= self.top:
            raise BrokenOrder("a fence was given twice")

    def close(self) -> None:
        self.over = True
        for visitor in self.visitors:
            visitor.turn.release()
        for thread in self.threads:
            thread.join()


def explore(case: Case) -> int:
    """Try every order. Returns the number of states; raises BrokenOrder, or what the processes raise."""
    before = dict(vars(keeping))
    visited: set[tuple[object, ...]] = set()
    orders: list[list[Choice]] = [[]]
    try:
        while orders:
            try_order(case, orders.pop(), visited, orders)
    finally:
        vars(keeping).clear()
        vars(keeping).update(before)
    return len(visited)


def try_order(case: Case, order: list[Choice], visited: set[tuple[object, ...]], orders: list[list[Choice]]) -> None:
    run = Run(case)
    vars(keeping).update(swap=Memory.swap, barrier=run.barrier)
    try:
        for choice in order:
            run.follow(choice)
        while run.state() not in visited:
            visited.add(run.state())
            choices = run.choices()
            if not any(what != DIES for _, what in choices):
                run.check_end()
                return
            orders += [[*order, choice] for choice in choices[1:]]
            order = [*order, choices[0]]
            run.follow(choices[0])
    finally:
        run.close()
