"""Rows of integers, one for each node or slot.

Compiled modules read them as C arrays. The interpreter gets lists: an array makes a Python number anew at
every access, which takes twice as long.
"""

from array import array

from fairgate.core import message

COMPILED = not message.__file__.endswith(".py")


def numbers(n: int, value: int = 0) -> list[int]:
    if COMPILED:
        return array("q", [value]) * n  # type: ignore[return-value]
    return [value] * n
