"""Latency models: the one-way delay of each message, in ns."""

from array import array

from fairgate.core.ids import NIL
from fairgate.sim.sampling import lognormal
from fairgate.sim.stream import Stream

MS = 1_000_000
WORD = (1 << 64) - 1
GOLDEN, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # the constants of splitmix64


class Latency:
    def __init__(self, fixed: int = NIL, longest: int = NIL) -> None:
        self.fixed = fixed  # the delay of every message if they are equal, else NIL: messages then arrive in order
        self.longest = max(fixed, longest)  # upper bound of all delays

    def delay(self, src: int, dst: int) -> int:
        return self.fixed


class Uniform(Latency):
    """An independent delay for each message, uniform in [low, high]: messages may overtake each other."""

    def __init__(self, low: int, high: int, stream: Stream) -> None:
        Latency.__init__(self, longest=high)
        self.low = low
        self.width = high - low + 1
        self.stream = stream

    def delay(self, src: int, dst: int) -> int:
        return self.low + self.stream.below(self.width)


class Pairs(Latency):
    """A random delay per pair of nodes, uniform in [low, high], which is the same for all messages and both ways.

    It is computed from the pair each time, by a hash (splitmix64), because a table of all pairs would be too large.
    """

    def __init__(self, low: int, high: int, stream: Stream) -> None:
        Latency.__init__(self, longest=high)
        self.low = low
        self.width = high - low + 1
        self.salt = stream.below(1 << 40)

    def delay(self, src: int, dst: int) -> int:
        first, second = (src, dst) if src < dst else (dst, src)
        x = (self.salt * GOLDEN + (first << 32) + second) & WORD
        x = ((x ^ (x >> 30)) * MIX_1) & WORD
        x = ((x ^ (x >> 27)) * MIX_2) & WORD
        x ^= x >> 31
        return self.low + x % self.width


class Matrix(Latency):
    """A measured delay for every ordered pair; node i is row i."""

    def __init__(self, rows: list[list[int]]) -> None:
        Latency.__init__(self, longest=max(map(max, rows)))
        self.n = len(rows)
        self.cells = array("q", [cell for row in rows for cell in row])

    def delay(self, src: int, dst: int) -> int:
        return self.cells[src * self.n + dst]


class WideArea(Latency):
    """A synthetic wide-area network: nodes on a unit square, each with a detour for its access line.

    RTT(i, j) = 2 * (SCALE * distance + detour_i + detour_j), at most 800 ms, at least 2 ms. The detours are lognormal,
    so that a few nodes are far from all others, as in the King measurements. SCALE is set so that the mean RTT of
    random pairs is 182 ms, the mean of King that FK section 4 quotes; the cap is King's maximum.
    """

    SCALE = 109.0  # one-way ms along a side of the square
    DETOUR_MU, DETOUR_SIGMA = 2.24, 1.1  # parameters of the lognormal distribution, in ms
    CAP, FLOOR = 400 * MS, 1 * MS

    def __init__(self, n: int, stream: Stream) -> None:
        Latency.__init__(self, longest=self.CAP)
        self.x = array("d", (stream.unit() for _ in range(n)))
        self.y = array("d", (stream.unit() for _ in range(n)))
        self.detour = array("d", (lognormal(stream, self.DETOUR_MU, self.DETOUR_SIGMA) for _ in range(n)))
        self.scale = self.SCALE * MS
        self.cap = self.CAP
        self.floor = self.FLOOR

    def delay(self, src: int, dst: int) -> int:
        dx = self.x[src] - self.x[dst]
        dy = self.y[src] - self.y[dst]
        ns = int(self.scale * (dx * dx + dy * dy) ** 0.5 + (self.detour[src] + self.detour[dst]) * MS)
        if ns > self.cap:
            return self.cap
        if ns < self.floor:
            return self.floor
        return ns
