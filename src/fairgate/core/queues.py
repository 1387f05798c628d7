"""Sorted queues of requests. Requests are tuples of integers of equal length.

`bisect` would work too, but it compares tuples as Python objects, which takes three times as long when compiled.
"""

from typing import Any

Asked = tuple[Any, ...]


def is_before(a: Asked, b: Asked) -> bool:
    """a < b."""
    for i in range(len(b)):
        if a[i] is not b[i]:  # timestamps are usually equal and small, and then they are the same object
            one: int = a[i]
            other: int = b[i]
            if one != other:
                return one < other
    return False


def is_same(a: Asked, b: Asked) -> bool:
    """a == b. Either may be empty."""
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
    """The index at which the request is in the queue, or would be inserted.

    Usually that is the end, because later requests have later timestamps; so the end is tried first.
    """
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
    """Insert the request at its place, unless it is already in the queue."""
    at = place_in(queue, asked)
    if at == len(queue) or is_before(asked, queue[at]):
        queue.insert(at, asked)
