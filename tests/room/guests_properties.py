"""What must hold in every state of a room with guests, and in those in which nobody has anything to do on its own."""

from __future__ import annotations

from fairgate.room.layout import (
    CLUSTER_SLOT,
    DIRTY,
    FENCE,
    FREE,
    GRANTED_BY,
    HEARD,
    INSIDE,
    LOST,
    OWNER,
    PROMISED,
    SKIPPED,
    STATE,
    TICKET,
    WAITING,
)
from tests.room.guests import IN, LATER, NOW, WAITS, Model, State, look
from tests.room.model import Broken
from tests.room.plain import links

MANY = 60  # steps that follow from one


def judge_change(before: State, after: State) -> None:
    judge_guests(before, after)
    judge_permits(after)
    old, new = before.table, after.table
    seats = links.all_seats(list(new))
    tickets = [new[seat + TICKET] for seat in seats if new[seat + STATE] != FREE]
    if len(set(tickets)) < len(tickets):
        raise Broken("two requests have one ticket")
    stopped = [guest.seat for guest in before.guests if guest.stopped]
    asked = dict(before.peer.asked)  # a guest for which the peer has not asked yet cannot be overtaken
    for seat in seats:
        if new[seat + STATE] == INSIDE and (old[seat + STATE] != INSIDE or old[seat + TICKET] != new[seat + TICKET]):
            if seat in stopped:
                raise Broken("a stopped guest was let in")
            for other in seats:
                waits = new[other + STATE] == WAITING and new[other + TICKET] < new[seat + TICKET]
                if waits and new[other + TICKET] in asked and not (new[other + SKIPPED] or old[other + SKIPPED]):
                    raise Broken("a guest is overtaken")


def judge_guests(before: State, after: State) -> None:
    """What a change may not do to the requests of others."""
    m = after.table
    for guest, now in zip(before.guests, after.guests, strict=True):
        if guest.phase in (WAITS, IN) and now.ticket == guest.ticket:
            if m[guest.seat + TICKET] != guest.ticket:
                raise Broken("a living guest lost its seat")
            if guest.phase == IN and m[guest.seat + STATE] not in (INSIDE, LOST):
                raise Broken("a guest was thrown out")
            if guest.phase == IN and m[guest.seat + STATE] == LOST != before.table[guest.seat + STATE]:
                held = before.slots[before.table[guest.seat + CLUSTER_SLOT] - 1]
                if (
                    after.peer.up
                    and held[1] == before.table[guest.seat + FENCE]
                    and before.table[guest.seat + PROMISED] > NOW
                ):
                    raise Broken("a permit was revoked for no reason")
            if now.phase == WAITS and m[guest.seat + HEARD]:
                raise Broken("a guest that waits is taken for one that knows of its grant")


def judge_permits(state: State) -> None:
    """A permit that is not over has a slot of the cluster, which the peer that it names has, with its fence."""
    m = state.table
    for seat in links.all_seats(list(m)):
        if m[seat + STATE] == INSIDE and m[seat + PROMISED] > NOW:
            if state.slots[m[seat + CLUSTER_SLOT] - 1] != (m[seat + GRANTED_BY], m[seat + FENCE]):
                raise Broken("a permit goes on although the cluster may give its slot to others")
            if m[seat + PROMISED] != LATER + m[seat + GRANTED_BY]:
                raise Broken("a promise was not made by the peer that granted the permit")
        elif m[seat + STATE] == INSIDE and not m[seat + PROMISED]:
            raise Broken("a permit was granted by nobody")


def judge_calm(model: Model, state: State) -> bool:
    """Raises Broken if nobody has anything to do and somebody is forgotten. Returns whether it was calm."""
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
            if model.is_dead(state.guests, m[seat + OWNER]):
                raise Broken("a dead guest keeps waiting")
    return True


def judge_waiting(state: State) -> None:
    for guest in state.guests:
        if guest.phase == WAITS and not guest.stopped and state.table[guest.seat + STATE] != WAITING:
            raise Broken("a guest is inside without knowing it")


def works(state: State) -> bool:
    return state.peer.up and not state.peer.stopped and not state.table[DIRTY]


def judge_cluster(model: Model, state: State) -> None:
    """What the peer has at the cluster is what its living guests need."""
    m = state.table
    alive = [seat for seat in model.seats if not model.is_dead(state.guests, m[seat + OWNER] or 1)]
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
    for i, guest in enumerate(state.guests):
        if guest.phase == WAITS and not guest.stopped and not guest.to_ring:
            (state,) = model.change_by_guest(state, i, look)
    for _ in range(MANY):
        own = next((after for own, after in model.steps(state) if own), None)
        if own is None:
            return state
        state = own[0]
    raise Broken("the processes never come to rest")
