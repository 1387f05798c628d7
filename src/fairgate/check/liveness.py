"""Liveness over the whole graph of states: does every pending request come through?

A graph without cycles is the plain case: every run ends, so it is enough that no end has anybody waiting,
which the explorer has seen. Where there are cycles (retries, resets), every state must at least be able to
reach one in which a node that waits no longer does; whoever cannot is lost. Whether a fair scheduler could
turn in a cycle for ever while somebody waits is not decided: a report says how many states are on cycles.

Only steps that must happen in the end are edges here (deliveries, releases, timers). What may happen and need
not (a further request, a cancel, a fault) helps nobody who waits, and cannot go on for ever: it has a budget.
"""

from array import array
from collections.abc import Sequence

from fairgate.check.expand import ints


class Graph:
    """Edges between numbered states, kept in arrays: state i has targets[starts[i]:starts[i + 1]]."""

    def __init__(self) -> None:
        self.starts = array("i", [0])
        self.targets = array("i")
        self.waiting = array("i")  # state -> bit mask of the nodes that wait

    def extend(self, ends: list[int], targets: "array[int]", waiting: "array[int]") -> None:
        """The next states: where the edges of each end, counted from the first of these, and who waits in it."""
        before = len(self.targets)
        self.starts.extend(ints([before + end for end in ends]))
        self.targets.extend(targets)
        self.waiting.extend(waiting)

    def successors(self, state: int) -> Sequence[int]:
        return self.targets[self.starts[state] : self.starts[state + 1]]

    def __len__(self) -> int:
        return len(self.waiting)

    def leads_back(self) -> bool:
        """Is there an edge to an earlier state? There is one in every cycle."""
        starts, targets = self.starts, self.targets
        for state in range(len(self)):
            for at in range(starts[state], starts[state + 1]):
                if targets[at] <= state:
                    return True
        return False

    def on_cycles(self) -> list[int]:
        """States that are on a cycle or behind one: those that cannot be put into an order (Kahn)."""
        if not self.leads_back():
            return []
        count = len(self)
        starts, targets = self.starts, self.targets
        incoming = array("i", [0]) * count  # of who is ready: not used any more, so the one that is ready after it
        for at in range(len(targets)):
            incoming[targets[at]] += 1
        ready = -1
        for state in range(count):
            if incoming[state] == 0:
                incoming[state] = ready
                ready = -2 - state
        done = 0
        while ready != -1:
            state = -2 - ready
            ready = incoming[state]
            done += 1
            for at in range(starts[state], starts[state + 1]):
                target = targets[at]
                incoming[target] -= 1
                if incoming[target] == 0:
                    incoming[target] = ready
                    ready = -2 - target
        return [state for state in range(count) if incoming[state] > 0] if done < count else []

    def reversed(self) -> "Graph":
        """The same edges the other way round."""
        back = Graph()
        counts = array("i", bytes(4 * (len(self) + 1)))
        for target in self.targets:
            counts[target + 1] += 1
        for state in range(len(self)):
            counts[state + 1] += counts[state]
        back.starts = array("i", counts)
        back.targets = array("i", bytes(4 * len(self.targets)))
        for state in range(len(self)):
            for target in self.successors(state):
                back.targets[counts[target]] = state
                counts[target] += 1
        back.waiting = self.waiting
        return back

    def lost(self, nodes: int) -> tuple[int, int] | None:
        """The first (state, node) from which the node's request can never be granted; None if there is none."""
        back = self.reversed()
        for node in range(nodes):
            bit = 1 << node
            reached = bytearray(0 if mask & bit else 1 for mask in self.waiting)
            stack = [state for state in range(len(self)) if reached[state]]
            while stack:
                for source in back.successors(stack.pop()):
                    if not reached[source]:
                        reached[source] = 1
                        stack.append(source)
            state = reached.find(0)
            if state >= 0:
                return state, node
        return None
