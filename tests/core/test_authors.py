"""Errors for authors of protocols: each mistake is one line that names the class, what is wrong and what to do.

The protocol of this page is a token that lies at the root. Each case makes one mistake in it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from fairgate.check.case import Case
from fairgate.check.explore import Explorer
from fairgate.cli.app import run
from fairgate.core.message import KINDS
from fairgate.core.setup import Setup
from fairgate.errors import BadDeclaration
from fairgate.registry import PROTOCOLS, find_protocol
from fairgate.scenario.manual import ManualNetwork, Violation
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

SOURCE = """
from fairgate.core.about import About
from fairgate.core.declare import Option, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from typing import Annotated, Literal, NewType


@message("central.request")
class Request(Message):
    r: int


@message("central.token", tokens=1)
class Token(Message):
    fence: int


@node
class Central(Mutex):
    about = About(name="central", paper="none", kind="token", cost="3", many=False, slots=True)
    shown = "has fence waiting"

    has: bool = False
    fence: int = 0
    waiting: list[int] = []

    def initialize(self, setup: Setup) -> None:
        self.has = self.me == setup.root

    def request_cs(self) -> None:
        if self.has:
            self.enter()
        else:
            self.out.send(self.setup.root, Request(self.me))

    def release_cs(self) -> None:
        if self.waiting:
            self.give(self.waiting.pop(0))
        elif self.me != self.setup.root:
            self.give(self.setup.root)

    def on_request(self, m: Request) -> None:
        if self.has and not self.inside:
            self.give(m.r)
        else:
            self.waiting.append(m.r)

    def on_token(self, m: Token) -> None:
        self.fence = m.fence
        self.has = True
        if self.requesting_cs:
            self.enter()
        elif self.waiting:
            self.give(self.waiting.pop(0))

    def enter(self) -> None:
        self.fence += 1
        self.enter_cs(0, self.fence)

    def give(self, peer: int) -> None:
        self.has = False
        self.out.send(peer, Token(self.fence))

    def tokens(self) -> int:
        return int(self.has)
