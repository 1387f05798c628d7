"""Kinds of fields: how a value of each declared type is kept in C, written into a key and read back.

The vocabulary of declarations (core/declare.py) starts here. A plain type says most: int, bool, str, tuple, list,
set, dict, a message or a record. The names below say what a type alone cannot.

Conversions are given as text, because they end up in generated methods: `kind.key("self.queue")` is the expression
that stands for this field in a key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from fairgate.core.message import Message

T = TypeVar("T")

Id = Annotated[int, "id"]  # names a peer, or NIL: the checker may rename it
Ids = tuple[Id, ...]
Place = Annotated[int, "place"]  # on the circle of keys: 0 to 2^64 - 1
Small = Annotated[int, "small"]  # fits 32 bits, where there are very many
Moment = Annotated[int, "moment"]  # a time by the node's clock, or NEVER; a key holds the time left until then
Option = Annotated[T, "option"]  # set by whoever makes the gate; not part of the state
Fixed = Annotated[T, "fixed"]  # follows from the rest; not part of the state

ROLES = ("option", "fixed")
C_INTEGERS = {"object": "object", "place": "unsigned long long", "small": "int"}  # by mark, the first that applies


@dataclass(frozen=True)
class Kind:
    """A type with the marks of its annotation; `parts` are the kinds of what it contains."""

    base: Any
    marks: tuple[str, ...] = ()
    parts: tuple["Kind", ...] = ()
    any_length: bool = False  # of a tuple

    @property
    def c(self) -> str:
        """The C type."""
        if self.base is int:
            return next((c for mark, c in C_INTEGERS.items() if mark in self.marks), "long long")
        if self.base in (bool, float):
            return "bint" if self.base is bool else "double"
        if self.base in (str, tuple, list, set, dict) or self.is_declared:
            return str(self.base.__name__)
        return "object"

    @property
    def is_declared(self) -> bool:
        return isinstance(self.base, type) and (issubclass(self.base, Message) or hasattr(self.base, "from_key"))

    @property
    def is_id(self) -> bool:
        """An id, or a tuple or list of nothing but ids."""
        contains = self.base in (tuple, list) and bool(self.parts)
        return "id" in self.marks or (contains and all(part.is_id for part in self.parts))

    @property
    def is_plain(self) -> bool:
        """Does a key contain the value as it is?"""
        return (self.base in (int, bool, str, Any) and "moment" not in self.marks) or (
            self.base is tuple and self.is_flat
        )

    @property
    def is_flat(self) -> bool:
        return all(part.is_plain for part in self.parts)

    @property
    def is_timed(self) -> bool:
        """Does it hold moments?"""
        return "moment" in self.marks or hasattr(self.base, "key_at") or any(p.is_timed for p in self.parts)

    @property
    def shape(self) -> Any:
        """For `shaped` (core/outside.py)."""
        if self.base is tuple and self.parts:
            return [self.parts[0].shape] if self.any_length else tuple(part.shape for part in self.parts)
        if self.base is int:
            return "p" if "place" in self.marks else "i"
        return {bool: "b", str: "s"}.get(self.base, "k")

    def key(self, value: str, now: str = "self.now") -> str:
        """The expression for this value in a key."""
        if "moment" in self.marks:
            return f"left({value}, {now})"
        if self.is_plain:
            return value
        if self.base is set:
            return f"tuple(sorted({value}))"
        if self.base is dict:
            item = self.parts[1]
            each = f"*{item.key('one', now)}" if item.is_record else item.key("one", now)
            return f"tuple([(number, {each}) for number, one in sorted({value}.items())])"
        if self.base is list or self.any_length:
            item = self.parts[0]
            return f"tuple({value})" if item.is_plain else f"tuple([{item.key('one', now)} for one in {value}])"
        if self.base is tuple:
            return f"({', '.join(part.key(f'{value}[{i}]', now) for i, part in enumerate(self.parts))},)"
        return f"{value}.key_at({now})" if self.is_timed else f"{value}.key()"

    @property
    def is_record(self) -> bool:
        return self.is_declared and not issubclass(self.base, Message)

    def load(self, value: str, now: str = "self.now") -> str:
        """The expression for the value that this part of a key stands for."""
        if "moment" in self.marks:
            return f"moment({value}, {now})"
        if self.base is tuple and self.is_flat:
            return (
                f"tuple({value})"
                if all(part.base in (int, bool, str) for part in self.parts)
                else f"as_tuples({value})"
            )
        if self.is_plain:
            return value
        if self.base is set:
            return f"set({value})"
        if self.base is dict:
            item = self.parts[1]
            rest = "*one" if item.is_record else "one"
            return f"{{number: {item.load('one', now)} for number, {rest} in {value}}}"
        if self.base is list or self.any_length:
            item = self.parts[0]
            items = f"[{item.load('one', now)} for one in {value}]"
            if self.base is tuple:
                return f"tuple({items})"
            return f"list({value})" if item.is_plain and item.base is not tuple else items
        if self.base is tuple:
            return f"({', '.join(part.load(f'{value}[{i}]', now) for i, part in enumerate(self.parts))},)"
        if self.is_record:
            return (
                f"{self.base.__name__}.from_key({value}, {now})"
                if self.is_timed
                else f"{self.base.__name__}.from_key({value})"
            )
        return f"decode_as({self.base.__name__}, {value})"

    def check(self, value: str) -> str:
        """The expression for a value that comes from outside: it raises ValueError unless it is of this kind."""
        if self.base is int:
            return f"{'place' if 'place' in self.marks else 'whole'}({value})"
        if self.base in (bool, str):
            return f"{'flag' if self.base is bool else 'text'}({value})"
        if self.is_declared:
            return f"decode_as({self.base.__name__}, {value})"
        return f"shaped({value}, {self.shape!r})"


def kind_of(hint: Any) -> Kind:
    """The kind that an annotation describes."""
    if get_origin(hint) is Annotated:
        inner = kind_of(hint.__origin__)
        return Kind(inner.base, (*inner.marks, *hint.__metadata__), inner.parts, inner.any_length)
    if get_origin(hint) in (Union, UnionType):
        rest = [one for one in get_args(hint) if one is not type(None)]
        return kind_of(rest[0]) if len(rest) == 1 else Kind(Any)
    base, parts = get_origin(hint), get_args(hint)
    if base is tuple and len(parts) == 2 and parts[1] is ...:
        return Kind(tuple, parts=(kind_of(parts[0]),), any_length=True)
    if base in (tuple, list, set, dict):
        return Kind(base, parts=kinds_of(parts))
    return Kind(hint if isinstance(hint, type) else Any)


def kinds_of(hints: Sequence[Any]) -> tuple[Kind, ...]:
    return tuple(kind_of(hint) for hint in hints)
