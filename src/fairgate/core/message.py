"""Messages: what nodes say to each other.

A message is a plain, final, immutable class. Its `key()` tuple (tag, fields...) is at once its
equality, its hash, its canonical order, its wire form and its journal form; `decode(key)` makes the
message again. Tags are for ever: a new meaning gets a new tag.
"""

from collections.abc import Callable
from reprlib import repr as shorten
from typing import Any, TypeVar

Key = tuple[Any, ...]
Kind = TypeVar("Kind", bound="Message")


class Message:
    __slots__ = ()
    tag = ""

    def key(self) -> Key:
        """(tag, fields...), nothing but integers, strings, booleans and tuples of those."""
        raise NotImplementedError

    def tokens(self) -> int:
        """How many tokens travel in this message: the invariants count them."""
        return 0

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
MAKERS: dict[type[Message], Callable[..., Message]] = {}  # from fields; not by tag, which mutants share with originals


def register_decoder(kind: type[Message], maker: Callable[..., Message]) -> None:
    """Make a message decodable by this function of its fields. A tag used twice would show only on the wire."""
    if KINDS.setdefault(kind.tag, kind) is not kind:
        raise ValueError(f"message tag {kind.tag!r} of {kind.__name__} is taken")
    MAKERS[kind] = maker


def decode(key: Key) -> Message:
    """The message whose `key()` this is. Raises ValueError for what no message ever said."""
    try:
        return MAKERS[KINDS[key[0]]](*key[1:])
    except (KeyError, IndexError, TypeError, OverflowError, RecursionError) as wrong:
        raise ValueError(f"not a message: {shorten(key)}") from wrong


def decode_as(kind: type[Kind], key: Any) -> Kind:
    """The message whose key this is, which must be of this kind."""
    found = decode(tuple(key))
    if not isinstance(found, kind):
        raise ValueError(f"a {kind.__name__} was expected, not {shorten(key)}")
    return found


def as_tuples(value: Any) -> Any:
    """Lists, as a journal gives them back, made tuples again."""
    return tuple([as_tuples(part) for part in value]) if isinstance(value, list | tuple) else value
