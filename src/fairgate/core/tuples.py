"""Tuples changed in one place, plain; `tuples.pyx` copies once where this copies twice.

It matters where a tuple is long: the token_locations of a gate with a thousand tokens.
"""

from typing import Any


def replaced(a: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """The tuple a with this value at that place."""
    b = list(a)
    b[at] = value
    return tuple(b)
