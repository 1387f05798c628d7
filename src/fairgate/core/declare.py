"""Declarations: a message, record or node lists its typed fields once, and the rest is derived.

    @message("fk.token", tokens=1)
    class Token(Message):
        slot: int
        fence: int

gets a constructor, `key()`, and a decoder that validates untrusted input. A `@record` is a part of a node's state. It
gets a constructor, `from_key`, and `key()`, or `key_at(now)` if any field is a moment. Subclasses of Record
(core/node.py) also get `clear()`. A `@node` is a protocol, a layer or another Node:

- Its fields are its state, in the order in which they appear in the key. `Option[...]` and `Fixed[...]` fields are not
  part of the state. A default is the initial value. `initialize(setup)` runs last and sets what depends on the setup.
- A method `on_...` whose last parameter is a message handles that message. If it has two parameters, the first is the
  sender's id. The driver's inputs, such as `on_release`, cannot be handlers.
- `shown` lists the fields that `show()` returns for people to read.
- A field x with its own representation in a key has the methods `x_key()` and `load_x(key)`. If `loaded()` exists, it
  runs at the end of `load`.
- A method that the class or a base class defines by hand (`show`, `deliver`, ...) is not derived.

Fields and handlers of base classes come first. core/kinds.py defines the types of fields, core/derive.py the generated
code.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar, dataclass_transform, get_type_hints

from fairgate.core import authors, outside
from fairgate.core.derive import (
    MISSING,
    Choices,
    Field,
    Function,
    Handler,
    c_dispatch,
    checks,
    decoder,
    dispatch,
    key_functions,
    message_functions,
    record_functions,
    set_fields,
    show,
)
from fairgate.core.kinds import SHAPES, Fixed, Id, Ids, Kind, Moment, Option, Place, Small, Spread, kind_of
from fairgate.core.message import Message, as_tuples, decode_as, register_decoder
from fairgate.core.node import Node
from fairgate.core.units import left, moment
from fairgate.errors import BadDeclaration

__all__ = [
    "Fixed", "Id", "Ids", "Moment", "Option", "Place", "Small", "Spread",
    "message", "node", "one_of", "record", "typed",
]  # fmt: skip

Class = TypeVar("Class", bound=type)
Fields = dict[str, Any]  # name -> annotation, or (annotation, default)

FIELDS: dict[type, list[Field]] = {}  # those that a class declares itself, without its bases
HANDLERS: dict[type, list[Handler]] = {}
DERIVED: dict[type, set[str]] = {}  # names of methods that were generated, not written by hand


def one_of(*choices: str) -> Any:
    """Declare an option with these allowed values; the first is the default."""
    return Choices(choices)


def chosen(protocol: str, options: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """The value of the option `name`, the first choice if it is not set. Raises ValueError for any other value."""
    choice: str = options.get(name, choices[0])
    if choice not in choices:
        raise ValueError(f"{protocol}: {name} must be one of {', '.join(choices)}, not {choice!r}")
    return choice


HELPERS = {
    "as_tuples": as_tuples,
    "chosen": chosen,
    "decode_as": decode_as,
    "left": left,
    "moment": moment,
    **{
        name: getattr(outside, name)
        for name in ("checked_bool", "checked_int", "checked_place", "checked_shape", "checked_str")
    },
}


# What a class and its bases declare.


def merged_fields(cls: type) -> list[Field]:
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        found.update({field.name: field for field in FIELDS.get(base, ())})
    return list(found.values())


def merged_handlers(cls: type) -> list[Handler]:
    found: dict[str, Handler] = {}
    for base in reversed(cls.__mro__):
        found.update({handler.name: handler for handler in HANDLERS.get(base, ())})
    for one, other in combinations(found.values(), 2):
        if one.message is other.message:
            raise BadDeclaration(f"{cls.__name__}: {one.name} and {other.name} both handle {one.message.__name__}")
    return list(found.values())


def hand_written(cls: type) -> set[str]:
    """Names of methods that the class or one of its bases defines by hand; the framework's base classes don't count."""
    found: set[str] = set()
    for base in reversed(cls.__mro__):
        if not is_framework(base):
            found |= {name for name, what in vars(base).items() if callable(what)} - DERIVED.get(base, set())
    return found


def is_framework(cls: type) -> bool:
    return cls is object or (cls.__module__.startswith("fairgate.core.") and cls not in DERIVED)


def own_fields(cls: type) -> list[Field]:
    kinds = own_kinds(cls)
    return [Field(name, kinds[name], vars(cls).get(name, MISSING)) for name in cls.__annotations__]


def own_kinds(cls: type) -> dict[str, Kind]:
    """The kind of each field, by name. A field may refer to the class that is being declared."""
    return {name: authors.known_kind(f"{cls.__name__}.{name}", hint) for name, hint in own_hints(cls).items()}


def own_hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)


def own_handlers(cls: type) -> list[Handler]:
    """The handlers that the class defines itself. Raises BadDeclaration if one cannot be called."""
    found = []
    for name, method in vars(cls).items():
        if not name.startswith("on_") or not callable(method) or name == "on_message":
            continue
        hints = authors.handler_hints(method)
        takes: Any = hints[-1] if hints else None
        if not is_input(cls, name):
            takes_source = authors.check_handler(cls, name, method, hints, FIELDS)
            found.append(Handler(name, takes, takes_source))
        elif isinstance(takes, type) and issubclass(takes, Message):
            raise BadDeclaration(
                f"{cls.__name__}.{name} handles {takes.__name__}, but a driver calls {name} for another"
                f" purpose: rename the handler, for example to {name}_message"
            )
    return found


def check_complete(node: Any) -> None:
    """Raise BadDeclaration if a part of the state of a new node has no value."""
    authors.check_set(node, merged_fields(type(node)))


def no_handler(cls: type, message: type[Message]) -> str:
    """Why no handler of this protocol takes the message, and what to do; one line."""
    return authors.unhandled(cls, message, merged_handlers(cls))


def is_input(cls: type, name: str) -> bool:
    """Does a base class of the framework define this method? `on_message` may be written by hand."""
    return name != "on_message" and any(is_framework(base) and name in vars(base) for base in cls.__mro__[1:])


# What is derived for a class.


def message_parts(cls: type, tag: str, tokens: int, coordinators: int) -> list[Function]:
    return message_functions(tag, merged_fields(cls), tokens, coordinators, hasattr(cls, "complete"))


def record_parts(cls: type) -> list[Function]:
    clears = hasattr(cls, "clear") and "clear" not in hand_written(cls)
    return record_functions(cls.__name__, merged_fields(cls), hasattr(cls, "complete"), clears)


def node_parts(cls: type, owners: dict[str, str] | None = None) -> list[Function]:
    """The methods to derive, without those that a base class already has in the same form.

    For `owners`, see `c_dispatch`.
    """
    fields, written = merged_fields(cls), hand_written(cls)
    layer = hasattr(cls, "layer_key")
    found: list[Function] = []
    if FIELDS[cls]:
        found.append(set_fields(fields))
    if FIELDS[cls] or "timed" in vars(cls):
        found += key_functions(fields, written, layer, bool(cls.timed) and not layer)  # type: ignore[attr-defined]
    if HANDLERS[cls]:
        routed = [handler for handler in merged_handlers(cls) if hasattr(handler.message, "target")]
        direct = [handler for handler in merged_handlers(cls) if handler not in routed]
        for name, handlers in (("on_message", direct), ("deliver", routed)):
            if handlers and owners is not None:
                found.append(c_dispatch(name, handlers, cls.__name__, owners))
            elif handlers:
                found.append(dispatch(name, handlers, hasattr(cls, "about")))
    if "shown" in vars(cls):
        found.append(show(vars(cls)["shown"], fields))
    return [function for function in found if function.name not in written]


# The decorators, for classes that are not compiled.


def remade(cls: type, functions: list[Function]) -> Any:
    """A new class with the derived methods, and `__slots__` for the fields."""
    fields = {field.name for field in FIELDS[cls]}
    inherited = {field.name for base in cls.__mro__[1:] for field in FIELDS.get(base, ())}
    scope = {**HELPERS, **named_classes(cls)}
    for function in functions:
        exec(compile(function.text, f"<derived for {cls.__qualname__}>", "exec"), scope)
    namespace = {name: what for name, what in vars(cls).items() if name not in fields | {"__dict__", "__weakref__"}}
    for function in functions:
        scope[function.name].__qualname__ = f"{cls.__qualname__}.{function.name}"  # for tracebacks and errors
    namespace |= {function.name: scope[function.name] for function in functions}
    namespace["__slots__"] = tuple(sorted(fields - inherited))
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    scope[cls.__name__] = made
    FIELDS[made], HANDLERS[made] = FIELDS.pop(cls), HANDLERS.pop(cls)
    DERIVED[made] = {function.name for function in functions}
    return made


def checking(part: Function, cls: type) -> Function:
    """A message's constructor also refuses what a compiled one could not store."""
    if part.name != "__init__":
        return part
    return replace(part, body=(*checks(cls.__name__, merged_fields(cls)), *part.body))


