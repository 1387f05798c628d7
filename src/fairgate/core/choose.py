"""Choosers: the functions behind an outbox's `choose(n)`. A node cannot tell which one its driver uses."""

from collections.abc import Callable, Iterable

Chooser = Callable[[int], int]


def scripted(choices: Iterable[int]) -> Chooser:
    """A chooser that repeats recorded choices, for replay.

    It raises ValueError when no recorded choice is left, or when the next one is not in 0..n-1.
    """
    left = iter(choices)

    def choose(n: int) -> int:
        choice = next(left, None)
        if choice is None or not 0 <= choice < n:
            raise ValueError(f"recorded choice {choice} does not fit choose({n})")
        return choice

    return choose


def from_floats(random: Callable[[], float]) -> Chooser:
    """A chooser that draws uniformly, from a source of floats in [0, 1) such as a seeded `Random().random`."""
    return lambda n: int(random() * n)
