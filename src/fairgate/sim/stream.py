"""A seeded stream of random numbers, in pure Python; the twin stream.pyx draws the same numbers in blocks.

Every part of a run that draws numbers (workload, latency, faults, choices) has its own stream.
"""

from math import log
from random import Random

from fairgate.core.units import NEVER


class Stream:
    def __init__(self, seed: str) -> None:
        self.random = Random(seed).random

    def unit(self) -> float:
        """Uniform in [0, 1)."""
        return self.random()

    def below(self, n: int) -> int:
        """Uniform in 0..n-1."""
        return int(self.random() * n)

    def exponential(self, mean: float) -> int:
        """Exponentially distributed with this mean, rounded down, since times are integers; at most NEVER."""
        return min(int(-mean * log(1.0 - self.random())), NEVER)
