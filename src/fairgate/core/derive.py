"""The code generator for declarations: constructors, keys, loaders, decoders and dispatch, as source text.

core/declare.py executes this text when it makes a plain Python class. The build inserts the same text into the sources
that Cython compiles (tools/expand.py). So both builds share one definition of, say, what a key contains.
"""

from dataclasses import dataclass
from typing import Any

from fairgate.core.kinds import ROLES, Kind
from fairgate.core.message import Message

MISSING: Any = object()  # a field without a default


class Choices(tuple[str, ...]):
    """The values an option may have, the default first."""


@dataclass(frozen=True)
class Field:
    name: str
    kind: Kind
    default: Any = MISSING

    @property
    def is_option(self) -> bool:
        return "option" in self.kind.marks

    @property
    def is_state(self) -> bool:
        return not any(role in self.kind.marks for role in ROLES)

    def in_key(self, item: str) -> list[tuple[str, Kind]]:
        """The parts of a message's key for this field, each with its kind.

        That is the field itself, or the items of a `Spread` tuple, which are named by the pattern `item`.
        """
        if "spread" not in self.kind.marks:
            return [(self.name, self.kind)]
        return [(item.format(self.name, i), kind) for i, kind in enumerate(self.kind.parts)]

    @property
    def local(self) -> str:
        """The name of a local variable for its part of a key. The field's own name might hide a function."""
        return f"{self.name}_part"

    @property
    def first_value(self) -> str:
        """The expression for the default. An empty container or record is created anew for every object."""
        if isinstance(self.default, list | dict | set) and self.default:
            raise TypeError(f"{self.name}: a default container must be empty, fill it in `initialize`")
        return repr(self.default)


@dataclass(frozen=True)
class Handler:
    name: str
    message: type[Message]
    takes_source: bool


@dataclass(frozen=True)
class Function:
    """A generated method, or a generated function at module level."""

    name: str
    parameters: str
    body: tuple[str, ...]
    is_classmethod: bool = False

    @property
    def text(self) -> str:
        lines = ["@classmethod"] if self.is_classmethod else []
        return "\n".join([*lines, f"def {self.name}({self.parameters}):", *[f"    {line}" for line in self.body], ""])


def state(fields: list[Field]) -> list[Field]:
    return [field for field in fields if field.is_state]