"""
TYPES = "int, bool, str, a message, a record, or a tuple, list, set or dict of these"
SENT = "int, bool, str, another message, a record, or a tuple of these"
HANDLER = "write on_token(self, m: MESSAGE), or call it by a name that does not begin with on_"
TAKES = "a handler takes the message, or the sender and the message"

DECLARED = {  # what is wrong with the declaration -> (what was written, what is written instead, the line)
    "a float field": ("fence: int = 0", "fence: float = 0.0", f"Central.fence cannot be of type float: use {TYPES}"),
    "bytes": ("fence: int = 0", "fence: bytes = b''", f"Central.fence cannot be of type bytes: use {TYPES}"),
    "any class": ("waiting: list[int] = []", "waiting: Setup", f"Central.waiting cannot be of type Setup: use {TYPES}"),
    "a frozenset": (
        "waiting: list[int] = []",
        "waiting: frozenset[int]",
        f"Central.waiting cannot be of type frozenset[int]: use {TYPES}",
    ),
    "a new type": (
        "waiting: list[int] = []",
        "waiting: NewType('Line', int) = 0",
        "Central.waiting: central.Line is not a class: write the class that its values have",
    ),
    "a literal": (
        "has: bool = False",
        "has: Literal[True, False] = False",
        "Central.has: typing.Literal[True, False] is not a class: write the class that its values have",
    ),
    "an option that is no class": (
        "fence: int = 0",
        "fence: int = 0\n    wait: Option[Literal[0]] = 0",
        "Central.wait: typing.Literal[0] is not a class: write the class that its values have",
    ),
    "an unknown mark": (
        "fence: int = 0",
        "fence: Annotated[int, 'smal'] = 0",
        "Central.fence: typing.Annotated[int, 'smal'] has the unknown mark 'smal': use id, place, small, moment,"
        " option, fixed, spread, object",
    ),
    "a number or None": (
        "fence: int = 0",
        "fence: int | None = None",
        "Central.fence: int | None is not a type of C: a number cannot be None, so use NIL or another number",
    ),
    "a list of unions": (
        "waiting: list[int] = []",
        "waiting: list[int | str] = []",
        f"Central.waiting cannot be of type list[int | str]: use {TYPES}",
    ),
    "a union": ("fence: int = 0", "fence: int | str = 0", f"Central.fence cannot be of type int | str: use {TYPES}"),
    "a list of floats": (
        "waiting: list[int]",
        "waiting: list[float]",
        f"Central.waiting cannot be of type list[float]: use {TYPES}",
    ),
    "a bare list": (
        "waiting: list[int]",
        "waiting: list",
        "Central.waiting: list does not say what it contains: write for example list[int]",
    ),
    "a bare dict": (
        "waiting: list[int] = []",
        "waiting: dict = {}",
        "Central.waiting: dict does not say what it contains: write for example dict[int, int]",
    ),
    "a float in a message": (
        "    fence: int\n",
        "    fence: float\n",
        f"Token.fence cannot be of type float: use {SENT}",
    ),
    "a list in a message": (
        "    fence: int\n",
        "    fence: list[int]\n",
        f"Token.fence cannot be of type list[int]: use {SENT}",
    ),
    "no type": ("    has: bool = False\n", "    has = False\n", "Central.has has no type: write has: bool = False"),
    "a mutable default": (
        "waiting: list[int] = []",
        "waiting: list[int] = [3]",
        "Central.waiting: a default container must be empty: fill it in `initialize`",
    ),
    "a default of another type": (
        "waiting: list[int] = []",
        "waiting: list[int] = 0",
        "Central.waiting is declared as list[int], but its default is 0",
    ),
    "None for a number": (
        "fence: int = 0",
        "fence: int = None",
        "Central.fence is declared as int, but its default is None",
    ),
    "a method named like a field": (
        "def enter(",
        "def request(",
        "Central.request hides a field of a base class: choose another name",
    ),
    "an unknown field is shown": (
        "has fence waiting",
        "has fenc waiting",
        "Central.shown names fenc, which is no field: did you mean fence?",
    ),
    "a handler without a type": (
        "self, m: Token",
        "self, m",
        f"Central.on_token is no handler, because its last parameter has no type: {HANDLER}",
    ),
    "a handler of a number": (
        "self, m: Token",
        "self, m: int",
        f"Central.on_token is no handler, because int is no message: {HANDLER}",
    ),
    "the message before the sender": (
        "self, m: Token",
        "self, m: Token, src: int",
        f"Central.on_token is no handler, because int is no message: {HANDLER}",
    ),
    "three arguments": (
        "self, m: Token",
        "self, src: int, x: int, m: Token",
        f"Central.on_token takes 3 arguments: {TAKES}",
    ),
    "an unknown message": ("self, m: Token", "self, m: 'Tokn'", "Central.on_token: name 'Tokn' is not defined"),
    "two handlers": ("self, m: Token", "self, m: Request", "Central: on_request and on_token both handle Request"),
    "the name of an input": (
        "def on_token(",
        "def on_release(",
        "Central.on_release handles Token, but a driver calls on_release for another purpose: rename the handler, for"
        " example to on_release_message",
    ),
    "no @message": (
        '@message("central.token", tokens=1)\n',
        "",
        "Central.on_token: the message Token is not declared: write @message(TAG) above its class",
    ),
    "@message without a tag": (
        '@message("central.token", tokens=1)\n',
        "@message\n",
        'Token is declared by @message alone: write @message("TAG"), with its name on the wire',
    ),
    "no Message": (
        "class Token(Message)",
        "class Token",
        "Token is declared as a message, but does not extend Message: write class Token(Message)",
    ),
    "no Mutex": (
        "class Central(Mutex)",
        "class Central",
        "Central is declared as a node, but does not extend Node: write class Central(Mutex)",
    ),
    "one tag twice": (
        "central.token",
        "central.request",
        "message tag 'central.request' of Token is already in use, by Request",
    ),
}

REGISTERED = {  # what only shows when the protocol is looked up or its first node is made
    "no @node": ("@node\n", "", "Central is not declared: write @node above its class"),
    "no about": (
        '    about = About(name="central", paper="none", kind="token", cost="3", many=False, slots=True)\n',
        "",
        'Central.about is missing: write about = About(name="central", paper="...", kind="...", cost="...")',
    ),
    "another name": (
        'name="central"',
        'name="centre"',
        "Central is registered as central, but its about has the name centre: use one name",
    ),
    "no first value": (
        "    fence: int = 0\n",
        "    fence: int\n",
        "Central.fence has no value: give it a default, or set it in `initialize`",
    ),
}

FAILED = {  # what only shows in a run
    "no handler": (
        "def on_token(self, m: Token)",
        "def take(self, m)",
        "TypeError: Central has no handler for Token, only on_request for Request: add on_token(self, m: Token)",
    ),
    "a misspelt handler": (
        "def on_token(",
        "def om_token(",
        "TypeError: Central has no handler for Token, only on_request for Request: did you mean on_token by om_token?",
    ),
    "no release_cs": ("def release_cs", "def let_go", "NotImplementedError: Central has no method release_cs"),
    "send to NIL": (
        "self.out.send(peer, ",
        "self.out.send(NIL, ",
        "send: node 0 sent central.token(",
    ),
    "too few arguments": (
        "Token(self.fence)",
        "Token()",
        "TypeError: Token.__init__() missing 1 required positional argument: 'fence'",
    ),
    "a float for an integer": (
        "Token(self.fence)",
        "Token(self.fence + 0.5)",
        "TypeError: Token.fence must be an int, not ",
    ),
    "a timer without timed": (
        "        self.fence += 1\n",
        "        self.fence += 1\n        self.set_timer('x', 5)\n",
        "assertion: only a timed node sets timers: write `timed = True` in its class",
    ),
    "enter_cs twice": (
        "        self.enter_cs(0, self.fence)\n",
        "        self.enter_cs(0, self.fence)\n" * 2,
        "assertion: a turn came to a node that is inside",
    ),
    "no enter_cs": ("        self.enter_cs(0, self.fence)\n", "", "liveness: nothing moves any more, and "),
    "slots without slots=True": (
        ", slots=True",
        "",
        "slot: node 0 was given slot 0 and fence 1, but its protocol has none: pass NIL, NIL to enter_cs, or say"
        " slots=True in its About",
    ),
    "a slot beyond k": ("enter_cs(0, ", "enter_cs(1, ", "slot: node 0 was given slot 1, there are 0..0"),
    "a fence that does not rise": (
        "        self.fence = m.fence\n",
        "",
        "fence: slot 0 gave fence 1 after 1",
    ),
}


def declared(old: str, new: str) -> Any:
    """The protocol with this mistake. The import of its module may fail."""
    assert old in SOURCE
    module = ModuleType("central")
    sys.modules["central"] = module
    exec(compile(SOURCE.replace(old, new), "central.py", "exec"), vars(module))
    return module.Central


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    """Forget the messages and the protocol afterwards."""
    yield
    for tag in ("central.request", "central.token"):
        KINDS.pop(tag, None)
    sys.modules.pop("central", None)
    PROTOCOLS.places.pop("central", None)


def test_the_protocol_without_a_mistake_is_right() -> None:
    PROTOCOLS["central"] = declared("3", "3")
    assert simulate(Config("central", nodes=3, k=1, requests=3)).broken == ()
    assert Explorer(Case("central", nodes=3)).run().violations == ()


@pytest.mark.parametrize("name", DECLARED)
def test_a_wrong_declaration_is_refused_in_one_line(name: str) -> None:
    old, new, line = DECLARED[name]
    with pytest.raises(BadDeclaration) as wrong:
        declared(old, new)
    assert str(wrong.value) == line


@pytest.mark.parametrize("name", REGISTERED)
def test_an_incomplete_protocol_is_refused_by_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, line = REGISTERED[name]
    PROTOCOLS["central"] = declared(old, new)
    for command in ("sim", "check"):
        assert run([command, "central", "--nodes", "3", "--k", "1"]) == 2
        assert capsys.readouterr().err == f"fairgate: {line}\n"


def test_a_module_that_cannot_be_imported_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    (tmp_path / "written_by_an_author.py").write_text(SOURCE.replace("fence: int = 0", "fence: float = 0.0"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PROTOCOLS.places, "central", "written_by_an_author:Central")
    assert run(["sim", "central"]) == 2
    assert capsys.readouterr().err == f"fairgate: Central.fence cannot be of type float: use {TYPES}\n"


@pytest.mark.parametrize("name", FAILED)
def test_simulator_checker_and_scenarios_find_the_same_mistake(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, line = FAILED[name]
    PROTOCOLS["central"] = declared(old, new)
    assert run(["sim", "central", "--nodes", "3", "--k", "1", "--requests", "3", "--json"]) == 1
    simulated = capsys.readouterr()
    assert line_of(line) in line_of(simulated.out + simulated.err)
    report = Explorer(Case("central", nodes=3)).run()
    assert [violation.what[: len(line)] for violation in report.violations] == [line]
    if not line.startswith("liveness"):
        with pytest.raises((Violation, TypeError, NotImplementedError, AssertionError)) as found:
            by_hand(find_protocol("central"))
        assert str(found.value).startswith(line.partition("Error: ")[2] or line.removeprefix("assertion: "))


def line_of(text: str) -> str:
    """Without the numbers of nodes: a run begins with another one."""
    return "".join(char for char in text if not char.isdigit())


def by_hand(protocol: Any) -> None:
    network = ManualNetwork(protocol, Setup(tuple(range(3))), protocol.about.slots)
    for me in (0, 1):
        network.acquire(me)
        network.deliver_all()
        network.release(me)
        network.deliver_all()


def test_a_field_that_was_not_declared_is_named() -> None:
    PROTOCOLS["central"] = declared("        self.fence += 1\n", "        self.fence += 1\n        self.count = 1\n")
    with pytest.raises(AttributeError, match="'Central' object has no attribute 'count'"):
        simulate(Config("central", nodes=3, k=1, requests=3))


def test_something_else_than_a_message_cannot_be_sent() -> None:
    PROTOCOLS["central"] = declared("self.out.send(peer, Token(self.fence))", "self.out.send(Token(self.fence), peer)")
    with pytest.raises(TypeError):
        simulate(Config("central", nodes=3, k=1, requests=3))
    assert Explorer(Case("central", nodes=3)).run().violations[0].what.startswith("TypeError")


def test_a_module_may_postpone_its_annotations() -> None:
    PROTOCOLS["central"] = declared(
        "\nfrom fairgate.core.about", "\nfrom __future__ import annotations\nfrom fairgate.core.about"
    )
    assert simulate(Config("central", nodes=3, k=1, requests=3)).broken == ()


def test_a_handler_need_not_say_the_type_of_the_sender() -> None:
    PROTOCOLS["central"] = declared("on_token(self, m: Token)", "on_token(self, src, m: Token)")
    assert simulate(Config("central", nodes=3, k=1, requests=3)).broken == ()
