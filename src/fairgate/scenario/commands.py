"""The commands of scenario files (see run.py). They drive a `ManualNetwork` and report what happens."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from inspect import signature
from typing import Any

from fairgate.core.choose import Chooser, from_floats
from fairgate.core.ids import NIL
from fairgate.core.layers import Layer, MakeNode
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.core.units import SECOND
from fairgate.scenario.manual import Flight, ManualNetwork, Violation
from fairgate.trace.spacetime import entered

Registry = Callable[[str, tuple[str, ...]], MakeNode]  # from a protocol's name and the layers below it


class Wrong(Exception):
    """A command is not valid. `run_scenario` turns it into a ScenarioError with the line."""


class NarratedNetwork(ManualNetwork):
    """A ManualNetwork that reports what happens. Violations are reported as well, and the scenario goes on."""

    def __init__(self, make: MakeNode, setup: Setup, slots: bool, chooser: Chooser | None, census: bool) -> None:
        self.said: list[str] = []
        super().__init__(make, setup, slots, chooser, census)

    @contextmanager
    def breaches_said(self) -> Iterator[None]:
        try:
            yield
        except Violation as broken:
            self.said.append(f"VIOLATION {broken}")

    def count(self) -> None:
        with self.breaches_said():
            super().count()

    def do_send(self, me: int, dst: int, msg: Message) -> None:
        self.said.append(under_way(Flight(me, dst, msg)))
        with self.breaches_said():
            super().do_send(me, dst, msg)

    def do_timer(self, me: int, name: str, delay: int) -> None:
        self.said.append(f"{me} sets timer {name} to {seconds(delay)}")
        super().do_timer(me, name, delay)

    def do_untimer(self, me: int, name: str) -> None:
        self.said.append(f"{me} cancels timer {name}")
        super().do_untimer(me, name)

    def do_granted(self, me: int, request: int, slot: int, fence: int) -> None:
        self.said.append(entered(me, slot, fence))
        with self.breaches_said():
            super().do_granted(me, request, slot, fence)

    def do_lost(self, me: int, request: int, why: str) -> None:
        self.said.append(f"{me} loses its permit: {why}")
        super().do_lost(me, request, why)

    def do_note(self, me: int, mark: str) -> None:
        self.said.append(f"{me} notes: {mark}")
        super().do_note(me, mark)


class Runner:
    """Runs commands: the method `do_NAME` gets the words after NAME."""

    def __init__(self, make: Registry) -> None:
        self.make = make
        self.started: NarratedNetwork | None = None

    @property
    def network(self) -> NarratedNetwork:
        if self.started is None:
            raise Wrong("a scenario must begin with a protocol command")
        return self.started

    def run(self, words: list[str]) -> list[str]:
        """Run a command and return its output lines. Raises Wrong if the command is not valid."""
        if not words:
            return []
        name, *arguments = words
        command = getattr(self, f"do_{name}", None)
        if command is None:
            raise Wrong(f"unknown command {name!r}")
        try:
            signature(command).bind(*arguments)
        except TypeError as wrong:
            raise Wrong(f"{name}: {wrong}") from wrong
        command(*arguments)
        said = self.network.said
        self.network.said = []
        return said

    def do_protocol(self, name: str, *words: str) -> None:
        options = dict(word.split("=", 1) for word in words if "=" in word)
        pairs = [word for word in words if "=" not in word]
        given = dict(zip(pairs[::2], pairs[1::2], strict=False))
        unknown = set(given) - {"members", "k", "root", "epoch", "seed", "over", "census"}
        if len(pairs) % 2 or unknown or "members" not in given:
            raise Wrong(
                "usage: protocol NAME members 1..8 [k 3] [root 3] [epoch 0] [seed 1] [over LAYERS] [census off]"
            )
        members = tuple(numbers(given["members"].split(",")))
        seed = random.Random(number(given.get("seed", "0")))
        try:
            setup = Setup(
                members,
                number(given.get("k", "1")),
                number(given["root"]) if "root" in given else None,
                number(given.get("epoch", "0")),
                {option: value(word) for option, word in options.items()},
            )
            make = self.make(name, tuple(given["over"].split(",")) if "over" in given else ())
        except (KeyError, ValueError) as wrong:
            raise Wrong(str(wrong)) from wrong
        self.started = NarratedNetwork(
            make, setup, has_slots(make, setup), from_floats(seed.random), given.get("census") != "off"
        )

    # Inputs and faults of nodes.

    def do_acquire(self, *nodes: str) -> None:
        for me in self.up(nodes):
            if me in self.network.waiting or me in self.network.inside:
                raise Wrong(f"node {me} is already waiting or inside")
            self.network.acquire(me)

    def do_release(self, *nodes: str) -> None:
        for me in self.inside(nodes):
            self.network.release(me)

    def do_again(self, *nodes: str) -> None:
        for me in self.inside(nodes):
            self.network.again(me)

    def do_cancel(self, *nodes: str) -> None:
        for me in self.up(nodes):
            if me not in self.network.waiting and me not in self.network.inside:
                raise Wrong(f"node {me} is neither waiting nor inside")
            self.network.cancel(me)

    def do_crash(self, *nodes: str) -> None:
        for me in self.up(nodes):
            self.network.crash(me)

    def do_suspect(self, node: str, peer: str, detector: str = "T") -> None:
        self.network.suspect(next(self.up([node])), number(peer), detector)

    def do_trust(self, node: str, peer: str, detector: str = "T") -> None:
        self.network.trust(next(self.up([node])), number(peer), detector)

    def up(self, words: Iterable[str]) -> Iterator[int]:
        """The named nodes. Wrong if one has crashed, which is checked when its turn comes: `crash 2 2` is an error."""
        nodes = self.members(words)
        if not nodes:
            raise Wrong("name at least one node")
        for me in nodes:
            if me in self.network.crashed:
                raise Wrong(f"node {me} has crashed")
            yield me

    def inside(self, words: Iterable[str]) -> Iterator[int]:
        for me in self.up(words):
            if me not in self.network.inside:
                raise Wrong(f"node {me} is not inside")
            yield me

    def members(self, words: Iterable[str]) -> list[int]:
        nodes = list(numbers(words))
        for me in nodes:
            if me not in self.network.nodes:
                raise Wrong(f"node {me} is not a member")
        return nodes

    # Messages and time.

    def do_deliver(self, *which: str) -> None:
        if which == ("all",):
            self.network.deliver_all()
            return
        for flight in self.chosen(*which):
            self.network.deliver(self.network.flight.index(flight))

    def do_drop(self, *which: str) -> None:
        for flight in self.chosen(*which):
            self.network.drop(self.network.flight.index(flight))

    def do_duplicate(self, *which: str) -> None:
        for flight in self.chosen(*which):
            self.network.duplicate(self.network.flight.index(flight))

    def chosen(self, *which: str) -> list[Flight]:
        """The messages now in flight that these words select; Wrong if there are none."""
        flight = list(self.network.flight)
        match which:
            case ["all"]:
                found = flight
            case ["next"]:
                found = flight[:1]
            case ["to", node]:
                found = [one for one in flight if one.dst == number(node)]
            case [pair, *kind] if "->" in pair and len(kind) <= 1:
                src, dst = map(number, pair.split("->", 1))
                found = [one for one in flight if (one.src, one.dst) == (src, dst) and is_kind(one.msg, *kind)][:1]
            case _:
                raise Wrong("say which message: all | next | to NODE | SRC->DST [KIND]")
        if not found:
            raise Wrong("no such message is in flight")
        return found

    def do_fire(self, node: str, timer: str) -> None:
        if (number(node), timer) not in self.network.timers:
            raise Wrong(f"node {node} has no timer {timer}")
        self.network.fire(number(node), timer)

    def do_advance(self, time: str) -> None:
        try:
            self.network.advance(int(Decimal(time.removesuffix("s")) * SECOND))
        except InvalidOperation as wrong:
            raise Wrong(f"{time!r} is not a number of seconds") from wrong

    # Output.

    def do_state(self, *words: str) -> None:
        fields = [word for word in words if not word[0].isdigit()]
        nodes = self.members(word for word in words if word[0].isdigit()) or [*self.network.nodes]
        rows = []
        for me in nodes:
            shown = self.network.nodes[me].show()
            fields = fields or [*shown]
            missing = [field for field in fields if field not in shown]
            if missing:
                raise Wrong(f"no field {missing[0]!r}: the fields are {', '.join(shown)}")
            cells = [""] * len(fields) if me in self.network.crashed else [cell(shown[field]) for field in fields]
            rows.append([f"{me} crashed" if me in self.network.crashed else str(me), *cells])
        self.network.said += table([["node", *fields], *rows])

    def do_flight(self) -> None:
        self.network.said += [under_way(flight) for flight in self.network.flight] or ["no messages in flight"]

    def do_timers(self) -> None:
        armed = sorted(self.network.timers.items())
        self.network.said += [f"{me} {name} in {seconds(at - self.network.now)}" for (me, name), at in armed] or [
            "no timers"
        ]


def has_slots(make: MakeNode, setup: Setup) -> bool:
    """Does the protocol, which may run above layers, grant slots and fences?"""
    node = make(setup.members[0], setup, Outbox())
    while isinstance(node, Layer):
        node = node.upper
    return isinstance(node, Mutex) and node.about.slots


def under_way(flight: Flight) -> str:
    return f"{flight.src} -> {flight.dst} {flight.msg}"


def is_kind(msg: Message, kind: str = "") -> bool:
    return not kind or kind == msg.tag or msg.tag.endswith(f".{kind}")


def number(word: str) -> int:
    if not word.isdigit():
        raise Wrong(f"{word!r} is not a number")
    return int(word)


def numbers(words: Iterable[str]) -> Iterator[int]:
    """Expand numbers and ranges: 1 4..7 gives 1 4 5 6 7."""
    for word in words:
        first, dots, last = word.partition("..")
        yield from range(number(first), number(last if dots else first) + 1)


def value(word: str) -> int | bool | str:
    """The value of an option: a boolean, a number or a string."""
    if word in {"true", "false"}:
        return word == "true"
    return int(word) if word.isdigit() else word


def seconds(ns: int) -> str:
    return f"{(Decimal(ns) / SECOND).normalize():f}s"


def cell(shown: Any) -> str:
    """A field of `show()` as text for a table. None, NIL and an empty tuple are shown as a dash."""
    if shown is None or shown in (NIL, ()):
        return "-"
    if isinstance(shown, bool):
        return "yes" if shown else "no"
    if isinstance(shown, tuple):
        return f"({','.join(map(cell, shown))})"
    return str(shown)


def table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
