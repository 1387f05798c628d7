"""The journal: a file of the steps that nodes took. Every driver writes it; replay and the picture read it.

The format is NDJSON. The first line is the header. Every other line is one atomic step of one node: the time, the node,
the event, the choices it was given, its effects, and its state key afterwards. The same run always gives the same
bytes: fields have a fixed order, defaults are left out, and there are no floats.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec

from fairgate import __version__
from fairgate.core.closing import Closing
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

SCHEMA = "fairgate-journal"
VERSION = 2  # 1: a step "view" did not name ghosts
DRIVERS = ("sim", "hand", "net", "check")

# event -> number of arguments. `crash`, `reset` and `load` are done to a node by its driver; the others are its inputs.
ARGUMENTS = {
    "start": 0,
    "acquire": 1,
    "release": 1,
    "again": 2,  # the request that ends, and the one that begins
    "cancel": 1,
    "message": 0,  # source and message are separate fields of a step
    "timer": 1,
    "suspect": 2,
    "trust": 2,
    "dead": 1,
    "join": 1,
    "leave": 0,
    "view": 3,
    "crash": 0,
    "reset": 0,
    "load": 2,  # members and key: the node is made again, for a gate with these members, in this state
}

Effect = tuple[Any, ...]
LEAVES = frozenset([int, str, bool, type(None)])  # the scalars in keys, effects and arguments; all else is tuples


class JournalError(Exception):
    """A file is not a valid journal: `line` is the first line that cannot be read, `why` the reason."""

    def __init__(self, path: str | os.PathLike[str], line: int, why: str) -> None:
        super().__init__(f"{os.fspath(path)}:{line}: {why}")
        self.path = path
        self.line = line
        self.why = why


class Opening(msgspec.Struct):
    """The part of the header that is checked first: it tells whether this version can read the rest."""

    schema: str
    version: int


class Header(msgspec.Struct, frozen=True):
    schema: str
    version: int
    protocol: str
    stack: tuple[str, ...]  # the layers below the protocol
    setup: dict[str, Any]  # Setup.describe()
    seed: int | None
    fairgate: str
    driver: str


class Step(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    rename={
        "now": "t",
        "node": "n",
        "event": "e",
        "source": "f",
        "message": "m",
        "arguments": "a",
        "choices": "c",
        "effects": "o",
        "key": "k",
    },
):
    now: int  # ns
    node: int
    event: str
    source: int = NIL
    message: Key = ()
    arguments: tuple[Any, ...] = ()
    choices: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()
    key: Key = ()  # after the step


class JournalWriter(Closing):
    """Writes to a path, or to an open binary file, which the caller must close."""

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self.owned = isinstance(target, str | os.PathLike)
        self.file = create(target) if isinstance(target, str | os.PathLike) else target
        self.encode = msgspec.json.Encoder(order="deterministic").encode

    def header(
        self, protocol: str, setup: Setup, driver: str, seed: int | None = None, stack: Sequence[str] = ()
    ) -> None:
        if driver not in DRIVERS:
            raise ValueError(f"driver must be one of {', '.join(DRIVERS)}, not {driver!r}")
        self.line(Header(SCHEMA, VERSION, protocol, tuple(stack), setup.describe(), seed, __version__, driver))

    def step(self, step: Step) -> None:
        self.line(step)

    def line(self, record: Header | Step) -> None:
        self.file.write(self.encode(record) + b"\n")

    def close(self) -> None:
        if self.owned:
            self.file.close()
        else:
            self.file.flush()


def create(path: str | os.PathLike[str]) -> BinaryIO:
    return Path(path).open("wb")


class RecordingOutbox(Outbox):
    """Passes every effect on to an inner outbox, and records it in the journal's form until the next `begin()`."""

    def __init__(self, inner: Outbox) -> None:
        self.inner = inner
        self.begin()

    def begin(self) -> None:
        self.effects: list[Effect] = []
        self.choices: list[int] = []

    def taken(self, now: int, node: Node, event: str, *arguments: Any) -> Step:
        """The step that `node` took since `begin()`. Arguments are those of the call: (source, msg) for a message."""
        source, message = NIL, ()
        if event == "message":
            source, sent = arguments
            message, arguments = sent.key(), ()
        return Step(
            now, node.me, event, source, message, arguments, tuple(self.choices), tuple(self.effects), node.key()
        )

    def send(self, dst: int, msg: Message) -> None:
        self.effects.append(("send", dst, msg.key()))
        self.inner.send(dst, msg)

    def pass_on(self, dst: int, msg: Message) -> None:
        self.effects.append(("send", dst, msg.key()))
        self.inner.pass_on(dst, msg)

    def set_timer(self, name: str, delay: int) -> None:
        self.effects.append(("timer", name, delay))
        self.inner.set_timer(name, delay)

    def cancel_timer(self, name: str) -> None:
        self.effects.append(("untimer", name))
        self.inner.cancel_timer(name)

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.effects.append(("granted", request, slot, fence))
        self.inner.granted(request, slot, fence)

    def lost(self, request: int, why: str) -> None:
        self.effects.append(("lost", request, why))
        self.inner.lost(request, why)

    def note(self, mark: str) -> None:
        self.effects.append(("note", mark))
        self.inner.note(mark)

    def choose(self, n: int) -> int:
        choice = self.inner.choose(n)
        self.choices.append(choice)
        return choice


