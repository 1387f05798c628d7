"""Checks of values that come from outside: the network, a journal, another peer's copy of a node.

Each check returns the value or raises ValueError. Compiled protocols index arrays and store machine words without
looking, so a message is checked once, when it is decoded, and trusted afterwards.

A shape describes nested tuples: "i" is a 64-bit integer, "p" a place on the circle of keys, "b" a boolean, "s" a
string, "k" anything a key may contain; [x] is a tuple of any length whose items are x; (x, y) is a tuple of exactly
these items.
"""

from reprlib import repr as shorten
from typing import Any

DEEPEST = 50  # a key nests by layers, about 10 deep; compiled, recursion without an end would end the process
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
    """A tuple, or the list that a journal or the network makes of one."""
    if type(value) is tuple:
        return value
    if type(value) is list:
        return tuple(value)
    raise ValueError(f"not a tuple: {shorten(value)}")


def checked_shape(value: Any, shape: Any) -> Any:
    """The value, with tuples for lists, if it has this shape."""
    if type(shape) is str:
        return CHECKS[shape](value)
    items = sequence(value)
    if type(shape) is list:
        return tuple([checked_shape(item, shape[0]) for item in items])
    if len(items) != len(shape):
        raise ValueError(f"a tuple of {len(shape)} was expected, not {shorten(value)}")
    return tuple([checked_shape(item, part) for item, part in zip(items, shape, strict=True)])


def part_of_key(value: Any) -> Any:
    """Integers, booleans, strings, and tuples of these."""
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
