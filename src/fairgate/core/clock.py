"""The clock of a node, as its driver sees it: it starts anywhere and runs at its own rate.

Nodes must never compare readings of two clocks. All they may rely on is that any two clocks run at nearly the same
rate: while the slowest advances by t, none advances by more than t * (1 + drift). The simulator, the random walks and
the tests use clocks that make full use of this.
"""

from collections.abc import Callable
from dataclasses import dataclass

MILLION = 1_000_000
FURTHEST = 10**15  # ns: a reading that is far from 0, for clocks in tests


@dataclass(frozen=True)
class Clock:
    offset: int = 0  # ns: its reading at time 0
    ahead: int = 0  # how much faster it runs than true time, in parts per million

    def reading(self, time: int) -> int:
        """What the clock shows at this true time."""
        return self.offset + time * (MILLION + self.ahead) // MILLION

    def time(self, reading: int) -> int:
        """The true time at which the clock shows this reading, rounded up, so that a timer is never early."""
        return -(-(reading - self.offset) * MILLION // (MILLION + self.ahead))


Clocks = dict[int, Clock]  # by node
TRUE = Clock()


def drawn_clock(drift: int, furthest: int, below: Callable[[int], int]) -> Clock:
    """A random clock. The fastest and the slowest one are likely, because they are the hardest on a protocol.

    `drift` is in parts per million; no clock starts later than at `furthest`; `below(n)` draws a number below n.
    """
    ahead = (0, drift, below(drift + 1))[below(3)]
    return Clock(below(furthest + 1), ahead)
