"""A few processes at one room: every step that each of them can take, and its death after any single store.

The processes run fairgate.room.rules, as live ones do. A state is the table and, for each process: what it believes,
whom it watches, whether its bell was rung, whom it has yet to ring, and whether it is stopped (processes.py).
properties.py says what must hold, and explore.py tries every order of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fairgate.room import layout
from fairgate.room.layout import CAPACITY, DEADLINE, DIRTY, HEARD, INSIDE, NUDGE, NUDGED, OWNER, PID, STATE, TICKET, K
from tests.room.plain import links, rules, table
from tests.room.processes import NOW, Process, Processes, SeenProcesses, Step, Words, at_first, replaced

# Words whose values matter. The others are for people, and for times.
HEADER_WORDS = (K, layout.NEXT_TICKET, layout.LAST_FENCE, layout.USED, DIRTY)
SEAT_WORDS = (STATE, TICKET, layout.PERMITS, layout.SLOT, layout.FENCE, OWNER, PID, layout.SKIPPED, HEARD)


class Budget(NamedTuple):
    """How often each of these may happen from now on."""

    deaths: int
    cancels: int
    stops: int
    resizes: int
    revokes: int
    closes: int
    forks: int


class State(NamedTuple):
    table: tuple[int, ...]
    processes: tuple[Process, ...]
    budget: Budget
    top: int  # the highest fence that was granted


@dataclass(frozen=True)
class Case:
    processes: int
    k: int
    entries: tuple[int, ...] = ()  # that each process makes: one if it is left out, as for the permits
    deaths: int = 0
    cancels: int = 0  # a waiter gives up, or the first waiter finds a lease over
    stops: int = 0
    resizes: int = 0  # to another k, up to `capacity`
    revokes: int = 0  # by a process that has no seat
    closes: int = 0  # of its room by another thread of a process; it may open the room again
    forks: int = 0  # the child has the bell until it drops what it has inherited
    permits: tuple[int, ...] = ()  # that each process asks for
    capacity: int = 0
    throttled: bool = False  # no new head is told of its duties, as if that had just been done


# Of a change, after which the processes are these; returns the highest fence.
Judge = Callable[[State, Words, tuple[Process, ...]], int]


class Model(Processes):
    def __init__(self, case: Case, judge: Judge) -> None:
        self.case = case
        self.judge = judge
        permits = case.permits or (1,) * case.processes
        capacity = case.capacity or max(case.k, *permits)
        words = [0] * links.size(capacity, case.processes + 1)
        table.create(words, capacity, case.processes + 1, case.k, 0, 0)
        words[NUDGED] = NOW - NUDGE + case.throttled
        super().__init__(words, HEADER_WORDS, SEAT_WORDS, permits, case.closes)
        budget = Budget(case.deaths, case.cancels, case.stops, case.resizes, case.revokes, case.closes, case.forks)
        self.start = State(tuple(words), at_first(case.entries, self.n), budget, 0)

    def changed(self, state: State, words: Words, i: int, process: Process) -> State:
        processes = replaced(state.processes, i, process)
        return State(tuple(words), processes, state.budget, self.judge(state, words, processes))

    def look_after_lease(self, ended: int) -> Step:
        """As `look`. The lease of this seat is over."""
        look = self.look(False)

        def step(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
            if words[ended + STATE] == INSIDE:
                list.__setitem__(words, ended + DEADLINE, NOW)  # it was in the record since the grant
            return look(words, process, change, senses)

        return step

    @staticmethod
    def resize(k: int) -> Step:
        def step(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
            rules.resize(words, change, senses, k)
            return process

        return step

    def outside_steps(self, state: State, i: int) -> Iterator[tuple[bool, list[State]]]:
        if state.budget.resizes:
            for k in range(1, state.table[CAPACITY] + 1):
                if k != state.table[K]:
                    yield False, self.locked(self.spend(state, resizes=1), i, self.resize(k))
        yield from super().outside_steps(state, i)

    def cancels(self, state: State, i: int, process: Process) -> Iterator[tuple[bool, list[State]]]:
        """It gives up, or it is the first waiter and finds a lease over."""
        yield from super().cancels(state, i, process)
        m = state.table
        if not m[DIRTY] and links.first_waiter(list(m)) == process.seat:
            for seat in self.seats:
                if m[seat + STATE] == INSIDE:
                    yield False, self.locked(state, i, self.look_after_lease(seat))
