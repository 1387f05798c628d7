"""Draws that are made of the uniform numbers of a stream, so that both of its twins give the same."""

from collections.abc import Sequence
from math import cos, exp, log, pi, sqrt

from fairgate.sim.stream import Stream


def sample(stream: Stream, population: Sequence[int], count: int) -> list[int]:
    """So many different members, in random order."""
    size = len(population)
    moved: dict[int, int] = {}  # place -> who is there now: few are drawn of many, who are not all copied for that
    drawn: list[int] = []
    for i in range(count):
        j = i + stream.below(size - i)
        drawn.append(moved.get(j, population[j]))
        moved[j] = moved.get(i, population[i])
    return drawn


def lognormal(stream: Stream, mu: float, sigma: float) -> float:
    """By Box and Muller's transformation."""
    radius = sqrt(-2.0 * log(1.0 - stream.unit()))
    return exp(mu + sigma * radius * cos(2.0 * pi * stream.unit()))
