"""Everybody who waits, in the order of asking: where overtakes are counted.

Who comes in before others that asked earlier has overtaken them. The line is a linked list over the
nodes (a node has one request at a time), so a fair protocol, which takes from the front, pays next to
nothing for the count. With up to EXACT nodes it is exact. With more, the count of one entry ends at MOST and
the sum is a lower bound: a burst of 100,000 requests must not cost a walk along all of them for each.
"""

from fairgate.core.ids import NIL
from fairgate.core.numbers import numbers

EXACT, MOST = 1000, 100


class Line:
    def __init__(self, n: int, gates: int = 1) -> None:
        self.gates = gates  # node x stands in line for gate x % gates: at each gate there is a line of its own
        self.before = numbers(n, NIL)
        self.after = numbers(n, NIL)
        self.passed = numbers(n)  # how often the present request of a node was overtaken
        self.most = n if n <= EXACT else MOST
        self.tail = numbers(gates, NIL)
        self.length = 0
        self.overtakes = 0  # pairs (who came in, who asked earlier and still waits)
        self.max_displacement = 0  # the most that one entry overtook
        self.max_overtaken = 0  # the most often that one request was overtaken

    def join(self, node: int) -> None:
        tail = self.tail[node % self.gates]
        self.before[node] = tail
        self.after[node] = NIL
        self.passed[node] = 0
        if tail != NIL:
            self.after[tail] = node
        self.tail[node % self.gates] = node
        self.length += 1

    def enter(self, node: int) -> None:
        """The node leaves the line because it came in: it overtook all before it."""
        if self.before[node] != NIL:
            self.overtake(node)
        if self.passed[node] > self.max_overtaken:
            self.max_overtaken = self.passed[node]
        self.drop(node)

    def overtake(self, node: int) -> None:
        """Count those who asked before this node and still wait."""
        displacement = 0
        other = self.before[node]
        while other != NIL and displacement < self.most:
            displacement += 1
            self.passed[other] += 1
            other = self.before[other]
        self.overtakes += displacement
        if displacement > self.max_displacement:
            self.max_displacement = displacement

    def drop(self, node: int) -> None:
        """The node leaves the line without coming in: it gave up, or crashed."""
        front = self.before[node]
        back = self.after[node]
        if front != NIL:
            self.after[front] = back
        if back != NIL:
            self.before[back] = front
        else:
            self.tail[node % self.gates] = front
        self.length -= 1
