"""What authors of protocols get wrong, found when a class is declared: one line that names the class and the mistake.

Only classes in plain Python are checked. Those that are compiled were checked when the build imported their sources.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from dis import get_instructions
from inspect import signature
from typing import Any, get_type_hints

from fairgate.core.derive import MISSING, Choices, Field, Handler
from fairgate.core.kinds import Kind, kind_of
from fairgate.core.message import Message
from fairgate.errors import BadDeclaration

TYPES = "int, bool, str, a message, a record, or a tuple, list, set or dict of these"
TYPES_IN_MESSAGES = "int, bool, str, another message, a record, or a tuple of these"
CONTAINERS = (tuple, list, set, dict)
EXAMPLES = {tuple: "tuple[int, ...]", list: "list[int]", set: "set[int]", dict: "dict[int, int]"}


def wrong(cls: type, what: str) -> BadDeclaration:
    return BadDeclaration(f"{cls.__name__}{what}")


def check_tag(tag: object) -> None:
    """Raise BadDeclaration if `@message` has no brackets, and so gets the class in place of the tag."""
    if isinstance(tag, type):
        raise wrong(tag, ' is declared by @message alone: write @message("TAG"), with its name on the wire')


def check_base(cls: type, base: type, kind: str) -> None:
    """Raise BadDeclaration if the class is not what its decorator declares."""
    if not issubclass(cls, base):
        example = f"class {cls.__name__}({'Mutex' if kind == 'node' else base.__name__})"
        raise wrong(cls, f" is declared as a {kind}, but does not extend {base.__name__}: write {example}")


# Fields.


def check_fields(cls: type, fields: list[Field], hints: Mapping[str, Any]) -> None:
    """Raise BadDeclaration if a field has a type that no key can contain, or a default of another type."""
    sent = issubclass(cls, Message)
    for field in fields:
        own = callable(getattr(cls, f"{field.name}_key", None))  # it is written by hand
        if field.is_state and not own:
            check_kind(cls, field.name, field.kind, hints[field.name], sent)
        check_default(cls, field, hints[field.name])


def known_kind(what: str, hint: Any) -> Kind:
    """The kind of what has this type. Raises BadDeclaration if there is none."""
    try:
        return kind_of(hint)
    except BadDeclaration as unknown:
        raise BadDeclaration(f"{what}: {unknown}") from unknown


def check_kind(cls: type, name: str, kind: Kind, hint: Any, sent: bool) -> None:
    bare = kind.base in CONTAINERS and not kind.parts
    if bare and not (kind.base is tuple and hint is not tuple):
        raise wrong(
            cls, f".{name}: {said(hint)} does not say what it contains: write for example {EXAMPLES[kind.base]}"
        )
    known = kind.base in ((int, bool, str, tuple) if sent else (int, bool, str, *CONTAINERS))
    if not (known or kind.is_declared or kind.base is Any):
        use = TYPES_IN_MESSAGES if sent else TYPES
        raise wrong(cls, f".{name} cannot be of type {said(hint)}: use {use}")
    for part in kind.parts:
        check_kind(cls, name, part, hint, sent)


def check_default(cls: type, field: Field, hint: Any) -> None:
    value, base = field.default, field.kind.base
    if value is MISSING or isinstance(value, Choices) or "optional" in field.kind.marks:
        return
    if isinstance(value, list | dict | set) and value:
        raise wrong(cls, f".{field.name}: a default container must be empty: fill it in `initialize`")
    plain = base in (int, bool, str, *CONTAINERS)
    if plain and not isinstance(value, base) and not (field.is_option and value is None):
        raise wrong(cls, f".{field.name} is declared as {said(hint)}, but its default is {value!r}")


def said(hint: Any) -> str:
    """A type as it is written in a source."""
    return hint.__name__ if isinstance(hint, type) and not getattr(hint, "__args__", ()) else str(hint)


# Nodes.


def check_node(cls: type, known: Mapping[type, list[Field]]) -> None:
    """Raise BadDeclaration if the body of a node has a field without a type, or hides one of a base class."""
    fields = {field.name for one in cls.__mro__ for field in known.get(one, ())}
    own = {field.name for field in known[cls]}
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    for name, value in vars(cls).items():
        if name.startswith("__") or name in own:
            continue
        if name in inherited and (callable(value) or name not in fields):
            raise wrong(cls, f".{name} hides a field of a base class: choose another name")
        if not callable(value) and is_assigned(cls, name):
            raise wrong(cls, f".{name} has no type: write {name}: {type(value).__name__} = {value!r}")
    for word in vars(cls).get("shown", "").split():
        name = word.partition("=")[2] or word
        if name not in fields and not hasattr(cls, name):
            raise wrong(cls, f".shown names {name}, which is no field{near(name, fields)}")


def is_assigned(cls: type, name: str) -> bool:
    """Does a method of the class assign to an attribute of this name?"""
    codes = [method.__code__ for method in vars(cls).values() if hasattr(method, "__code__")]
    return any(one.opname == "STORE_ATTR" and one.argval == name for code in codes for one in get_instructions(code))


def near(name: str, names: Any) -> str:
    found = get_close_matches(name, sorted(names), 1)
    return f": did you mean {found[0]}?" if found else ""


# Whole protocols.


def check_protocol(cls: Any, name: str, derived: Mapping[type, set[str]]) -> None:
    """Raise BadDeclaration unless this class is a declared protocol of this name."""
    if not any(base in derived for base in cls.__mro__):
        raise wrong(cls, " is not declared: write @node above its class")
    if not cls.about.name:
        raise wrong(cls, f'.about is missing: write about = About(name="{name}", paper="...", kind="...", cost="...")')
    if cls.about.name != name:
        raise wrong(cls, f" is registered as {name}, but its about has the name {cls.about.name}: use one name")


def check_set(node: Any, fields: list[Field]) -> None:
    """Raise BadDeclaration if a part of the state of a new node has no value."""
    for field in fields:
        if field.is_state and not hasattr(node, field.name):
            raise wrong(type(node), f".{field.name} has no value: give it a default, or set it in `initialize`")


# Handlers.


def handler_hints(method: Callable[..., Any]) -> list[Any]:
    """The types of its parameters, as far as they have any."""
    try:
        hints = get_type_hints(method)
    except NameError as unknown:
        raise BadDeclaration(f"{method.__qualname__}: {unknown}") from unknown
    hints.pop("return", None)
    return list(hints.values())


def check_handler(
    cls: type, name: str, method: Callable[..., Any], hints: list[Any], known: Mapping[type, list[Field]]
) -> bool:
    """Return whether the handler takes the sender. Raise BadDeclaration unless it can be called with a message."""
    takes = hints[-1] if hints else None
    if not (isinstance(takes, type) and issubclass(takes, Message)):
        given = f"{said(takes)} is no message" if hints else "its last parameter has no type"
        advice = f"write {name}(self, m: MESSAGE), or call it by a name that does not begin with on_"
        raise wrong(cls, f".{name} is no handler, because {given}: {advice}")
    if takes is not Message and takes not in known:
        raise wrong(cls, f".{name}: the message {takes.__name__} is not declared: write @message(TAG) above its class")
    count = len(signature(method).parameters) - 1
    if count not in (1, 2):
        raise wrong(cls, f".{name} takes {count} arguments: a handler takes the message, or the sender and the message")
    return count == 2


def unhandled(cls: type, message: type, handlers: list[Handler]) -> str:
    """Why a message found no handler, and what to do."""
    name = f"on{''.join(f'_{c.lower()}' if c.isupper() else c for c in message.__name__)}"
    others = ", ".join(f"{one.name} for {one.message.__name__}" for one in handlers)
    advice = f"add {name}(self, m: {message.__name__})"
    for other, method in vars(cls).items():
        if getattr(method, "__annotations__", {}) and message in handler_hints(method):
            advice = f"did you mean {name} by {other}?"
    return f"{cls.__name__} has no handler for {message.__name__}, only {others}: {advice}"
