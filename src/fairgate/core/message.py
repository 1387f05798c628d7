"""Messages that nodes send to each other.

A message class is plain, final and immutable. Its `key()` tuple (tag, fields...) determines its
equality, hash and canonical order, and is also its form on the wire and in the journal. `decode(key)`
makes the message again. Tags are never reused: a new meaning gets a new tag.
"""

from collections.abc import Callable
from reprlib import repr as shorten
from typing import Any, TypeVar

from fairgate.core.pool import pool
from fairgate.errors import BadDeclaration

Key = tuple[Any, ...]
Kind = TypeVar("Kind", bound="Message")


class Message:
    __slots__ = ()
    tag = ""

    def key(self) -> Key:
        """(tag, fields...), made only of integers, strings, booleans and tuples of these."""
        raise NotImplementedError

    def tokens(self) -> int:
        """How many tokens travel in this message; the invariants count them."""
        return 0

    def slots(self) -> tuple[int, ...]:
        """The slots of these tokens. If k is always 1, a message that carries the token need not name its slot."""
        return (0,) * self.tokens()

    def coordinators(self) -> int:
        """How many coordinator roles travel in this message."""
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        tag, *fields = self.key()
        return f"{tag}({', '.join(map(str, fields))})"


KINDS: dict[str, type[Message]] = {}
MAKERS: dict[type[Message], Callable[..., Message]] = {}  # decoders; by type, as a mutant's messages reuse the tags


def register_decoder(kind: type[Message], maker: Callable[..., Message]) -> None:
    """Register the function that decodes messages of this kind from their fields.

    Raises BadDeclaration if another class has the same tag: otherwise, this would only show on the wire.
    """
    other = KINDS.setdefault(kind.tag, kind)
    if other is not kind:
        raise BadDeclaration(f"message tag {kind.tag!r} of {kind.__name__} is already in use, by {other.__name__}")
    MAKERS[kind] = maker
    pool(kind)


def decode(key: Key) -> Message:
    """The message with this `key()`. Raises ValueError if the key is not that of a valid message."""
    try:
        return MAKERS[KINDS[key[0]]](*key[1:])
    except (KeyError, IndexError, TypeError, OverflowError, RecursionError) as wrong:
        raise ValueError(f"not a message: {shorten(key)}") from wrong


def decode_as(kind: type[Kind], key: Any) -> Kind:
    """The message with this key. Raises ValueError if it is not valid, or not of this kind."""
    found = decode(tuple(key))
    if not isinstance(found, kind):
        raise ValueError(f"expected a {kind.__name__}, not {shorten(key)}")
    return found


def as_tuples(value: Any) -> Any:
    """The value with all lists replaced by tuples, at any depth: a journal returns tuples as lists."""
    return tuple([as_tuples(part) for part in value]) if isinstance(value, list | tuple) else value
