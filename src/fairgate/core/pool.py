"""Pools of memory for messages. This twin does nothing: only compiled classes can have one (pool.pyx)."""

from typing import TypeVar

Made = TypeVar("Made")


def pool(kind: type) -> None:
    """Let freed objects of this class wait to be used again."""


def pooled(kind: type[Made]) -> Made:
    """A new object of this class, whose fields the caller has to set."""
    return kind.__new__(kind)