def read(path: str | os.PathLike[str]) -> tuple[Header, Iterator[Step]]:
    """The header, and an iterator that reads the steps one by one. The n-th step is in line n + 1.

    The call and the iterator raise JournalError where the file is not valid. Steps read before that are valid.
    """
    lines = whole_lines(path)
    return read_header(path, next(lines, b"")), read_steps(path, lines)


def whole_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                raise JournalError(path, number, "the line is cut off: the writer was stopped before it finished")
            yield line


def read_header(path: str | os.PathLike[str], line: bytes) -> Header:
    try:
        opening = msgspec.json.decode(line, type=Opening)
    except msgspec.DecodeError as wrong:
        raise JournalError(path, 1, f"not a fairgate journal: the header is missing ({wrong})") from wrong
    if opening.schema != SCHEMA:
        raise JournalError(path, 1, f"schema {opening.schema!r} is not supported, only {SCHEMA!r}")
    if opening.version != VERSION:
        said = f"journal version {opening.version} is not supported, only {VERSION}"
        raise JournalError(path, 1, f"{said}: replay it with the version of fairgate that wrote it")
    try:
        return msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as wrong:
        raise JournalError(path, 1, f"broken header: {wrong}") from wrong


def read_steps(path: str | os.PathLike[str], lines: Iterator[bytes]) -> Iterator[Step]:
    decode = msgspec.json.Decoder(Step, float_hook=refuse_float).decode
    for number, line in enumerate(lines, 2):
        try:
            yield frozen(decode(line))
        except msgspec.ValidationError as wrong:
            raise JournalError(path, number, f"not a step: {wrong}") from wrong
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise JournalError(path, number, f"broken JSON: {wrong}") from wrong
        except ValueError as wrong:
            raise JournalError(path, number, str(wrong)) from wrong


def frozen(step: Step) -> Step:
    """The step with its lists turned back into tuples; ValueError if the step is not valid."""
    if step.event not in ARGUMENTS:
        raise ValueError(f"unknown event {step.event!r}")
    if len(step.arguments) != ARGUMENTS[step.event]:
        raise ValueError(f"{step.event} needs {ARGUMENTS[step.event]} arguments, not {len(step.arguments)}")
    if (step.event == "message") != bool(step.message):
        raise ValueError(f"{step.event} with{'' if step.message else 'out'} a message")
    return Step(
        step.now,
        step.node,
        step.event,
        step.source,
        tuples(step.message),
        tuples(step.arguments),
        step.choices,
        tuples(step.effects),
        tuples(step.key),
    )


def tuples(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple([value if type(value) in LEAVES else branch(value) for value in values])


def branch(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"an object is not allowed here, only numbers, strings and lists: {value}")
    return tuples(value)


def refuse_float(text: str) -> NoReturn:
    raise ValueError(f"the number {text} is not an integer")
