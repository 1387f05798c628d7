"""Processes at a room: what each believes, and every step of its own, in both exhaustive models.

The user's side of a request is part of it if rooms are closed (`closes`): a process that was rung looks later at what
it was granted, notes that, and returns it to its user later still. Another thread may close the room in between, and
whoever has the permit may release it long after that. A process may also fork: its child has the bell for a moment.

A state of either model has a table, processes, and a budget that says how often each of these things may still happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fairgate.room import layout
from fairgate.room.layout import (
    CAPACITY,
    DIRTY,
    FENCE,
    INSIDE,
    LOST,
    OWNER,
    PEER_BELL,
    PID,
    SLOTS,
    STATE,
    TICKET,
    WAITING,
    K,
)
from tests.room.plain import links, rules, table

# ARRIVES: it was rung, and has not looked yet. RETURNS: it knows what it was granted, but its user does not have it yet
OUT, WAITS, ARRIVES, RETURNS, IN, DEAD = range(6)
UNHEARD, LOOK, GRANTED = range(3)  # what the bell says
HEADER_LINKS = (layout.HEAD, layout.TAIL, layout.SPARE)
SEAT_LINKS = (layout.NEXT, layout.PREVIOUS)
MANY = 80  # steps that follow from one
NOW = 100_000_000  # ns: every waiter may have been stopped meanwhile, and every new head is woken


class Broken(Exception):
    """A property does not hold. `path` has the states that lead there."""

    path: list[Any] = []


Rings = tuple[tuple[int, int], ...]  # owner, ticket


class Process(NamedTuple):
    phase: int
    seat: int
    ticket: int
    entries: int  # left
    watch: tuple[int, ...]  # owners
    heard: int
    to_ring: Rings
    stopped: bool
    life: int
    closed: bool = False  # another thread has closed the room; the one that waits, or its user, has not noticed
    fence: int = 0  # of its permit, as it was noted
    child: int = 0  # the owner whose bell a forked child still has


class Words(list[int]):
    """A table that writes down its stores."""

    def __init__(self, words: Iterable[int]) -> None:
        super().__init__(words)
        self.stores: list[tuple[int, int]] = []

    def __setitem__(self, at: int, value: int) -> None:  # type: ignore[override]  # no slices
        self.stores.append((at, value))
        list.__setitem__(self, at, value)


class SeenProcesses:
    """The senses of a process in the model."""

    def __init__(self, model: Processes, words: list[int], state: State) -> None:
        self.model = model
        self.words = words
        self.state = state

    def is_gone(self, seat: int) -> bool:
        return self.model.is_dead(self.state, self.words[seat + OWNER])

    def is_stopped(self, seat: int) -> bool:
        return self.model.is_stopped(self.state, self.words[seat + PID]) and not self.is_gone(seat)


State = Any  # of either model
Step = Callable[[Words, Process, table.Change, SeenProcesses], Process]


class Processes:
    """A model, as far as the processes that make requests are concerned."""

    def __init__(
        self,
        words: list[int],
        header: tuple[int, ...],
        record: tuple[int, ...],
        permits: tuple[int, ...],
        closes: int,
    ) -> None:
        """`words` is an empty table; `header` and `record` are its words, and those of a seat, whose values matter."""
        self.n = len(permits)
        self.permits = permits
        self.closes = closes
        self.seats = links.all_seats(words)
        self.words = [*header, *[seat + at for seat in self.seats for at in record]]
        slots = range(SLOTS, self.seats.start)
        self.links = [*HEADER_LINKS, *slots, *[seat + at for seat in self.seats for at in SEAT_LINKS]]
        self.tracked = {*self.words, *self.links}

    def owner(self, i: int, process: Process) -> int:
        """The name of the bell: a process that starts again after its death has another one."""
        return 1 + i + self.n * process.life

    def is_dead(self, state: State, owner: int) -> bool:
        """Has no process its bell any more? A forked child may."""
        process = state.processes[(owner - 1) % self.n]
        ended: bool = process.life != (owner - 1) // self.n or process.phase == DEAD
        return ended and bool(process.child != owner)

    def is_stopped(self, state: State, pid: int) -> bool:
        stopped: bool = state.processes[pid - 1].stopped
        return stopped

    # One change under the lock.

    def locked(self, state: State, i: int, step: Step) -> list[State]:
        """All states that one change by process i can lead to: it succeeds, or the process dies after some store."""
        words, change, senses = self.begin(state)
        process = step(words, state.processes[i], change, senses)
        called = tuple([(words[PEER_BELL], ticket) for ticket in change.called])
        process = process._replace(to_ring=self.rings(words, change, process) + called)
        found = [self.changed(state, words, i, process)]
        if state.budget.deaths:
            spent = self.spend(state, deaths=1)
            for partial in self.partial_changes(state.table, words.stores):
                found.append(self.changed(spent, partial, i, died(state.processes[i])))
        return found

    def begin(self, state: State) -> tuple[Words, table.Change, SeenProcesses]:
        words = Words(state.table)
        senses = SeenProcesses(self, words, state)
        change = table.Change(NOW, senses.is_stopped)
        if words[DIRTY]:
            table.rebuild(words, change)
        return words, change, senses

    def partial_changes(self, before: tuple[int, ...], stores: list[tuple[int, int]]) -> Iterator[Words]:
        """The table before each store that matters. The last one clears DIRTY: all others come before it."""
        partial = Words(before)
        for at, value in stores:
            if at in self.tracked and partial[at] != value:
                yield partial
            list.__setitem__(partial, at, value)

    def changed(self, state: State, words: Words, i: int, process: Process) -> State:
        """The state after such a change. Raises Broken if it breaks a property."""
        raise NotImplementedError

    @staticmethod
    def rings(words: Words, change: table.Change, process: Process | None) -> Rings:
        """As Changes.to_ring does it. `process` makes the change; None: it is a peer."""
        inside = process.seat if process is not None and process.phase in (RETURNS, IN) else 0
        return tuple(
            [
                (words[seat + OWNER], words[seat + TICKET] if words[seat + STATE] in (INSIDE, LOST) else 0)
                for seat in table.in_order(words, change.woken)
                if seat != inside
            ]
        )

    @staticmethod
    def spend(state: State, **what: int) -> State:
        left = {name: getattr(state.budget, name) - count for name, count in what.items()}
        return state._replace(budget=state.budget._replace(**left))

    # What processes do under the lock.

    def ask(self, i: int) -> Step:
        def step(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
            request = rules.Request(self.owner(i, process), i + 1, 1, 0, self.permits[i], 0)
            seat = rules.ask(words, change, senses, request)
            if not seat:
                raise Broken("there is no seat")
            entered = process._replace(seat=seat, ticket=words[seat + TICKET], entries=process.entries - 1)
            return self.waits_or_enters(words, entered)

        return step

    def look(self, tick: bool) -> Step:
        def step(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
            suspects = {owner for owner in process.watch if self.is_dead(senses.state, owner)}
            rules.look(words, change, senses, process.seat, suspects, tick)
            return self.waits_or_enters(words, process)

        return step

    def waits_or_enters(self, words: Words, process: Process) -> Process:
        if words[process.seat + STATE] != WAITING:
            return self.let_in(words, process)
        watch = tuple(sorted(rules.duties(words, process.seat, NOW).owners))
        return process._replace(phase=WAITS, watch=watch, heard=UNHEARD)

    def let_in(self, words: Words, process: Process) -> Process:
        """It notes what it was granted."""
        if not self.closes:
            return process._replace(phase=IN, watch=(), heard=UNHEARD)
        return process._replace(phase=RETURNS, watch=(), heard=UNHEARD, fence=words[process.seat + FENCE])

    @staticmethod
    def end(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
        """Release, or give up: Ctrl-C, or a timeout."""
        rules.leave(words, change, process.seat, process.ticket)
        return process._replace(phase=OUT, seat=0, ticket=0, watch=(), heard=min(process.heard, LOOK), fence=0)

    @staticmethod
    def end_closed(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
        """As `end`, after another thread has closed the room: the seat may be another request's."""
        rules.leave(words, change, process.seat, process.ticket)
        return out_of_closed(process)

    @staticmethod
    def revoke(slot: int) -> Step:
        def step(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
            rules.revoke(words, change, slot)
            return process

        return step

    def close(self, i: int) -> Step:
        """Another thread closes the room. The one that waits is rung, and notices later, as does a holder."""

        def step(words: Words, process: Process, change: table.Change, senses: SeenProcesses) -> Process:
            rules.abandon(words, change, {self.owner(i, process)})
            return process._replace(closed=True, heard=max(process.heard, LOOK))

        return step

    # Steps.

    def steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        """Whether a process does it on its own, and the states that it can lead to."""
        for i, process in enumerate(state.processes):
            if process.phase == DEAD:
                if process.entries:  # it is started again
                    again = process._replace(phase=OUT, life=process.life + 1)
                    yield False, [with_process(state, i, again)]
                if process.child:
                    yield True, [with_process(state, i, process._replace(child=0))]
                continue
            if process.child:
                yield True, [with_process(state, i, process._replace(child=0))]
            elif state.budget.forks and process.phase != OUT:
                forked = process._replace(child=self.owner(i, process))
                yield False, [self.spend(with_process(state, i, forked), forks=1)]
            if state.budget.deaths:
                yield False, [self.spend(with_process(state, i, died(process)), deaths=1)]
            if process.stopped:
                yield False, [with_process(state, i, process._replace(stopped=False))]
                continue
            if state.budget.stops and process.phase != OUT:
                yield False, [self.spend(with_process(state, i, process._replace(stopped=True)), stops=1)]
            if process.to_ring:
                (owner, ticket), rest = process.to_ring[0], process.to_ring[1:]
                rung = with_process(state, i, process._replace(to_ring=rest))
                yield True, [self.ring(rung, owner, ticket)]
            else:
                yield from self.own_steps(state, i, process)

    def ring(self, state: State, owner: int, ticket: int) -> State:
        """The dead do not hear it."""
        if self.is_dead(state, owner):
            return state
        j = (owner - 1) % self.n
        other = state.processes[j]
        if other.phase == DEAD or self.owner(j, other) != owner:  # its child has the bell, and does not read it
            return state
        heard = GRANTED if ticket and ticket == other.ticket and other.phase == WAITS else LOOK
        return with_process(state, j, other._replace(heard=max(other.heard, heard)))

    def own_steps(self, state: State, i: int, process: Process) -> Iterator[tuple[bool, list[State]]]:
        if process.phase == OUT:
            if process.entries and self.permits[i] <= state.table[K]:
                yield False, self.locked(state, i, self.ask(i))
            yield from self.outside_steps(state, i)
        if process.phase in (WAITS, ARRIVES, RETURNS, IN) and state.budget.closes and not process.closed:
            yield False, self.locked(self.spend(state, closes=1), i, self.close(i))
        if process.phase == RETURNS:
            yield True, self.returned(state, i, process)
        if process.phase == IN:
            yield False, self.locked(state, i, self.end_closed if process.closed else self.end)
        if process.phase == ARRIVES:
            yield True, [self.takes(state, i, process)]
        if process.phase == WAITS:
            if process.heard == GRANTED:
                yield True, [self.rung(state, i, process)]
            elif process.closed:
                yield True, [self.sees_the_end(state, i, process)]
            elif process.heard or any(self.is_dead(state, owner) for owner in process.watch):
                yield True, self.locked(state, i, self.look(False))
            if state.budget.cancels and not process.closed:
                yield from self.cancels(self.spend(state, cancels=1), i, process)

    def outside_steps(self, state: State, i: int) -> Iterator[tuple[bool, list[State]]]:
        if state.budget.revokes:
            for slot in range(state.table[CAPACITY]):
                if links.holder_of(list(state.table), slot):
                    yield False, self.locked(self.spend(state, revokes=1), i, self.revoke(slot))

    def rung(self, state: State, i: int, process: Process) -> State:
        """It was rung with its own ticket, so it will look without the lock at what it got."""
        arrives = process._replace(phase=ARRIVES, watch=(), heard=UNHEARD)
        return self.takes(state, i, arrives) if not state.budget.closes else with_process(state, i, arrives)

    def takes(self, state: State, i: int, process: Process) -> State:
        words = Words(state.table)
        if rules.hear_ring(words, process.seat, process.ticket):
            if words[process.seat + TICKET] != process.ticket or words[process.seat + STATE] not in (INSIDE, LOST):
                raise Broken("a process takes a permit that its request does not have")
            process = self.let_in(words, process)
        elif not process.closed:
            raise Broken("a process that was let in is turned away")
        else:
            process = out_of_closed(process)
        return with_process(state._replace(table=tuple(words)), i, process)

    def returned(self, state: State, i: int, process: Process) -> list[State]:
        """Its user gets the permit, or learns that the room was closed: then it ends what it was granted."""
        if process.closed:
            return self.locked(state, i, self.end_closed)
        return [with_process(state, i, process._replace(phase=IN))]

    @staticmethod
    def sees_the_end(state: State, i: int, process: Process) -> State:
        """Its room is closed."""
        if not rules.is_over(list(state.table), process.seat, process.ticket):
            raise Broken("a room is closed, and its request goes on")
        return with_process(state, i, out_of_closed(process))

    def cancels(self, state: State, i: int, process: Process) -> Iterator[tuple[bool, list[State]]]:
        """The waiter gives up."""
        yield False, self.locked(state, i, self.end)


def at_rest(model: Processes, state: State) -> State:
    """The state after all that the processes do on their own. Raises Broken if that has no end."""
    for _ in range(MANY):
        own = next((after for own, after in model.steps(state) if own), None)
        if own is None:
            return state
        state = own[0]
    raise Broken("the processes never come to rest")


def died(process: Process) -> Process:
    return Process(DEAD, 0, 0, process.entries, (), UNHEARD, (), False, process.life, child=process.child)


def out_of_closed(process: Process) -> Process:
    """It may open the room again, with another bell."""
    again = process.life + 1
    return Process(OUT, 0, 0, process.entries, (), UNHEARD, process.to_ring, False, again, child=process.child)


def at_first(entries: tuple[int, ...], n: int) -> tuple[Process, ...]:
    """All are outside, and make this many entries each: one if that is left out."""
    return tuple([Process(OUT, 0, 0, each, (), UNHEARD, (), False, 0) for each in entries or (1,) * n])


def replaced(processes: tuple[Process, ...], i: int, process: Process) -> tuple[Process, ...]:
    return (*processes[:i], process, *processes[i + 1 :])


def with_process(state: State, i: int, process: Process) -> State:
    return state._replace(processes=replaced(state.processes, i, process))
