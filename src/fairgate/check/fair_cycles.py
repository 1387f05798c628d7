"""Runs that go on for ever and are fair, while somebody waits in them: found as cycles, and shown as such.

Fairness is weak: what can be done all the time is done some time. It covers what must happen (expand.MUST): the
delivery of each message under way, the release by each node that is inside, each timer that is due, each word
of a detector, each tick. It does not cover what need not happen: requests, cancels and faults. Which of its choices
a node makes (`out.choose`) is not covered either: a step is taken, whatever was chosen in it.

In a strongly connected part of the graph in which a node waits all the time there is a fair run for ever if each of
these is taken somewhere inside the part, or cannot be taken somewhere. That is exact: if one can always be taken
and never is, no run that stays inside is fair, and otherwise a run through all of the part is.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fairgate.check.expand import MUST
from fairgate.check.liveness import Graph
from fairgate.check.model import Action, Model, State

Deed = tuple[str, int, object]  # an action without its choices
Edge = tuple[Action, int]  # and the number of the state it leads to


def parts(graph: Graph, node: int) -> Iterator[list[int]]:
    """Strongly connected parts, each with an edge inside, of the states in which the node waits (Tarjan)."""
    waiting, starts, targets = graph.waiting, graph.starts, graph.targets
    met = array("i", [0]) * len(graph)  # in which order, from 1
    low = array("i", [0]) * len(graph)
    following = array("i", starts)  # the edge to look at next
    is_open = bytearray(len(graph))
    opened: list[int] = []
    count = 0
    for root in range(len(graph)):
        if met[root] or not waiting[root] >> node & 1:
            continue
        way = [root]
        while way:
            state = way[-1]
            if not met[state]:
                count += 1
                met[state] = low[state] = count
                opened.append(state)
                is_open[state] = 1
            if following[state] < starts[state + 1]:
                target = targets[following[state]]
                if not met[target] and waiting[target] >> node & 1:
                    way.append(target)  # the edge is looked at again when it is done
                    continue
                if is_open[target]:
                    low[state] = min(low[state], low[target])
                following[state] += 1
                continue
            way.pop()
            if low[state] == met[state]:
                part: list[int] = []
                while not part or part[-1] != state:
                    part.append(opened.pop())
                    is_open[part[-1]] = 0
                if len(part) > 1 or state in graph.successors(state):
                    yield sorted(part)


class Part:
    """One such part, with the actions of its states: walked again, for the graph has only numbers."""

    def __init__(self, model: Model, number_of: Callable[[State], int], first: State, members: Sequence[int]) -> None:
        inside = set(members)
        self.first = number_of(first)
        self.enabled: dict[int, set[Deed]] = {}
        self.edges: dict[int, list[Edge]] = {}
        waiting = [(self.first, first)]
        while waiting:
            number, state = waiting.pop()
            if number in self.edges:
                continue
            steps = [(action, after) for action, after, _ in model.successors(state) if action[0] in MUST]
            self.enabled[number] = {action[:3] for action, _ in steps}
            self.edges[number] = []
            for action, after in steps:
                target = number_of(after)
                if target in inside:
                    self.edges[number].append((action, target))
                    waiting.append((target, after))

    def is_fair(self) -> bool:
        always = set.intersection(*self.enabled.values())
        taken = {action[:3] for edges in self.edges.values() for action, _ in edges}
        return always <= taken

    def cycle(self) -> tuple[Action, ...]:
        """A fair way round, from the first state back to it; from each deed to the next by the shortest way."""
        at = self.first
        owed = set(self.enabled[at])  # what can be done all the time, as far as we have come, and was not yet
        path: list[Action] = []
        while owed:
            for action, target in self.way(at, partial(self.pays, owed)):
                path.append(action)
                at = target
                owed.discard(action[:3])
                owed &= self.enabled[at]
        if at != self.first or not path:
            path += [action for action, _ in self.way(at, lambda edge: edge[1] == self.first)]
        return tuple(path)

    def pays(self, owed: set[Deed], edge: Edge) -> bool:
        """Is something of what is owed done in this step, or impossible after it?"""
        action, target = edge
        return action[:3] in owed or not owed <= self.enabled[target]

    def way(self, start: int, ends: Callable[[Edge], bool]) -> list[Edge]:
        """The shortest one of at least one step whose last step is as wanted."""
        came: dict[int, tuple[int, Edge]] = {}
        queue = deque([start])
        while True:
            state = queue.popleft()
            for edge in self.edges[state]:
                if ends(edge):
                    found = [edge]
                    while state != start:
                        state, before = came[state]
                        found.append(before)
                    return found[::-1]
                if edge[1] not in came and edge[1] != start:
                    came[edge[1]] = (state, edge)
                    queue.append(edge[1])
