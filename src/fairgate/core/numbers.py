"""Arrays of integers, with one entry per node or slot.

Compiled modules access them as C arrays. Interpreted code gets lists, because an array creates a new Python integer at
every access, which takes twice as long.
"""

from array import array

from fairgate.core import message

COMPILED = not message.__file__.endswith(".py")


def numbers(n: int, value: int = 0) -> list[int]:
    """An array of n entries, or a list if fairgate is not compiled, each with this value."""
    if COMPILED:
        return array("q", [value]) * n  # type: ignore[return-value]
    return [value] * n
