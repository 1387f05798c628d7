"""The search of explore.py and explore_guests.py: every state that can be reached, with a check of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fairgate.room.layout import FREE, STATE, TICKET
from tests.room.processes import Broken, Process, Rings


@dataclass
class Found:
    states: int = 0
    calm: int = 0


def search(model: Any, packer: Any, judge_calm: Callable[[Any, Any], bool], most: int) -> Found:
    """All states that can be reached. Raises Broken, with the path, if a property does not hold in one of them.

    `packer` makes keys of states, the same one for states that differ only in what does not matter.
    """
    start = packer.pack(model.start)
    parents: dict[Any, Any] = {start: None}
    stack = [start]
    found = Found()
    while stack and len(parents) < most:
        key = stack.pop()
        state = packer.unpack(key)
        try:
            found.calm += judge_calm(model, state)
            for own, after in model.steps(state):
                reached = [packer.pack(each) for each in after]
                if own and reached[0] == key:
                    raise Broken("a process looks again and again, and nothing comes of it")
                for new in reached:
                    if new not in parents:
                        parents[new] = key
                        stack.append(new)
        except Broken as broken:
            broken.path = [packer.unpack(each) for each in path_to(key, parents)]
            raise
    found.states = len(parents)
    return found


def path_to(key: Any, parents: dict[Any, Any]) -> list[Any]:
    path = [key]
    while (before := parents[path[-1]]) is not None:
        path.append(before)
    return path[::-1]


def ranks(values: Iterable[int], first: int) -> dict[int, int]:
    return {value: rank for rank, value in enumerate(sorted(set(values)), first)}


def ranked(process: Process, tickets: dict[int, int], fences: dict[int, int]) -> Process:
    """With the ranks of its ticket and its fence, because only their order matters."""
    rings = ranked_rings(process.to_ring, tickets)
    return process._replace(ticket=tickets.get(process.ticket, 0), to_ring=rings, fence=fences[process.fence])


def ranked_rings(rings: Rings, tickets: dict[int, int]) -> Rings:
    """A ring for a request that nobody knows any more only says that somebody has to look."""
    return tuple([(owner, tickets.get(ticket, 0)) for owner, ticket in rings])


def left_by_closed(m: list[int], processes: Iterable[Process]) -> None:
    """A free seat may still have the ticket of a request that ended when its room was closed."""
    for process in processes:
        if process.closed and m[process.seat + STATE] == FREE:
            m[process.seat + TICKET] = process.ticket
