"""Liveness over the whole graph of states: is every pending request granted?

If the graph has no cycle, every run ends. Then it is enough that no node waits in a final state, which the explorer
has checked. If there are cycles (retries, resets), every state in which a node waits must be able to reach one in which
it does not; a node that cannot is lost. Whether a fair run can stay in a cycle forever while a node waits is a question
for fair_cycles.py.

The edges here are the steps that must happen eventually (deliveries, releases, timers). Optional steps (another
request, a cancel, a fault) are left out: no waiting node may depend on them, and they have budgets, so that they
cannot go on forever.
"""

from array import array
from collections.abc import Sequence

from fairgate.check.expand import ints


class Graph:
    """Edges between numbered states, kept in arrays: state i has targets[starts[i]:starts[i + 1]]."""

    def __init__(self) -> None:
        self.starts = array("i", [0])
        self.targets = array("i")
        self.waiting = array("i")  # state -> bit mask of the waiting nodes

    def extend(self, ends: list[int], targets: "array[int]", waiting: "array[int]") -> None:
        """Append states: where the edges of each end, as indexes into `targets`, and which nodes wait in it."""
        before = len(self.targets)
        self.starts.extend(ints([before + end for end in ends]))
        self.targets.extend(targets)
        self.waiting.extend(waiting)

    def successors(self, state: int) -> Sequence[int]:
        return self.targets[self.starts[state] : self.starts[state + 1]]

    def __len__(self) -> int:
        return len(self.waiting)

    def leads_back(self) -> bool:
        """Is there an edge to the same or an earlier state? Every cycle has one."""
        starts, targets = self.starts, self.targets
        for state in range(len(self)):
            for at in range(starts[state], starts[state + 1]):
                if targets[at] <= state:
                    return True
        return False

    def on_cycles(self) -> list[int]:
        """States on a cycle or reachable from one: those that a topological sort leaves over (Kahn)."""
        if not self.leads_back():
            return []
        count = len(self)
        starts, targets = self.starts, self.targets
        # Edges from states that are not sorted yet. At 0 a state is ready; its entry then links to the next ready
        # state, as -2 - state, or -1 at the end. So the stack of ready states needs no memory of its own.
        incoming = array("i", [0]) * count
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
        """A graph with every edge reversed."""
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
        """A (state, node) such that the node waits in the state and can never stop waiting; None if there is none."""
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
