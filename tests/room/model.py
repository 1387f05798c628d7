"""Every order of steps of a few processes at one room, each of which may die after any single store.

The processes run fairgate.room.rules, as live ones do. A state is the table and, for each process: what it believes,
whom it watches, whether its bell was rung, whom it has yet to ring, and whether it is stopped.

A state is *calm* if no process has anything to do on its own. Then no process may be inside without knowing it, and no
process may wait for a dead one. That holds without any tick, except with stops and changes of k: there, after one
tick of all.

`python -m tests.room.model --help` explores a case from the command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fairgate.room import layout, links, rules, table
from fairgate.room.layout import (
    DEADLINE,
    DIRTY,
    FENCE,
    FREE,
    HEAD,
    INSIDE,
    LAST_FENCE,
    LOST,
    NEXT,
    NEXT_TICKET,
    OWNER,
    PERMITS,
    PID,
    PREVIOUS,
    SEAT,
    SKIPPED,
    SLOTS,
    SPARE,
    STATE,
    TAIL,
    TICKET,
    USED,
    WAITING,
    K,
)
from fairgate.room.rules import Request
from fairgate.room.table import Change

OUT, WAITS, IN, DEAD = range(4)
UNHEARD, LOOK, GRANTED = range(3)  # what the bell says
NOW = 100_000_000  # ns: every waiter may have been stopped meanwhile, and every new head is woken
ENDLESS = 1 << 30


class Broken(Exception):
    """A property does not hold. `path` has the states that lead there."""

    path: list[State] = []


class Died(Exception):
    pass


class Process(NamedTuple):
    phase: int
    seat: int
    ticket: int
    entries: int  # left
    watch: tuple[int, ...]  # owners
    heard: int
    to_ring: tuple[tuple[int, int], ...]  # owner, ticket
    stopped: bool
    life: int


class State(NamedTuple):
    table: tuple[int, ...]
    processes: tuple[Process, ...]
    deaths: int  # budgets that are left
    cancels: int
    stops: int
    resizes: int
    top: int  # the highest fence that was granted


class Words(list[int]):
    """A table that counts stores, and dies instead of the one after the last."""

    left = ENDLESS
    stores = 0

    def __setitem__(self, at: int, value: int) -> None:  # type: ignore[override]  # no slices
        if self.stores == self.left:
            raise Died
        self.stores += 1
        list.__setitem__(self, at, value)


class SeenProcesses:
    """The senses of a process in the model."""

    def __init__(self, model: Model, table: list[int], processes: tuple[Process, ...]) -> None:
        self.model = model
        self.table = table
        self.processes = processes

    def is_gone(self, seat: int) -> bool:
        return self.model.is_dead(self.processes, self.table[seat + OWNER])

    def is_stopped(self, seat: int) -> bool:
        return self.processes[self.table[seat + PID] - 1].stopped and not self.is_gone(seat)


Step = Callable[[Words, Process, Change, SeenProcesses], Process]


@dataclass(frozen=True)
class Case:
    processes: int
    k: int
    entries: int = 1
    deaths: int = 0
    cancels: int = 0  # a waiter gives up, or the first waiter finds a lease over
    stops: int = 0
    resizes: int = 0  # to another k, up to `capacity`
    permits: tuple[int, ...] = ()  # that each process asks for: one if it is left out
    capacity: int = 0


@dataclass
class Found:
    states: int = 0
    calm: int = 0
    parents: dict[State, State | None] = field(default_factory=dict)


class Model:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.n = case.processes
        self.permits = case.permits or (1,) * self.n
        capacity = case.capacity or max(case.k, *self.permits)
        words = [0] * links.size(capacity, self.n + 1)
        table.create(words, capacity, self.n + 1, case.k, 0, 0)
        self.seats = links.all_seats(words)
        out = Process(OUT, 0, 0, case.entries, (), UNHEARD, (), False, 0)
        self.start = State(tuple(words), (out,) * self.n, case.deaths, case.cancels, case.stops, case.resizes, 0)

    def owner(self, i: int, process: Process) -> int:
        """The name of the bell: a process that starts again after its death has another one."""
        return 1 + i + self.n * process.life

    def is_dead(self, processes: tuple[Process, ...], owner: int) -> bool:
        process = processes[(owner - 1) % self.n]
        return process.life != (owner - 1) // self.n or process.phase == DEAD

    # One change under the lock.

    def locked(self, state: State, i: int, step: Step) -> list[State]:
        """All states that one change by process i can lead to: it succeeds, or the process dies after some store."""
        found = []
        left = ENDLESS
        while True:
            words = Words(state.table)
            words.left = left
            change, process, died = self.attempt(words, state, i, step)
            top = self.judge(state, words, i)
            if died:
                process = died_process(state.processes[i])
            else:
                process = process._replace(to_ring=self.rings(words, change, process))
                self.judge_derived(words)
            found.append(
                state._replace(
                    table=tuple(words),
                    processes=replaced(state.processes, i, process),
                    deaths=state.deaths - died,
                    top=top,
                )
            )
            left = words.stores - 1 if not died else left - 1
            if not state.deaths or left < 0:
                return found

    def attempt(self, words: Words, state: State, i: int, step: Step) -> tuple[Change, Process, bool]:
        senses = SeenProcesses(self, words, state.processes)
        change = Change(NOW, senses.is_stopped)
        process = state.processes[i]
        try:
            if words[DIRTY]:
                table.rebuild(words, change)
            return change, step(words, process, change, senses), False
        except Died:
            return change, process, True

    def rings(self, words: Words, change: Change, process: Process) -> tuple[tuple[int, int], ...]:
        """As room.py does it."""
        told = [
            (words[seat + OWNER], words[seat + TICKET] if words[seat + STATE] in (INSIDE, LOST) else 0)
            for seat in table.in_order(words, change.woken)
            if not (seat == process.seat and process.phase == IN)
        ]
        return tuple(told)

    # Properties.

    def judge(self, before: State, words: Words, i: int) -> int:
        """At most k, fences rise, nobody is overtaken, nobody loses its seat. Returns the highest fence."""
        old = before.table
        top = before.top
        granted = [
            seat
            for seat in self.seats
            if words[seat + STATE] == INSIDE
            and (old[seat + STATE] != INSIDE or old[seat + TICKET] != words[seat + TICKET])
        ]
        for seat in sorted(granted, key=lambda each: words[each + FENCE]):
            if words[seat + FENCE] <= top:
                raise Broken("a fence does not rise")
            top = words[seat + FENCE]
            for other in self.seats:
                if (
                    words[other + STATE] == WAITING
                    and words[other + TICKET] < words[seat + TICKET]
                    and not (words[other + SKIPPED] or old[other + SKIPPED])
                ):
                    raise Broken("a waiter is overtaken")
        tickets = [words[seat + TICKET] for seat in self.seats if words[seat + STATE] != FREE]
        if len(set(tickets)) < len(tickets):
            raise Broken("two requests have one ticket")
        for j, process in enumerate(before.processes):
            if j != i and process.phase in (WAITS, IN):
                if words[process.seat + TICKET] != process.ticket:
                    raise Broken("a living process lost its seat")
                if process.phase == IN and words[process.seat + STATE] not in (INSIDE, LOST):
                    raise Broken("a holder was thrown out")
        used = sum(words[seat + PERMITS] for seat in self.seats if words[seat + STATE] == INSIDE)
        if granted and used > max(words[K], old[K]):
            raise Broken("more than k are inside")
        return top

    def judge_derived(self, m: Words) -> None:
        """After a complete change, the derived words agree with the records."""
        waiting = sorted((m[seat + TICKET], seat) for seat in self.seats if m[seat + STATE] == WAITING)
        queue = []
        seat, before = m[HEAD], 0
        while seat:
            if m[seat + PREVIOUS] != before:
                raise Broken("the links of the queue are wrong")
            queue.append((m[seat + TICKET], seat))
            before, seat = seat, m[seat + NEXT]
        if queue != waiting or m[TAIL] != before:
            raise Broken("the queue is not in ticket order")
        slots = sorted(m[at] for at in range(SLOTS, links.first_seat(m)) if m[at])
        inside = sorted(seat for seat in self.seats if m[seat + STATE] == INSIDE for _ in range(m[seat + PERMITS]))
        if slots != inside or m[USED] != len(slots):
            raise Broken("the slots are wrong")
        spare = set()
        seat = m[SPARE]
        while seat:
            spare.add(seat)
            seat = m[seat + NEXT]
        if spare != {seat for seat in self.seats if m[seat + STATE] == FREE}:
            raise Broken("a seat leaked")
        first = links.first_waiter(m)
        if first and m[USED] + m[first + PERMITS] <= m[K]:
            raise Broken("a free slot is not granted")

    def judge_calm(self, state: State) -> bool:
        """Raises Broken if nobody has anything to do and somebody is forgotten. Returns whether it was calm."""
        if any(own for own, _ in self.steps(state)):
            return False
        if self.case.stops or self.case.resizes:  # nobody watches a process that only changes k
            state = self.ticked(state)
        running = [process for process in state.processes if process.phase == WAITS and not process.stopped]
        if not running:
            return True
        m = list(state.table)
        if any(m[process.seat + STATE] != WAITING for process in running):
            raise Broken("a process is inside without knowing it")
        if m[DIRTY]:  # nobody will look; that is well if nothing would come of it
            table.rebuild(m, Change(NOW, SeenProcesses(self, m, state.processes).is_stopped))
            if any(m[process.seat + STATE] == INSIDE for process in running):
                raise Broken("a change was interrupted, and nobody finishes it")
        if any(self.is_dead(state.processes, m[seat + OWNER]) for seat in links.holders(m)):
            raise Broken("waiters wait for a dead holder")
        head = links.first_waiter(m)
        if head and all(process.seat != head for process in running):
            raise Broken("waiters wait for a waiter that is stopped or dead")
        return True

    def ticked(self, state: State) -> State:
        """The state after every waiting process has looked once on its own, and all that follows from it."""
        state = state._replace(deaths=0)
        for i in range(self.n):
            process = state.processes[i]
            if process.phase == WAITS and not process.stopped and not process.to_ring:
                (state,) = self.locked(state, i, self.look(True))
            for _ in range(50):
                own = next((after for own, after in self.steps(state) if own), None)
                if own is None:
                    break
                state = own[0]
        return state

    # What processes do under the lock.

    def ask(self, i: int) -> Step:
        def step(words: Words, process: Process, change: Change, senses: SeenProcesses) -> Process:
            request = Request(self.owner(i, process), i + 1, 1, 0, self.permits[i], 0)
            seat = rules.ask(words, change, senses, request)
            if not seat:
                raise Broken("there is no seat")
            entered = process._replace(seat=seat, ticket=words[seat + TICKET], entries=process.entries - 1)
            return self.waits_or_enters(words, entered)

        return step

    def look(self, tick: bool, ends: int = 0) -> Step:
        """`ends`: a seat whose lease is over."""

        def step(words: Words, process: Process, change: Change, senses: SeenProcesses) -> Process:
            if ends and words[ends + STATE] == INSIDE:
                list.__setitem__(words, ends + DEADLINE, NOW)  # it was in the record since the grant
            suspects = {owner for owner in process.watch if self.is_dead(senses.processes, owner)}
            rules.look(words, change, senses, process.seat, suspects, tick)
            return self.waits_or_enters(words, process)

        return step

    def waits_or_enters(self, words: Words, process: Process) -> Process:
        if words[process.seat + STATE] != WAITING:
            return process._replace(phase=IN, watch=(), heard=UNHEARD)
        seats = rules.duties(words, process.seat, NOW).seats
        watch = tuple(sorted({words[seat + OWNER] for seat in seats}))
        return process._replace(phase=WAITS, watch=watch, heard=UNHEARD)

    @staticmethod
    def end(words: Words, process: Process, change: Change, senses: SeenProcesses) -> Process:
        rules.leave(words, change, process.seat, process.ticket)
        return process._replace(phase=OUT, seat=0, ticket=0, watch=(), heard=min(process.heard, LOOK))

    def give_up(self, i: int) -> Step:
        """Ctrl-C, or a timeout."""

        def step(words: Words, process: Process, change: Change, senses: SeenProcesses) -> Process:
            rules.abandon(words, change, self.owner(i, process))
            return process._replace(phase=OUT, seat=0, ticket=0, watch=(), heard=min(process.heard, LOOK))

        return step

    @staticmethod
    def resize(k: int) -> Step:
        def step(words: Words, process: Process, change: Change, senses: SeenProcesses) -> Process:
            table.resize(words, change, k)
            return process

        return step

    # Steps.

    def steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        """Whether a process does it on its own, and the states that it can lead to."""
        for i, process in enumerate(state.processes):
            if process.phase == DEAD:
                if process.entries:  # it is started again
                    again = process._replace(phase=OUT, life=process.life + 1)
                    yield False, [with_process(state, i, again)]
                continue
            if state.deaths:
                died = with_process(state, i, died_process(process))
                yield False, [died._replace(deaths=state.deaths - 1)]
            if process.stopped:
                yield False, [with_process(state, i, process._replace(stopped=False))]
                continue
            if state.stops and process.phase != OUT:
                stopped = with_process(state, i, process._replace(stopped=True))
                yield False, [stopped._replace(stops=state.stops - 1)]
            if process.to_ring:
                yield True, self.ring(state, i, process)
            else:
                yield from self.own_steps(state, i, process)

    def ring(self, state: State, i: int, process: Process) -> list[State]:
        """Ring the next bell. The dead do not hear it."""
        (owner, ticket), rest = process.to_ring[0], process.to_ring[1:]
        state = with_process(state, i, process._replace(to_ring=rest))
        if self.is_dead(state.processes, owner):
            return [state]
        j = (owner - 1) % self.n
        other = state.processes[j]
        heard = GRANTED if ticket and ticket == other.ticket and other.phase == WAITS else LOOK
        return [with_process(state, j, other._replace(heard=max(other.heard, heard)))]

    def own_steps(self, state: State, i: int, process: Process) -> Iterator[tuple[bool, list[State]]]:
        m = state.table
        if process.phase == OUT and process.entries:
            yield False, self.locked(state, i, self.ask(i))
        if process.phase == OUT and state.resizes:
            for k in range(1, m[layout.CAPACITY] + 1):
                if k != m[K] and k >= max(self.permits):
                    yield (
                        False,
                        [each._replace(resizes=state.resizes - 1) for each in self.locked(state, i, self.resize(k))],
                    )
        if process.phase == IN:
            yield False, self.locked(state, i, self.end)
        if process.phase == WAITS:
            if process.heard == GRANTED:
                entered = process._replace(phase=IN, watch=(), heard=UNHEARD)
                yield True, [with_process(state, i, entered)]
            elif process.heard or any(self.is_dead(state.processes, owner) for owner in process.watch):
                yield True, self.locked(state, i, self.look(False))
            if state.cancels:
                yield from self.cancels(state, i, process)

    def cancels(self, state: State, i: int, process: Process) -> Iterator[tuple[bool, list[State]]]:
        less = state.cancels - 1
        yield False, [each._replace(cancels=less) for each in self.locked(state, i, self.give_up(i))]
        m = state.table
        if not m[DIRTY] and links.first_waiter(list(m)) == process.seat:
            for seat in self.seats:
                if m[seat + STATE] == INSIDE:
                    ended = self.locked(state, i, self.look(False, ends=seat))
                    yield False, [each._replace(cancels=less) for each in ended]

    # Exploring.

    def normal(self, state: State) -> State:
        """The same state with tickets and fences replaced by their ranks: what matters is their order."""
        m = list(state.table)
        taken = [seat for seat in self.seats if m[seat + STATE] != FREE]
        tickets = {ticket: rank for rank, ticket in enumerate(sorted({m[seat + TICKET] for seat in taken}), 1)}
        fences = sorted({0, m[LAST_FENCE], state.top, *(m[seat + FENCE] for seat in taken)})
        fence_ranks = {fence: rank for rank, fence in enumerate(fences)}
        for seat in self.seats:
            if m[seat + STATE] == FREE:
                after = m[seat + NEXT]
                m[seat : seat + SEAT] = [0] * SEAT
                m[seat + NEXT] = after
            else:
                m[seat + layout.ASKED] = m[seat + layout.SINCE] = 0
                m[seat + TICKET] = tickets[m[seat + TICKET]]
                m[seat + FENCE] = fence_ranks[m[seat + FENCE]]
        m[NEXT_TICKET] = 1 + len([ticket for ticket in tickets if ticket < m[NEXT_TICKET]])
        m[LAST_FENCE] = fence_ranks[m[LAST_FENCE]]
        m[layout.NUDGED] = m[layout.LOSSES] = 0
        for at in (layout.GRANTS, layout.WAITED, layout.LONGEST, *range(layout.HISTOGRAM, layout.SLOTS)):
            m[at] = 0
        processes = tuple(
            process._replace(
                ticket=tickets.get(process.ticket, 0),
                to_ring=tuple((owner, tickets.get(ticket, 0)) for owner, ticket in process.to_ring),
            )
            for process in state.processes
        )
        return state._replace(table=tuple(m), processes=processes, top=fence_ranks[state.top])

    def explore(self, most: int = 10**8) -> Found:
        """All states that can be reached. Raises Broken, with the path, if a property does not hold in one of them."""
        start = self.normal(self.start)
        found = Found(parents={start: None})
        stack = [start]
        while stack and len(found.parents) < most:
            state = stack.pop()
            try:
                found.calm += self.judge_calm(state)
                for own, after in self.steps(state):
                    reached = [self.normal(each) for each in after]
                    if own and reached[0] == state:
                        raise Broken("a process looks again and again, and nothing comes of it")
                    for new in reached:
                        if new not in found.parents:
                            found.parents[new] = state
                            stack.append(new)
            except Broken as broken:
                broken.path = path_to(state, found.parents)
                raise
        found.states = len(found.parents)
        return found


def died_process(process: Process) -> Process:
    return Process(DEAD, 0, 0, process.entries, (), UNHEARD, (), False, process.life)


def replaced(processes: tuple[Process, ...], i: int, process: Process) -> tuple[Process, ...]:
    return (*processes[:i], process, *processes[i + 1 :])


def with_process(state: State, i: int, process: Process) -> State:
    return state._replace(processes=replaced(state.processes, i, process))


def path_to(state: State, parents: dict[State, State | None]) -> list[State]:
    path = [state]
    while (before := parents[path[-1]]) is not None:
        path.append(before)
    return path[::-1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.model", description="Explore one case of a room.")
    parser.add_argument("processes", type=int)
    parser.add_argument("k", type=int)
    for name in ("entries", "deaths", "cancels", "stops", "resizes", "capacity"):
        parser.add_argument(f"--{name}", type=int, default=1 if name == "entries" else 0)
    parser.add_argument("--permits", type=int, nargs="*", default=[], help="that each process asks for")
    given = vars(parser.parse_args())
    try:
        found = Model(Case(**{**given, "permits": tuple(given["permits"])})).explore()
    except Broken as broken:
        print(broken, *[(state.table[DIRTY], state.processes) for state in broken.path], sep="\n")
        return 1
    print(f"{found.states:,} states, {found.calm:,} of them calm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
