"""Random draws built on a stream's uniform numbers, so that both twins of Stream give the same results."""

from collections.abc import Sequence
from math import cos, exp, log, pi, sqrt

from fairgate.sim.stream import Stream


def sample(stream: Stream, population: Sequence[int], count: int) -> list[int]:
    """Draw `count` different members, in random order."""
    size = len(population)
    moved: dict[int, int] = {}  # index -> member that was swapped there, to avoid copying a large population
    drawn: list[int] = []
    for i in range(count):
        j = i + stream.below(size - i)
        drawn.append(moved.get(j, population[j]))
        moved[j] = moved.get(i, population[i])
    return drawn


def lognormal(stream: Stream, mu: float, sigma: float) -> float:
    """Draw from a lognormal distribution, by the Box-Muller transform."""
    radius = sqrt(-2.0 * log(1.0 - stream.unit()))
    return exp(mu + sigma * radius * cos(2.0 * pi * stream.unit()))
