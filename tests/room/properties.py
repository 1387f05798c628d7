"""What must hold in every state of a room, and in those in which no process has anything to do on its own.

The latter are *calm*. No process may be inside there without knowing it, and none may wait for a dead one. That holds
without any tick, with three exceptions, in which the tick of the last waiter alone must put everything right: stops,
changes by a process that nobody watches, and new heads that were not told of their duties because that had just been
done (`Case.throttled`).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.room.layout import (
    CAPACITY,
    DIRTY,
    FENCE,
    FREE,
    HEAD,
    HEARD,
    INSIDE,
    LOOKS,
    LOST,
    NEXT,
    OWNER,
    PERMITS,
    PREVIOUS,
    SKIPPED,
    SLOTS,
    SPARE,
    STATE,
    TAIL,
    TICK,
    TICKET,
    USED,
    WAITING,
    K,
)
from tests.room.model import Model, State
from tests.room.plain import links, table
from tests.room.processes import ARRIVES, IN, NOW, RETURNS, WAITS, Broken, Process, SeenProcesses, Words, at_rest


def judge_change(before: State, words: Words, processes: tuple[Process, ...]) -> int:
    """At most k, fences rise, nobody is overtaken, nobody loses its seat. Returns the highest fence."""
    judge_requests(before.processes, before.table, processes, words)
    if not words[DIRTY]:
        judge_derived(words)
        judge_grants(words)
    old, top = before.table, before.top
    seats = links.all_seats(words)
    tickets = [words[seat + TICKET] for seat in seats if words[seat + STATE] != FREE]
    if len(set(tickets)) < len(tickets):
        raise Broken("two requests have one ticket")
    granted = [
        seat
        for seat in seats
        if words[seat + STATE] == INSIDE and (old[seat + STATE] != INSIDE or old[seat + TICKET] != words[seat + TICKET])
    ]
    if not granted:
        return top
    for seat in sorted(granted, key=lambda each: words[each + FENCE]):
        if words[seat + FENCE] <= top:
            raise Broken("a fence does not rise")
        top = words[seat + FENCE]
        for other in seats:
            if (
                words[other + STATE] == WAITING
                and words[other + TICKET] < words[seat + TICKET]
                and not (words[other + SKIPPED] or old[other + SKIPPED])
            ):
                raise Broken("a waiter is overtaken")
    if sum(words[seat + PERMITS] for seat in seats if words[seat + STATE] == INSIDE) > max(words[K], old[K]):
        raise Broken("more than k are inside")
    return top


def judge_requests(
    before: tuple[Process, ...], old: Sequence[int], after: tuple[Process, ...], words: Sequence[int]
) -> None:
    """What a change may not do to the requests that go on after it."""
    for process, now in zip(before, after, strict=True):
        goes_on = now.ticket == process.ticket and not (process.closed or now.closed)
        if process.phase in (WAITS, ARRIVES, RETURNS, IN) and goes_on:
            if words[process.seat + TICKET] != process.ticket:
                raise Broken("a living process lost its seat")
            if process.phase in (ARRIVES, RETURNS, IN) and words[process.seat + STATE] not in (INSIDE, LOST):
                raise Broken("a holder was thrown out")
            if now.phase == WAITS and words[process.seat + HEARD]:
                raise Broken("a waiter is taken for one that knows of its grant")
            if words[process.seat + PERMITS] != old[process.seat + PERMITS]:
                raise Broken("a request was changed")


def judge_derived(m: list[int]) -> None:
    """After a complete change, the derived words agree with the records."""
    seats = links.all_seats(m)
    waiting = sorted((m[seat + TICKET], seat) for seat in seats if m[seat + STATE] == WAITING)
    queue = []
    seat, before = m[HEAD], 0
    while seat:
        if m[seat + PREVIOUS] != before:
            raise Broken("the links of the queue are wrong")
        queue.append((m[seat + TICKET], seat))
        before, seat = seat, m[seat + NEXT]
    if queue != waiting or m[TAIL] != before:
        raise Broken("the queue is not in ticket order")
    slots = sorted(m[at] for at in range(SLOTS, SLOTS + m[CAPACITY]) if m[at])
    inside = sorted(seat for seat in seats if m[seat + STATE] == INSIDE for _ in range(m[seat + PERMITS]))
    if slots != inside or m[USED] != len(slots):
        raise Broken("the slots are wrong")
    spare = set()
    seat = m[SPARE]
    while seat and seat not in spare:
        spare.add(seat)
        seat = m[seat + NEXT]
    if seat or spare != {seat for seat in seats if m[seat + STATE] == FREE}:
        raise Broken("a seat leaked")


def judge_grants(m: list[int]) -> None:
    """After a complete change in a room whose processes let each other in, nobody waits for nothing."""
    first = links.first_waiter(m)
    if first and m[USED] + m[first + PERMITS] <= m[K]:
        raise Broken("a free slot is not granted")
    if any(m[seat + PERMITS] > m[K] for seat in links.waiters(m)):
        raise Broken("a waiter wants more than there is")


def judge_permits(m: Sequence[int], processes: tuple[Process, ...]) -> None:
    """What users have, or are about to get. It is never another request's, however long ago the room was closed."""
    fences = [process.fence for process in processes if process.fence]
    if len(set(fences)) < len(fences):
        raise Broken("two permits have one fence")
    for process in processes:
        if process.fence and m[process.seat + TICKET] == process.ticket and m[process.seat + STATE] == INSIDE:
            if m[process.seat + FENCE] != process.fence:
                raise Broken("a permit is not what its request was granted")
            if process.closed:
                raise Broken("a permit is valid although its room was closed")