def named_classes(cls: type) -> dict[str, type]:
    """The classes that generated code may refer to, by name."""
    found: dict[str, type] = {handler.message.__name__: handler.message for handler in merged_handlers(cls)}
    todo = [field.kind for field in merged_fields(cls)]
    while todo:
        kind = todo.pop()
        todo += kind.parts
        if kind.is_declared:
            found[kind.base.__name__] = kind.base
    return found


def note(cls: type, own: list[Field], handlers: list[Handler]) -> None:
    FIELDS[cls] = own
    HANDLERS[cls] = handlers


@dataclass_transform()
def message(tag: str = "", *, tokens: int = 0, coordinators: int = 0) -> Callable[[Class], Class]:
    """Declare a message class with this tag. Without a tag, it is a base class of several messages.

    `tokens` and `coordinators` say how many tokens and coordinator roles travel in each message.
    """
    authors.check_tag(tag)

    def decorated(cls: Class) -> Class:
        authors.check_base(cls, Message, "message")
        note(cls, own_fields(cls), [])
        authors.check_fields(cls, FIELDS[cls], own_hints(cls))
        made = remade(cls, [checking(part, cls) for part in message_parts(cls, tag, tokens, coordinators)])
        made.tag = tag
        if tag:
            scope: dict[str, Any] = {**HELPERS, **named_classes(made), made.__name__: made}
            function = decoder(made.__name__, merged_fields(made))
            exec(function.text, scope)
            register_decoder(made, scope[function.name])
        return made  # type: ignore[no-any-return]

    return decorated


