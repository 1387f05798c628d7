"""Counts overtakes in fair_k_bounded: how often one node enters while another is queued, over all runs of a case."""

from __future__ import annotations

from fairgate.check.model import Model, State
from fairgate.core.ids import NIL
from fairgate.protocols.fair_k import TokenLocations

TURN = 14  # its index in the key


def bound(n: int, k: int, reentry: int) -> int:
    """The bound that papers/fair_k.md gives."""
    return (reentry + 1) * (1 + (k - 1) * (n - 1))


def most_past(model: Model, waiter: int, other: int) -> int:
    """The most times that `other` enters while `waiter` has its turn, over all runs."""
    found = [(model.first(), 0)]
    seen = set(found)
    for state, past in found:  # the list grows during the loop
        for _, after, broken in model.successors(state):
            assert not broken
            count = past + came_in(model, state, after, other) if has_turn(model, after, waiter) else 0
            if (after, count) not in seen:
                seen.add((after, count))
                found.append((after, count))
    return max(past for _, past in found)


def came_in(model: Model, state: State, after: State, me: int) -> bool:
    return phase(model, state, me) != "inside" and phase(model, after, me) == "inside"


def has_turn(model: Model, state: State, me: int) -> bool:
    """Does the node wait with a turn in the queue, which it knows or will learn from a message in flight?"""
    if phase(model, state, me) != "waiting":
        return False
    under_way = [model.things[message] for message in state[model.at_flight :]]
    told = any(dst == me and fields[0] == TokenLocations.tag for _, dst, fields in under_way)
    return told or model.things[state[me]][1][TURN] != NIL


def phase(model: Model, state: State, me: int) -> str:
    return str(model.things[state[model.n + me]][3])
