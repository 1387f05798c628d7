"""Replacing one item of a tuple. This is the plain version; the compiled one is tuples.pyx.

The compiled version copies the tuple once, or not at all, where this one copies it twice. That matters for long tuples,
such as the token_locations of a gate with a thousand tokens: copying them took a quarter of a run with 100,000 nodes.
It need not copy a tuple that nobody else refers to. A message that brought it would: `taken` removes it from there.
"""

from typing import Any


def replaced(a: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """The tuple a with `value` at index `at`."""
    b = list(a)
    b[at] = value
    return tuple(b)


def taken(message: Any, a: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tuple a, a field of this message. The caller does not read the field again.

    Compiled, the message loses the tuple, if a simulator is delivering the message and will drop it afterwards.
    """
    return a