@dataclass_transform()
def record(cls: Class) -> Class:
    """Declare a record, a part of a node's state."""
    note(cls, own_fields(cls), [])
    authors.check_fields(cls, FIELDS[cls], own_hints(cls))
    made = remade(cls, record_parts(cls))
    kinds = own_kinds(made)
    FIELDS[made] = [replace(field, kind=kinds[field.name]) for field in FIELDS[made]]
    SHAPES[made] = tuple(field.kind.shape for field in FIELDS[made] if field.is_state)
    return made  # type: ignore[no-any-return]


def node(cls: Class) -> Class:
    """Declare a node: a protocol, a layer, or a base class of several of them."""
    authors.check_base(cls, Node, "node")
    note(cls, own_fields(cls), own_handlers(cls))
    authors.check_fields(cls, FIELDS[cls], own_hints(cls))
    authors.check_node(cls, FIELDS)
    made = remade(cls, node_parts(cls))
    describe(made)
    return made  # type: ignore[no-any-return]


def typed(cls: Class) -> Class:
    """Declare the types of the fields for the compiler. No method is derived."""
    note(cls, own_fields(cls), [])
    return remade(cls, [])  # type: ignore[no-any-return]


def describe(cls: Any) -> None:
    """Complete a protocol's `about`: its options, and the positions of ids in keys and messages."""
    about = vars(cls).get("about")
    if about is None:
        return
    fields = merged_fields(cls)
    for field in fields:
        if field.is_option and not about.literal:
            about.options[field.name] = tuple(field.default) if isinstance(field.default, Choices) else field.default
    if about.symmetric:
        named = [field for field in fields if field.is_state]
        about.ids["key"] = tuple(1 + i for i, field in enumerate(named) if field.kind.is_id)
        for handler in merged_handlers(cls):
            parts = [part for field in merged_fields(handler.message) if field.is_state for part in field.in_key("")]
            where = tuple(1 + i for i, (_, kind) in enumerate(parts) if kind.is_id)
            if where:
                about.ids[handler.message.tag] = where


# Compiled classes already contain their derived methods. Their modules call this on import to register the rest.


def declared(
    cls: Any, fields: Fields, handlers: Sequence[tuple[str, Any, bool]] = (), derived: Sequence[str] = ()
) -> None:
    """Register the fields and handlers of a class that was made without a decorator."""
    own = [
        Field(name, kind_of(what[0]), what[1]) if isinstance(what, tuple) else Field(name, kind_of(what))
        for name, what in fields.items()
    ]
    note(cls, own, [Handler(*handler) for handler in handlers])
    if derived:
        DERIVED[cls] = set(derived)
    describe(cls)
