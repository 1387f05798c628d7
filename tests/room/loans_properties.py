"""What must hold in every state of a room whose slots are on loan (loans.py), and in the calm ones."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.room.layout import (
    CAPACITY,
    DIRTY,
    FENCE,
    FREE,
    INSIDE,
    LENDER,
    LOOKS,
    LOST,
    OWNER,
    SKIPPED,
    SLOTS,
    STATE,
    TICK,
    TICKET,
    WAITING,
)  # fmt: skip
from tests.room.loans import LATER, REMOTE, Model, State, free
from tests.room.plain import lending, links, table
from tests.room.processes import NOW, WAITS, Broken, at_rest
from tests.room.properties import judge_derived, judge_permits, judge_requests


def judge_change(before: State, after: State, breaks: bool) -> State:
    """Returns the state with the highest fences."""
    old, new = before.table, after.table
    m = list(new)
    judge_requests(before.processes, old, after.processes, m)
    if not m[DIRTY]:
        judge_derived(m)
        judge_fits(m)
    judge_loans(after)
    if not breaks:
        judge_revoked(before, after)
    seats = links.all_seats(m)
    tickets = [new[seat + TICKET] for seat in seats if new[seat + STATE] != FREE and not links.is_away(m, seat)]
    if len(set(tickets)) < len(tickets):
        raise Broken("two requests have one ticket")
    tops = list(after.tops)
    for seat in sorted([seat for seat in seats if is_granted(old, new, seat)], key=lambda each: new[each + FENCE]):
        for other in seats:
            waits = new[other + STATE] == WAITING and new[other + TICKET] < new[seat + TICKET]
            if waits and not (new[other + SKIPPED] or old[other + SKIPPED]):
                raise Broken("a waiter is overtaken")
        if not new[seat + LENDER]:
            judge_grant(before, after, seat)
            for slot in links.slots_of(m, seat):
                if new[seat + FENCE] <= tops[slot]:
                    raise Broken("a fence does not rise")
                tops[slot] = new[seat + FENCE]
    return after._replace(tops=tuple(tops))


def is_granted(old: Sequence[int], new: Sequence[int], seat: int) -> bool:
    """Was the request of this seat let in? The peer also takes slots without asking, or after another peer."""
    if new[seat + STATE] != INSIDE or (old[seat + STATE] == INSIDE and old[seat + TICKET] == new[seat + TICKET]):
        return False
    return not new[seat + LENDER] or (old[seat + STATE] == WAITING and old[seat + TICKET] == new[seat + TICKET])


def judge_grant(before: State, after: State, seat: int) -> None:
    """Of a user."""
    m, ticket = list(after.table), after.table[seat + TICKET]
    if any(user.stopped and user.seat == seat and user.ticket == ticket for user in before.processes):
        raise Broken("a stopped user was let in")
    if any(not links.is_on_loan(m, slot, NOW) for slot in links.slots_of(m, seat)):
        raise Broken("a user was let in to a slot that is not on loan")
    waited = [stamp for who, stamp in before.line if who == REMOTE and 0 < stamp <= ticket]
    old = list(before.table)
    on_their_way = [slot for slot, _ in before.peer.lent if lending.is_slot_away(old, slot)]
    if len(waited) > free(before) + len(on_their_way):
        raise Broken("a user overtakes one of another host")


def judge_loans(state: State) -> None:
    """A slot that users of this room have, or may get, is one that the cluster has given to the peer that lent it."""
    m = list(state.table)
    for slot, (who, _) in enumerate(state.slots):
        until = m[links.until_at(m, slot)]
        seat = m[SLOTS + slot]
        away = seat and m[seat + LENDER] and (m[seat + STATE] == INSIDE or m[DIRTY])
        user = seat and not m[seat + LENDER] and m[seat + STATE] == INSIDE
        if user and until <= NOW and not 0 < links.end_of(m, seat) <= NOW:
            raise Broken("a permit goes on although its loan is over")
        if not away and until > NOW and (who <= 0 or until != LATER + who):
            raise Broken("a slot is on loan although the cluster may give it to others")


def judge_revoked(before: State, after: State) -> None:
    """A permit goes on until its loan is over, or its peer leaves."""
    old, new = list(before.table), after.table
    for seat in links.all_seats(old):
        lost = old[seat + STATE] == INSIDE and new[seat + STATE] == LOST and not old[seat + LENDER]
        if lost and after.peer.up and links.lent_until(old, seat) > NOW and not old[DIRTY]:
            raise Broken("a permit was revoked for no reason")


def judge_fits(m: list[int]) -> None:
    first = links.first_waiter(m)
    if first and links.fits(m, first, NOW):
        raise Broken("a free slot is not granted")


def judge_calm(model: Model, state: State) -> bool:
    """Raises Broken if nobody has anything to do and somebody is forgotten. Returns whether it was calm.

    The cluster can always grant: that nobody makes it is no forgetting.
    """
    judge_permits(state.table, state.processes)
    if any(own for own, _ in model.steps(state)):
        return False
    if works(state) and not (model.case.halts or state.table[DIRTY]):
        judge_peer(model, state)  # without any tick
    if model.case.stops or model.case.halts or model.case.revokes:
        state = after_ticks(model, state)
    m = list(state.table)
    waiting = [user for user in state.processes if user.phase == WAITS and not user.stopped]
    if any(m[user.seat + STATE] != WAITING for user in waiting):
        raise Broken("a user is inside without knowing it")
    if works(state) and not m[DIRTY]:
        judge_peer(model, state)
    if not waiting and not (works(state) and state.peer.markers):
        return True
    if m[DIRTY]:
        change, _ = model.begin(state)[1:]
        table.rebuild(m, change)
        if any(m[user.seat + STATE] == INSIDE for user in waiting):
            raise Broken("a change was interrupted, and nobody finishes it")
    if any(model.is_dead(state, m[seat + OWNER]) for seat in links.users(m)):
        raise Broken("waiters wait for a dead holder")
    head = links.first_waiter(m)
    ours = [user.seat for user in waiting] + ([seat for _, seat in state.peer.markers] if works(state) else [])
    if head and head not in ours:
        raise Broken("waiters wait for a waiter that is stopped or dead")
    return True


def works(state: State) -> bool:
    return state.peer.up and not state.peer.stopped


def judge_peer(model: Model, state: State) -> None:
    """What the peer has, has asked for and asks back, is what is needed."""
    peer, m = state.peer, list(state.table)
    waiting = [user for user in state.processes if user.phase == WAITS and not user.stopped]
    lent, markers = dict(peer.lent), dict(peer.markers)
    for slot, (who, _) in enumerate(state.slots):
        if who == peer.life and slot not in lent:
            raise Broken("the peer keeps a slot for nobody")
        if slot in lent and lending.is_slot_away(m, slot):
            raise Broken("a slot came back, and the peer does not know")
        if slot in lent and not m[SLOTS + slot] and (markers or model.case.blind):
            raise Broken("a slot is free, and does not come back")
    earlier = [slot for slot in range(m[CAPACITY]) if links.is_on_loan(m, slot, NOW) and slot not in lent]
    if len(markers) < len([slot for slot in earlier if not lending.is_slot_away(m, slot)]):
        raise Broken("nobody asks for a slot that an earlier peer has lent")
    if len(markers) < min(len(lent), model.wanted(state)):
        raise Broken("somebody elsewhere waits, and nobody asks for the slot")
    if len(peer.pending) != len([who for who, _ in state.line if who == peer.life]):
        raise Broken("the peer does not know what it has asked for")
    latest = max([0, *peer.pending, *markers])
    may_ask = len(lent) - len(markers) < m[CAPACITY] and len(peer.pending) < max(model.case.k, lending.MOST_PENDING)
    if may_ask and any(user.ticket > latest and not m[user.seat + SKIPPED] for user in waiting):
        raise Broken("nobody asks the cluster for a user that waits")


def after_ticks(model: Model, state: State) -> State:
    """The state after the last waiter and the peer have looked once on their own, and after all that follows.

    Users that have lost their permits without having heard of them look as well: nobody else makes up for that ring.
    """
    words = list(state.table)
    for seat in links.all_seats(words):
        words[seat + LOOKS] = 0 if words[seat + SKIPPED] else NOW + 100 * TICK
    state = state._replace(table=tuple(words), budget=state.budget._replace(deaths=0, halts=0))
    waiting = [user for user in state.processes if user.phase == WAITS and not user.stopped]
    if waiting:
        i = state.processes.index(max(waiting, key=lambda user: user.ticket))
        (state,) = model.locked(state, i, model.look(True))
    if state.peer.up and not state.peer.stopped and not state.peer.to_ring:
        (state,) = model.by_peer(state, lambda *about: model.looks(state, True, *about), state)
    for i, user in enumerate(state.processes):
        if user.phase == WAITS and not user.stopped and state.table[user.seat + STATE] == LOST:
            (state,) = model.locked(state, i, model.look(True))
    rested: State = at_rest(model, state)
    return rested
