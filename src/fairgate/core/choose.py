"""Choosers: where the `choose(n)` of an outbox comes from. A node never knows which."""

from collections.abc import Callable, Iterable

Chooser = Callable[[int], int]


def scripted(choices: Iterable[int]) -> Chooser:
    """Gives recorded choices again, as replay does; one too many or out of range is an error."""
    left = iter(choices)

    def choose(n: int) -> int:
        choice = next(left, None)
        if choice is None or not 0 <= choice < n:
            raise ValueError(f"recorded choice {choice} does not answer choose({n})")
        return choice

    return choose


def from_floats(random: Callable[[], float]) -> Chooser:
    """Uniform choices out of a source of floats in [0, 1), such as a seeded `Random().random`."""
    return lambda n: int(random() * n)
