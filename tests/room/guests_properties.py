"""What must hold in every state of a room with guests, and in those in which nobody has anything to do on its own."""

from __future__ import annotations

from fairgate.room.layout import (
    CLUSTER_SLOT,
    DEADLINE,
    DIRTY,
    FENCE,
    FREE,
    GRANTED_BY,
    INSIDE,
    LOST,
    OWNER,
    PROMISED,
    SKIPPED,
    STATE,
    TICKET,
    WAITING,
)
from tests.room.guests import LATER, Model, State
from tests.room.plain import links
from tests.room.processes import NOW, WAITS, Broken, at_rest
from tests.room.properties import judge_derived, judge_permits, judge_requests


def judge_change(before: State, after: State, breaks: bool) -> None:
    m = list(after.table)
    judge_requests(before.processes, before.table, after.processes, m)
    if not m[DIRTY]:
        judge_derived(m)
    if not breaks:
        judge_revoked(before, after)
    judge_promises(after)
    old, new = before.table, after.table
    seats = links.all_seats(list(new))
    tickets = [new[seat + TICKET] for seat in seats if new[seat + STATE] != FREE]
    if len(set(tickets)) < len(tickets):
        raise Broken("two requests have one ticket")
    stopped = [guest.seat for guest in before.processes if guest.stopped and not guest.closed]
    asked = dict(before.peer.asked)  # a guest for which the peer has not asked yet cannot be overtaken
    for seat in seats:
        if new[seat + STATE] == INSIDE and (old[seat + STATE] != INSIDE or old[seat + TICKET] != new[seat + TICKET]):
            if seat in stopped:
                raise Broken("a stopped guest was let in")
            for other in seats:
                waits = new[other + STATE] == WAITING and new[other + TICKET] < new[seat + TICKET]
                if waits and new[other + TICKET] in asked and not (new[other + SKIPPED] or old[other + SKIPPED]):
                    raise Broken("a guest is overtaken")


def judge_revoked(before: State, after: State) -> None:
    """A permit goes on until its time is over, or its peer or the cluster ends it."""
    old, new = before.table, after.table
    for seat in links.all_seats(list(new)):
        if old[seat + STATE] == INSIDE and new[seat + STATE] == LOST and not old[seat + DEADLINE]:
            held = before.slots[old[seat + CLUSTER_SLOT] - 1]
            if after.peer.up and held[1] == old[seat + FENCE] and old[seat + PROMISED] > NOW:
                raise Broken("a permit was revoked for no reason")


def judge_promises(state: State) -> None:
    """A permit that is not over has a slot of the cluster, which the peer that it names has, with its fence."""
    m = state.table
    slots = []
    for seat in links.all_seats(list(m)):
        if m[seat + STATE] == INSIDE and m[seat + PROMISED] > NOW:
            slots.append(m[seat + CLUSTER_SLOT])
            if state.slots[m[seat + CLUSTER_SLOT] - 1] != (m[seat + GRANTED_BY], m[seat + FENCE]):
                raise Broken("a permit goes on although the cluster may give its slot to others")
            if m[seat + PROMISED] != LATER + m[seat + GRANTED_BY]:
                raise Broken("a promise was not made by the peer that granted the permit")
        elif m[seat + STATE] == INSIDE and not m[seat + PROMISED]:
            raise Broken("a permit was granted by nobody")
        if m[seat + STATE] == INSIDE and m[seat + DEADLINE] not in (0, NOW):
            raise Broken("a permit has the lease of an earlier request")
    if len(set(slots)) < len(slots):
        raise Broken("two are inside with one slot")


def judge_calm(model: Model, state: State) -> bool:
    """Raises Broken if nobody has anything to do and somebody is forgotten. Returns whether it was calm."""
    judge_permits(state.table, state.processes)
    if any(own for own, _ in model.steps(state)):
        return False
    if not model.case.stops and works(state):
        judge_cluster(model, state)  # without any tick, as the next one
        judge_waiting(state)
    state = after_ticks(model, state)
    m = list(state.table)
    judge_waiting(state)
    if works(state):
        judge_cluster(model, state)
        for seat in links.waiters(m):
            if not m[seat + SKIPPED] and m[seat + TICKET] not in state.peer.pending:
                raise Broken("nobody asks the cluster for a guest that waits")
            if model.is_dead(state, m[seat + OWNER]):
                raise Broken("a dead guest keeps waiting")
        if any(m[seat + STATE] == INSIDE and m[seat + DEADLINE] for seat in model.seats):
            raise Broken("a lease is over, and its permit goes on")
    return True


def judge_waiting(state: State) -> None:
    for guest in state.processes:
        if guest.phase == WAITS and not guest.stopped and state.table[guest.seat + STATE] != WAITING:
            raise Broken("a guest is inside without knowing it")


def works(state: State) -> bool:
    return state.peer.up and not state.peer.stopped and not state.table[DIRTY]


def judge_cluster(model: Model, state: State) -> None:
    """What the peer has at the cluster is what its living guests need."""
    m = state.table
    alive = [seat for seat in model.seats if not model.is_dead(state, m[seat + OWNER] or 1)]
    inside = {m[seat + CLUSTER_SLOT] - 1 for seat in alive if m[seat + STATE] == INSIDE}
    waiting = {m[seat + TICKET] for seat in alive if m[seat + STATE] == WAITING}
    for slot, (life, _) in enumerate(state.slots):
        if life == state.peer.life and slot not in inside:
            raise Broken("the peer keeps a slot for nobody")
    if len(set(state.peer.pending)) < len(state.peer.pending):
        raise Broken("the peer asks twice for one guest")
    if not set(state.peer.pending) <= waiting:
        raise Broken("the peer asks for a guest that does not wait")


def after_ticks(model: Model, state: State) -> State:
    """The state after the peer and all guests that wait have looked once on their own, and what follows from it."""
    state = state._replace(budget=state.budget._replace(deaths=0, halts=0, fails=0))
    if state.peer.up and not state.peer.stopped:
        (state,) = model.turn_of_peer(state, lambda *about: model.looks(state, (0,), *about))
    for i, guest in enumerate(state.processes):
        if guest.phase == WAITS and not guest.stopped and not guest.to_ring:
            (state,) = model.locked(state, i, model.look(False))
    rested: State = at_rest(model, state)
    return rested
