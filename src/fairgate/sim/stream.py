"""A seeded stream of random numbers, plain; `stream.pyx` gives the same numbers by the block.

Every part of a run that draws numbers (workload, latency, faults, choices) has a stream of its own.
"""

from math import log
from random import Random


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
        """Of this mean, cut down to a whole number: times are whole."""
        return int(-mean * log(1.0 - self.random()))