def tuple_of(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


# Messages and records.


def message_functions(tag: str, fields: list[Field], tokens: int, coordinators: int, completes: bool) -> list[Function]:
    named = state(fields)
    made = [constructor(fields, completes)] if fields else []
    if tag:
        parts = [kind.key(f"self.{name}") for field in named for name, kind in field.in_key("{}[{}]")]
        made.append(Function("key", "self", (f"return {tuple_of([repr(tag), *parts])}",)))
    for name, count in (("tokens", tokens), ("coordinators", coordinators)):
        if count:
            made.append(Function(name, "self", (f"return {count}",)))
    if tokens and any(field.name == "slot" for field in named):
        made.append(Function("slots", "self", ("return (self.slot,)",)))
    return made


def decoder(cls: str, fields: list[Field], make: str = "") -> Function:
    """A function that validates the fields of an untrusted key and makes the message.

    `make` names the constructor to call if it is not the class itself.
    """
    named = state(fields)
    names = [[name for name, _ in field.in_key("{}_{}")] for field in named]
    values = [each[0] if each == [field.name] else tuple_of(each) for field, each in zip(named, names, strict=True)]
    checked = ", ".join(field.kind.check(value) for field, value in zip(named, values, strict=True))
    parameters = ", ".join([name for each in names for name in each])
    return Function(f"decode_{cls}", parameters, (f"return {make or cls}({checked})",))


def constructor(fields: list[Field], completes: bool) -> Function:
    parameters = ", ".join(["self", *[field.name for field in required(fields)]])
    return Function("__init__", parameters, (*assignments("self", fields), *["self.complete()"] * completes))


def checks(cls: str, fields: list[Field]) -> tuple[str, ...]:
    """Statements that refuse a float, say, for an integer. Compiled constructors have C types instead."""
    return tuple(
        f"if not isinstance({field.name}, int): raise TypeError("
        f"f'{cls}.{field.name} must be an int, not {{{field.name}!r:.60}}')"
        for field in required(fields)
        if field.kind.base is int
    )


def required(fields: list[Field]) -> list[Field]:
    return [field for field in fields if field.default is MISSING and field.is_state]


def assignments(target: str, fields: list[Field]) -> tuple[str, ...]:
    """Statements that set the fields of a new object, from arguments or defaults.

    A `Fixed` field without a default is left to the class's `complete()`.
    """
    given = {field.name for field in required(fields)}
    return tuple(
        f"{target}.{field.name} = {field.name if field.name in given else field.first_value}"
        for field in fields
        if field.name in given or field.default is not MISSING
    )


def record_functions(cls: str, fields: list[Field], completes: bool, clears: bool) -> list[Function]:
    timed = any(field.kind.is_timed for field in fields)
    now = ", now" * timed
    parts = tuple_of([field.kind.key(f"self.{field.name}", "now") for field in state(fields)])
    loaded = [f"made = {cls}.__new__({cls})"]  # not `one`: the generated comprehensions use that name
    loaded += assignments("made", [field for field in fields if not field.is_state])
    loaded += unpacked("made", state(fields), "key", "now") + ["made.complete()"] * completes + ["return made"]
    return [
        constructor(fields, completes),
        Function("key_at" if timed else "key", f"self{now}", (f"return {parts}",)),
        Function("from_key", f"cls, key{now}", tuple(loaded), is_classmethod=True),
        *[clear(fields)] * clears,
    ]


def clear(fields: list[Field]) -> Function:
    defaults = [field for field in state(fields) if field.default is not MISSING]
    return Function("clear", "self", assignments("self", defaults) or ("pass",))


def unpacked(target: str, fields: list[Field], key: str, now: str, before: str = "") -> list[str]:
    """Statements that set these fields from a key. `before` has the targets for the parts in front of them."""
    names = {field.name: field.local if converted(field, target) else f"{target}.{field.name}" for field in fields}
    targets = before + ", ".join(names.values())
    lines = [f"{targets},  = {key}"] if targets else []
    return lines + [
        f"{target}.{field.name} = {field.kind.load(field.local, now)}" for field in fields if converted(field, target)
    ]


def converted(field: Field, target: str) -> bool:
    return field.kind.load(target) != target


# Nodes.


def set_fields(fields: list[Field]) -> Function:
    lines = []
    for field in fields:
        if isinstance(field.default, Choices):
            choices = tuple(field.default)
            lines.append(f"self.{field.name} = chosen(self.about.name, setup.options, {field.name!r}, {choices!r})")
        elif field.is_option:
            lines.append(f"self.{field.name} = setup.options.get({field.name!r}, {field.first_value})")
        elif field.default is not MISSING:
            lines.append(f"self.{field.name} = {field.first_value}")
    return Function("set_fields", "self, setup", tuple(lines) or ("pass",))


def key_functions(fields: list[Field], hand_written: set[str], layer: bool, timed: bool) -> list[Function]:
    """`key` and `load` of a node, or `layer_key` and `load_layer` of a layer.

    A field x with a hand-written `x_key` is written by that method and read by `load_x`.
    """
    named = state(fields)
    own = {field.name for field in named if f"{field.name}_key" in hand_written}
    parts = [
        f"self.{field.name}_key()" if field.name in own else field.kind.key(f"self.{field.name}") for field in named
    ]
    targets = [f.local if f.name in own or converted(f, "self") else f"self.{f.name}" for f in named]
    if not layer:
        parts = ["self.version", *parts, *["self.timers_key()"] * timed]
        targets = ["_", *targets, *["timers"] * timed]
    lines = [] if layer else ["self.check_version(key)"]
    lines += [f"{tuple_of(targets)} = key"] if targets else []
    for field in named:
        if field.name in own:
            lines.append(f"self.load_{field.name}(as_tuples({field.local}))")
        elif converted(field, "self"):
            lines.append(f"self.{field.name} = {field.kind.load(field.local)}")
    lines += ["self.load_timers(tuple(timers))"] * (timed and not layer)
    lines += ["self.loaded()"] * ("loaded" in hand_written)
    prefix = ("layer_key", "load_layer") if layer else ("key", "load")
    return [
        Function(prefix[0], "self", (f"return {tuple_of(parts)}",)),
        Function(prefix[1], "self, key", tuple(lines) or ("pass",)),
    ]


def dispatch(name: str, handlers: list[Handler], refuses: bool) -> Function:
    """`on_message` or `deliver`, which calls the handler for the type of the message.

    A protocol refuses other messages. A layer ignores them, since it gets what other hosts send.
    """
    chosen = branches(handlers, "kind", "self.{}(", "msg")
    refuse = ("else:", "    self.unhandled(msg)") if refuses else ()
    return Function(name, "self, src, msg", ("kind = type(msg)", *chosen, *refuse))


def c_dispatch(name: str, handlers: list[Handler], cls: str, owners: dict[str, str]) -> Function:
    """`dispatch` for Cython, with casts that tell the compiler each message's class.

    `owners` maps each handler to the class that defines it. If the node is of exactly this class, the calls are direct;
    a subclass written in Python may override any handler. `type(msg)` is repeated because a variable for it would cost
    reference counting. Other messages are ignored: to refuse them as `dispatch` does would cost instructions for every
    message, and authors run plain Python.
    """
    direct = {handler.name: f"{owners[handler.name]}.{{}}(self, " for handler in handlers}
    exact = branches(handlers, "type(msg)", direct, "cython.cast({}, msg)")
    other = branches(handlers, "type(msg)", "self.{}(", "cython.cast({}, msg)")
    choice = [f"if type(self) is {cls}:", *indented(exact), "else:", *indented(other)]
    return Function(name, "self, src, msg", tuple(choice))


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def branches(handlers: list[Handler], kind: str, call: str | dict[str, str], cast: str) -> list[str]:
    lines = []
    for handler in handlers:
        cls = handler.message.__name__
        test = f"{kind} is {cls}" if handler.message.tag else f"isinstance(msg, {cls})"
        begin = (call if isinstance(call, str) else call[handler.name]).format(handler.name)
        arguments = "src, " * handler.takes_source + cast.format(cls)
        lines += [f"{'if' if handler is handlers[0] else 'elif'} {test}:", f"    {begin}{arguments})"]
    return lines


def show(shown: str, fields: list[Field]) -> Function:
    """`show`, from a string such as "parent token=slot": the displayed name, and after "=" the field if it differs."""
    kinds = {field.name: field.kind.base for field in fields}
    forms: dict[Any, str] = {list: "tuple({})", set: "sorted({})", dict: "dict({})"}  # copies, not the node's own
    parts = []
    for word in shown.split():
        name, _, attribute = word.partition("=")
        value = forms.get(kinds.get(attribute or name), "{}").format(f"self.{attribute or name}")
        parts.append(f"{name!r}: {value}")
    return Function("show", "self", (f"return {{{', '.join(parts)}}}",))
