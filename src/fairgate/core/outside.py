"""Validation of untrusted values: from the network, a journal, or another peer's copy of a node.

Each check returns the value or raises ValueError. Compiled protocols index arrays and store machine words without
further checks, so a message is checked once, when it is decoded, and trusted afterwards.

A shape describes nested tuples. "i" is a 64-bit integer, "p" a place on the circle of keys, "b" a boolean, "s" a
string, and "k" anything that a key may contain. [x] is a tuple of any length whose items have shape x. (x, y) is a
tuple of exactly two items, of shapes x and y.
"""

from reprlib import repr as shorten
from typing import Any

DEEPEST = 50  # keys nest about 10 deep, by layers; in compiled code, unbounded recursion would crash the process
WORD = 1 << 63
CIRCLE = 1 << 64


def checked_int(value: Any) -> int:
    if type(value) is not int or not -WORD <= value < WORD:
        raise ValueError(f"not a 64-bit integer: {shorten(value)}")
    return value


def checked_place(value: Any) -> int:
    if type(value) is not int or not 0 <= value < CIRCLE:
        raise ValueError(f"not a place on the circle of keys: {shorten(value)}")
    return value


def checked_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"not a boolean: {shorten(value)}")
    return value


def checked_str(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"not a string: {shorten(value)}")
    return value


def sequence(value: Any) -> tuple[Any, ...]:
    """The value as a tuple. Lists are accepted, because a journal and the network turn tuples into lists."""
    if type(value) is tuple:
        return value
    if type(value) is list:
        return tuple(value)
    raise ValueError(f"not a tuple: {shorten(value)}")


def checked_shape(value: Any, shape: Any) -> Any:
    """The value with lists replaced by tuples. Raises ValueError unless it has this shape."""
    if type(shape) is str:
        return CHECKS[shape](value)
    items = sequence(value)
    if type(shape) is list:
        return tuple([checked_shape(item, shape[0]) for item in items])
    if len(items) != len(shape):
        raise ValueError(f"expected a tuple of {len(shape)}, not {shorten(value)}")
    return tuple([checked_shape(item, part) for item, part in zip(items, shape, strict=True)])


def part_of_key(value: Any) -> Any:
    """The value, if it consists only of integers, booleans, strings and tuples. Otherwise raises ValueError."""
    return nested(value, DEEPEST)


def nested(value: Any, depth: int) -> Any:
    if type(value) is tuple or type(value) is list:
        if depth == 0:
            raise ValueError(f"not part of a key: tuples nest more than {DEEPEST} deep")
        return tuple([nested(item, depth - 1) for item in value])
    if type(value) not in (int, bool, str):
        raise ValueError(f"not part of a key: {shorten(value)}")
    return value


CHECKS = {"i": checked_int, "p": checked_place, "b": checked_bool, "s": checked_str, "k": part_of_key}
