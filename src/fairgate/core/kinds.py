"""Kinds of fields: how a value of each declared type is stored in C, written into a key and read back.

These are the types that declarations use (core/declare.py). Usually a plain type is enough: int, bool, str, tuple,
list, set, dict, a message or a record. The annotated types below add what a plain type cannot express.

Conversions are source text, because they become part of generated methods: `kind.key("self.queue")` is the expression
that computes this field's part of a key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from fairgate.core.message import Message
from fairgate.errors import BadDeclaration

T = TypeVar("T")

Id = Annotated[int, "id"]  # a peer's id, or NIL; the checker may rename it
Ids = tuple[Id, ...]
Place = Annotated[int, "place"]  # a place on the circle of keys: 0 to 2^64 - 1
Small = Annotated[int, "small"]  # fits in 32 bits; saves memory where there are very many
Moment = Annotated[int, "moment"]  # a time on the node's clock, or NEVER; the key contains the time left until then
Option = Annotated[T, "option"]  # an option of the gate, set at its creation; not part of the state
Fixed = Annotated[T, "fixed"]  # computed from the setup or other fields; not part of the state
Spread = Annotated[T, "spread"]  # a tuple in a message whose items appear in the key one by one, not nested

ROLES = ("option", "fixed")
SHAPES: dict[type, Any] = {}  # record -> the shape of its key, for those that travel in messages
MARKS = ("id", "place", "small", "moment", "option", "fixed", "spread", "object")  # what an annotation may add
C_INTEGERS = {"object": "object", "place": "unsigned long long", "small": "int"}  # mark -> C type; first match wins


@dataclass(frozen=True)
class Kind:
    """A type with the marks of its annotation. `parts` are the kinds of its items, if it is a container."""

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
        """Is it an id, or a tuple or list that contains only ids?"""
        contains = self.base in (tuple, list) and bool(self.parts)
        return "id" in self.marks or (contains and all(part.is_id for part in self.parts))

    @property
    def is_plain(self) -> bool:
        """Does a key contain the value unconverted?"""
        if self.base is tuple:
            return self.is_flat
        return self.base in (int, bool, str, Any) and "moment" not in self.marks

    @property
    def is_flat(self) -> bool:
        return all(part.is_plain for part in self.parts)

    @property
    def is_timed(self) -> bool:
        """Does it contain moments?"""
        return "moment" in self.marks or hasattr(self.base, "key_at") or any(p.is_timed for p in self.parts)

    @property
    def shape(self) -> Any:
        """The shape to pass to `checked_shape` (core/outside.py)."""
        if self.any_length or self.base in (list, set):
            return [self.parts[0].shape]
        if self.base is tuple and self.parts:
            return tuple(part.shape for part in self.parts)
        if self.base is int:
            return "p" if "place" in self.marks else "i"
        if self.is_record:
            return self.base.shape if hasattr(self.base, "shape") else SHAPES[self.base]
        return {bool: "b", str: "s"}.get(self.base, "k")

    def key(self, value: str, now: str = "self.now") -> str:
        """An expression that converts the value into its part of a key."""
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
            value = f"({value} or ())" if "optional" in self.marks else value
            return f"tuple({value})" if item.is_plain else f"tuple([{item.key('one', now)} for one in {value}])"
        if self.base is tuple:
            return f"({', '.join(part.key(f'{value}[{i}]', now) for i, part in enumerate(self.parts))},)"
        return f"{value}.key_at({now})" if self.is_timed else f"{value}.key()"

    @property
    def is_record(self) -> bool:
        return self.is_declared and not issubclass(self.base, Message)

    def load(self, value: str, now: str = "self.now") -> str:
        """An expression that converts a part of a key back into the value."""
        if "moment" in self.marks:
            return f"moment({value}, {now})"
        if self.base is tuple and self.is_flat:
            nested = any(part.base not in (int, bool, str) for part in self.parts)
            return f"as_tuples({value})" if nested else f"tuple({value})"
        if self.is_plain:
            return value
        if self.base is set:
            return f"set({value})"
        if self.base is dict:
            item = self.parts[1]
            rest = "*one" if item.is_record else "one"
            number = self.parts[0].load("number", now)
            return f"{{{number}: {item.load('one', now)} for number, {rest} in {value}}}"
        if self.base is list or self.any_length:
            item = self.parts[0]
            items = f"[{item.load('one', now)} for one in {value}]"
            if self.base is tuple:
                return f"tuple({items})"
            return f"list({value})" if item.is_plain and item.base is not tuple else items
        if self.base is tuple:
            return f"({', '.join(part.load(f'{value}[{i}]', now) for i, part in enumerate(self.parts))},)"
        if self.is_record:
            return f"{self.base.__name__}.from_key({value}{f', {now}' * self.is_timed})"
        return f"decode_as({self.base.__name__}, {value})"

    def check(self, value: str) -> str:
        """An expression that validates an untrusted value: it raises ValueError unless the value is of this kind."""
        if self.base is int:
            return f"checked_{'place' if 'place' in self.marks else 'int'}({value})"
        if self.base in (bool, str):
            return f"checked_{self.base.__name__}({value})"
        if self.is_record:
            return f"{self.base.__name__}.from_key(checked_shape({value}, {self.shape!r}))"
        if self.is_declared:
            return f"decode_as({self.base.__name__}, {value})"
        return f"checked_shape({value}, {self.shape!r})"


def kind_of(hint: Any) -> Kind:
    """The kind that an annotation describes. Raises BadDeclaration if it describes none that has a type in C."""
    if get_origin(hint) is Annotated:
        inner = kind_of(hint.__origin__)
        if unknown := [mark for mark in hint.__metadata__ if mark not in MARKS]:
            raise BadDeclaration(f"{hint} has the unknown mark {unknown[0]!r}: use {', '.join(MARKS)}")
        return Kind(inner.base, (*inner.marks, *hint.__metadata__), inner.parts, inner.any_length)
    if get_origin(hint) in (Union, UnionType):
        rest = [one for one in get_args(hint) if one is not type(None)]
        inner = kind_of(rest[0]) if len(rest) == 1 else Kind(UnionType)
        if inner.base in (int, bool, float):
            raise BadDeclaration(f"{hint} is not a type of C: a number cannot be None, so use NIL or another number")
        return Kind(inner.base, (*inner.marks, "optional"), inner.parts, inner.any_length)
    base, parts = get_origin(hint), get_args(hint)
    if base is tuple and len(parts) == 2 and parts[1] is ...:
        return Kind(tuple, parts=(kind_of(parts[0]),), any_length=True)
    if base in (tuple, list, set, dict):
        return Kind(base, parts=kinds_of(parts))
    base = base or hint
    if not (isinstance(base, type) or base is Any):  # as NewType, Literal, Final, or a name in quotes
        raise BadDeclaration(f"{hint} is not a class: write the class that its values have")
    return Kind(base)


def kinds_of(hints: Sequence[Any]) -> tuple[Kind, ...]:
    return tuple(kind_of(hint) for hint in hints)