def judge_calm(model: Model, state: State) -> bool:
    """Raises Broken if nobody has anything to do and somebody is forgotten. Returns whether it was calm."""
    judge_permits(state.table, state.processes)
    if any(own for own, _ in model.steps(state)):
        return False
    case = model.case
    if case.stops or case.resizes or case.revokes or case.throttled:
        state = after_a_tick(model, state)
    waiting = running(state)
    if not waiting:
        return True
    m = list(state.table)
    if any(m[process.seat + STATE] != WAITING for process in waiting):
        raise Broken("a process is inside without knowing it")
    if m[DIRTY]:  # nobody will look; that is well if nothing would come of it
        table.rebuild(m, table.Change(NOW, SeenProcesses(model, m, state).is_stopped))
        if any(m[process.seat + STATE] == INSIDE for process in waiting):
            raise Broken("a change was interrupted, and nobody finishes it")
    if any(model.is_dead(state, m[seat + OWNER]) for seat in links.holders(m)):
        raise Broken("waiters wait for a dead holder")
    if any(m[seat + SKIPPED] and model.is_dead(state, m[seat + OWNER]) for seat in links.waiters(m)):
        raise Broken("a waiter that was passed over died, and stays")
    head = links.first_waiter(m)
    if head and all(process.seat != head for process in waiting):
        raise Broken("waiters wait for a waiter that is stopped or dead")
    return True


def running(state: State) -> list[Process]:
    """Those that believe that they wait, and are able to look."""
    return [process for process in state.processes if process.phase == WAITS and not process.stopped]


def after_a_tick(model: Model, state: State) -> State:
    """The state after the last waiter has looked once on its own, and after all that follows from it.

    Waiters elsewhere look so seldom that they do not count; the table says so.
    """
    waiting = running(state)
    if not waiting:
        return state
    words = list(state.table)
    for seat in links.all_seats(words):
        words[seat + LOOKS] = 0 if words[seat + SKIPPED] else NOW + 100 * TICK
    i = state.processes.index(max(waiting, key=lambda process: process.ticket))
    state = state._replace(table=tuple(words), budget=state.budget._replace(deaths=0))
    (state,) = model.locked(state, i, model.look(True))
    rested: State = at_rest(model, state)
    return rested
