"""Sorted queues of requests, each a tuple of whole numbers, all as long.

`bisect` would do; but it compares tuples as Python objects, and compiled that is three times the work.
"""

from typing import Any

Asked = tuple[Any, ...]


def is_before(a: Asked, b: Asked) -> bool:
    """a < b."""
    for i in range(len(b)):
        if a[i] is not b[i]:  # mostly the same small timestamp, and then the same object
            one: int = a[i]
            other: int = b[i]
            if one != other:
                return one < other
    return False


def is_same(a: Asked, b: Asked) -> bool:
    """a == b; one may be empty."""
    if len(a) != len(b):
        return False
    for i in range(len(b)):
        if a[i] is not b[i]:
            one: int = a[i]
            other: int = b[i]
            if one != other:
                return False
    return True


def place_in(queue: list[Any], asked: Asked) -> int:
    """Where it stands, or would: mostly at the end, since who asks later has a later timestamp."""
    low, high = 0, len(queue)
    if high and is_before(queue[high - 1], asked):
        return high
    while low < high:
        middle = (low + high) // 2
        if is_before(queue[middle], asked):
            low = middle + 1
        else:
            high = middle
    return low


def put(queue: list[Any], asked: Asked) -> None:
    """Into its place; once."""
    at = place_in(queue, asked)
    if at == len(queue) or is_before(asked, queue[at]):
        queue.insert(at, asked)
