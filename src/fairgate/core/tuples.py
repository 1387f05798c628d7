"""Tuples changed in one place, plain; `tuples.pyx` copies once where this copies twice, or not at all.

It matters where a tuple is long: the token_locations of a gate with a thousand tokens. Copying those was a quarter of
a run with 100,000 nodes.
"""

from typing import Any


def replaced(a: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """The tuple a with this value at that place."""
    b = list(a)
    b[at] = value
    return tuple(b)
