"""How often one node comes in while another one of fair_k_bounded has its turn and waits, in every run of a case."""

from __future__ import annotations

from fairgate.check.model import Model, State
from fairgate.core.ids import NIL
from fairgate.protocols.fair_k import TokenLocations

TURN = 14  # its place in the key


def bound(n: int, k: int, reentry: int) -> int:
    """What papers/fair_k.md says of it."""
    return (reentry + 1) * (1 + (k - 1) * (n - 1))


def most_past(model: Model, waiter: int, other: int) -> int:
    """In all runs, however few lead there."""
    found = [(model.first(), 0)]
    seen = set(found)
    for state, past in found:  # grows meanwhile
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
    """It waits, and was told its turn, or is about to be."""
    if phase(model, state, me) != "waiting":
        return False
    under_way = [model.things[message] for message in state[model.at_flight :]]
    told = any(dst == me and fields[0] == TokenLocations.tag for _, dst, fields in under_way)
    return told or model.things[state[me]][1][TURN] != NIL


def phase(model: Model, state: State, me: int) -> str:
    return str(model.things[state[model.n + me]][3])
