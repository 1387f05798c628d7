"""The waiting requests of one gate in the order of asking, and an exact count of overtakes; in pure Python.

A request that enters before earlier ones has overtaken them. `join` numbers the requests 1, 2, 3 ... So an entry has
overtaken the smaller numbers that still wait; and it was itself overtaken by the larger numbers that entered before it.
Those are all larger numbers except the ones that still wait and the ones that were dropped.

Here the numbers that wait are a sorted list. The twin overtakes.pyx has a tree, because deleting from a list of 100,000
takes too long.
"""

from bisect import bisect_left, insort


class Waiters:
    __slots__ = ("dropped", "joined", "max_displacement", "max_overtaken", "overtakes", "waiting")

    def __init__(self) -> None:
        self.joined = 0
        self.waiting: list[int] = []
        self.dropped: list[int] = []  # without those smaller than all that wait
        self.overtakes = 0  # pairs (request that entered, earlier request that still waited)
        self.max_displacement = 0  # the most requests that one entry overtook
        self.max_overtaken = 0  # the most times that one request was overtaken

    def join(self) -> int:
        """Add a request, and return its number."""
        self.joined += 1
        self.waiting.append(self.joined)
        return self.joined

    def enter(self, number: int) -> None:
        """Remove a request that entered."""
        waiting = self.waiting
        displacement = bisect_left(waiting, number)
        del waiting[displacement]
        if displacement:
            self.overtakes += displacement
            if displacement > self.max_displacement:
                self.max_displacement = displacement
        overtaken = self.joined - number - (len(waiting) - displacement)
        if self.dropped:
            overtaken -= len(self.dropped) - bisect_left(self.dropped, number)
        if overtaken > self.max_overtaken:
            self.max_overtaken = overtaken

    def drop(self, number: int) -> None:
        """Remove a request without an entry: it gave up or crashed."""
        del self.waiting[bisect_left(self.waiting, number)]
        insort(self.dropped, number)
        first = self.waiting[0] if self.waiting else self.joined + 1
        del self.dropped[: bisect_left(self.dropped, first)]
