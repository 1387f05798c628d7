"""Finds starvation: fair infinite runs in which a node waits forever, shown as cycles.

Fairness is weak: an action that stays enabled forever is taken eventually. It covers the actions that must happen
(expand.MUST): the delivery of each message in flight, the release by each node that is inside, each timer that is due,
each notification from a failure detector, each tick. It does not cover requests, cancels and faults, which need not
happen. Nor does it cover which choice a node makes (`out.choose`): the step counts as taken, whatever was chosen.

A part is a strongly connected component of the graph in whose states one node is always waiting. It contains a fair
infinite run if and only if each of these actions is taken somewhere in the part or disabled somewhere in it. If some
action is always enabled and never taken, no run that stays inside is fair; otherwise a run through the whole part is.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fairgate.check.expand import MUST
from fairgate.check.liveness import Graph
from fairgate.check.model import Action, Model, State

Deed = tuple[str, int, object]  # an action without its choices
Edge = tuple[Action, int]  # an action, and the number of the state it leads to


def parts(graph: Graph, node: int) -> Iterator[list[int]]:
    """Strongly connected components of the states in which the node waits, if they have an edge inside (Tarjan)."""
    waiting, starts, targets = graph.waiting, graph.starts, graph.targets
    met = array("i", [0]) * len(graph)  # the order in which states were met, from 1
    low = array("i", [0]) * len(graph)
    following = array("i", starts)  # per state, the edge to follow next
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
                    way.append(target)  # this edge is visited again when the target is done
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
    """One part, with the actions of its states. They are found by walking it again: the graph has only numbers."""

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
        """A fair cycle from the first state back to it, with the shortest path from each required deed to the next."""
        at = self.first
        owed = set(self.enabled[at])  # deeds that were enabled in every state so far and not taken yet
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
        """Does this step take one of the deeds owed, or lead to a state in which one is disabled?"""
        action, target = edge
        return action[:3] in owed or not owed <= self.enabled[target]

    def way(self, start: int, ends: Callable[[Edge], bool]) -> list[Edge]:
        """The shortest path of at least one step whose last step satisfies `ends`."""
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
