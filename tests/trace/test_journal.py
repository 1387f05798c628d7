"""The journal: reading returns what was written, errors name the broken line, and recorded runs replay."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairgate.core.choose import from_floats
from fairgate.core.declare import message
from fairgate.core.inputs import CALLS
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.core.outbox import Collected, Outbox
from fairgate.core.setup import Setup
from fairgate.protocols.fair_k import FairK, Request
from fairgate.protocols.naimi_trehel import NaimiTrehel
from fairgate.registry import make_node
from fairgate.scenario.manual import Violation
from fairgate.scenario.recorded import RecordedNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.trace.journal import (
    ARGUMENTS,
    Header,
    JournalError,
    JournalWriter,
    RecordingOutbox,
    Step,
    read,
)
from fairgate.trace.replay import ReplayError, replay
from fairgate.walks.walk import walk

SETUP = Setup((1, 2, 3), k=2)


@message("test.ball")
class Ball(Message):
    throws: int


class Thrower(Node):
    """Not a protocol: throws a ball to a random node after a random delay."""

    timed = True

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Node.__init__(self, me, setup, out)
        self.throws = 0
        self.began = 0

    def on_acquire(self, request: int) -> None:
        self.began = self.now
        self.set_timer("throw", 1 + self.out.choose(1000))

    def on_timer(self, name: str) -> None:
        self.throws += 1
        self.out.send(self.setup.members[self.out.choose(self.setup.n)], Ball(self.throws))

    def on_message(self, src: int, msg: Message) -> None:
        self.out.lost(0, f"a ball from {src}")
        self.cancel_timer("throw")

    def key(self) -> Key:
        return (self.version, self.throws, self.now - self.began, self.timers_key())


def record(path: Path, seed: int = 1) -> Path:
    """Write the journal of a random walk of Fair-k, at whose end the last node crashes."""
    rng = random.Random(seed)
    with JournalWriter(path) as journal:
        journal.header("fair_k", SETUP, "hand", seed=seed)
        network = RecordedNetwork(journal, FairK, SETUP, True, from_floats(rng.random))
        walk(network, rng)
        network.crash(3)
    return path


def record_throws(path: Path) -> Path:
    with JournalWriter(path) as journal:
        journal.header("thrower", SETUP, "hand")
        network = RecordedNetwork(journal, Thrower, SETUP, False, from_floats(random.Random(5).random))
        for me in (1, 2, 3):
            network.acquire(me)
            network.advance(400)
            network.deliver_all()
        network.advance(1000)
    return path


def steps_of(path: Path) -> list[Step]:
    return list(read(path)[1])


def replayed(path: Path, make: MakeNode = FairK) -> list[Step]:
    return list(replay(path, make))


# Writing and reading.


def test_header_and_steps_are_read_as_written(tmp_path: Path) -> None:
    steps = [
        Step(0, 1, "start", key=(1, True, (), ((2, "x"),))),
        Step(5, 2, "message", source=1, message=("fk.token_locations", (1, 2), 0), choices=(3, 0), key=(1,)),
        Step(
            6, 2, "timer", arguments=("upper/retry",), effects=(("send", 1, ("fk.request", 2)), ("note", "n")), key=(2,)
        ),
        Step(7, 1, "view", arguments=(4, (1, 2, 3), (5,)), key=(3,)),
        Step(8, 1, "suspect", arguments=(2, "T"), key=(3,)),
        Step(9, 1, "crash"),
    ]
    setup = Setup((1, 5, 3), 2, 5, 7, {"z": 1, "a": [1, 2]})
    with JournalWriter(tmp_path / "j") as journal:
        journal.header("fair_k", setup, "sim", seed=9, stack=["channel"])
        for step in steps:
            journal.step(step)
    header, found = read(tmp_path / "j")
    assert header == Header("fairgate-journal", 2, "fair_k", ("channel",), setup.describe(), 9, header.fairgate, "sim")
    assert Setup.of(header.setup).describe() == setup.describe()
    assert list(found) == steps


def test_the_bytes_are_pinned() -> None:
    file = io.BytesIO()
    with JournalWriter(file) as journal:
        journal.header("fair_k", Setup((1, 2), options={"b": 1, "a": 2}), "check")
        outbox = RecordingOutbox(Collected())
        node = FairK(2, SETUP, outbox)
        node.on_acquire(1)
        journal.step(outbox.taken(12, node, "acquire", 1))
        outbox.begin()
        node.on_message(1, Request(3))
        journal.step(outbox.taken(13, node, "message", 1, Request(3)))
    header, first, second = file.getvalue().splitlines()
    assert header.startswith(
        b'{"schema":"fairgate-journal","version":2,"protocol":"fair_k","stack":[],'
        b'"setup":{"epoch":0,"k":1,"members":"1..2","options":{"a":2,"b":1},"root":1},"seed":null,"fairgate":'
    )
    assert header.endswith(b'"driver":"check"}')
    assert first == (
        b'{"t":12,"n":2,"e":"acquire","a":[1],"o":[["granted",1,1,1]],"k":[1,1,true,true,1,-1,-1,true,1,1,false,[],-1]}'
    )
    assert second == (
        b'{"t":13,"n":2,"e":"message","f":1,"m":["fk.request",3],"o":[["send",1,["fk.request",3]]],'
        b'"k":[1,1,true,true,3,-1,-1,true,1,1,false,[],-1]}'
    )


def test_a_recording_outbox_passes_everything_on() -> None:
    inner = Collected(lambda n: n - 1)
    outbox = RecordingOutbox(inner)
    outbox.send(1, Ball(2))
    outbox.set_timer("a", 3)
    outbox.cancel_timer("a")
    outbox.granted(4, 5, 6)
    outbox.lost(4, "late")
    outbox.note("odd")
    assert outbox.choose(8) == 7
    assert outbox.choices == [7]
    assert inner.effects[0] == ("send", 1, Ball(2))
    assert outbox.effects[0] == ("send", 1, ("test.ball", 2))
    assert len(inner.effects) == 6
    assert inner.effects[1:] == outbox.effects[1:]


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    assert record(tmp_path / "a").read_bytes() == record(tmp_path / "b").read_bytes()
    assert record(tmp_path / "a").read_bytes() != record(tmp_path / "b", seed=2).read_bytes()


def test_an_unknown_driver_is_refused() -> None:
    with pytest.raises(ValueError, match="steam"):
        JournalWriter(io.BytesIO()).header("fair_k", SETUP, "steam")


def test_every_event_of_a_node_has_its_call() -> None:
    assert set(ARGUMENTS) - set(CALLS) == {"crash", "reset", "load"}
    assert all(hasattr(Node, call) for call in CALLS.values())
    inputs = {name for name in vars(Node) if name.startswith("on_")} - {"on_timer"} | {"timer_due"}
    assert set(CALLS.values()) == inputs


def test_a_run_with_views_is_replayed(tmp_path: Path) -> None:
    config = Config("fair_k", nodes=5, k=2, rate=0.3, cs=1.0, requests=5, stack=("regenerate",), faults="crash:*1@4")
    simulate(config, journal=str(tmp_path / "j"))
    steps = replayed(tmp_path / "j", make_node("fair_k", ("regenerate",)))
    assert {step.arguments[0] for step in steps if step.event == "view"} == {1}


def test_a_node_can_begin_with_a_loaded_state(tmp_path: Path) -> None:
    """The gate has other members than the header says, and the loaded state is compared."""
    node = NaimiTrehel(7, Setup((7, 8)), Collected())
    node.on_acquire(1)
    key = node.key()
    setup = Setup((1,))
    for found, ends_well in ((key, True), (node.key()[:1], False), ((99, *key[1:]), False)):
        with JournalWriter(tmp_path / "j") as journal:
            journal.header("naimi_trehel", setup, "net")
            journal.step(Step(5, 7, "load", arguments=((7, 8), found), key=key))
            journal.step(Step(6, 7, "release", arguments=(1,), key=released(key)))
        if ends_well:
            assert len(replayed(tmp_path / "j", NaimiTrehel)) == 2
        else:
            with pytest.raises(ReplayError, match="line 2, node 7: load: expected a state"):
                replayed(tmp_path / "j", NaimiTrehel)


def released(key: Key) -> Key:
    node = NaimiTrehel(7, Setup((7, 8)), Collected())
    node.load(key)
    node.on_release(1)
    return node.key()


# Broken journals.

Doctor = Callable[[list[bytes]], list[bytes]]


def line_replaced(number: int, text: bytes) -> Doctor:
    return lambda lines: [*lines[: number - 1], text, *lines[number:]]


def swapped(number: int, old: bytes, new: bytes) -> Doctor:
    def doctor(lines: list[bytes]) -> list[bytes]:
        assert old in lines[number - 1]
        return line_replaced(number, lines[number - 1].replace(old, new))(lines)

    return doctor


BROKEN: dict[str, tuple[Doctor, int, str]] = {
    "empty": (lambda lines: [], 1, "header is missing"),
    "no header": (lambda lines: lines[1:], 1, "header is missing"),
    "header is not JSON": (line_replaced(1, b"hello\n"), 1, "header is missing"),
    "other schema": (swapped(1, b"fairgate-journal", b"cookbook"), 1, "schema 'cookbook'"),
    "other version": (
        swapped(1, b'"version":2', b'"version":1'),
        1,
        "version 1 is not supported, only 2: replay",
    ),
    "header without a driver": (swapped(1, b',"driver":"hand"', b""), 1, "broken header.*driver"),
    "a line is not JSON": (line_replaced(3, b'{"t":0,"n":\n'), 3, "broken JSON"),
    "a blank line": (line_replaced(3, b"\n"), 3, "broken JSON"),
    "not text": (line_replaced(3, b'{"t":0,"n":1,"e":"\xff"}\n'), 3, "broken JSON"),
    "a step without a node": (line_replaced(3, b'{"t":0,"e":"start"}\n'), 3, "not a step.*`n`"),
    "a step with an unknown field": (swapped(3, b'"t":0', b'"t":0,"x":0'), 3, "not a step.*`x`"),
    "unknown event": (swapped(3, b'"start"', b'"dance"'), 3, "unknown event 'dance'"),
    "acquire without a request": (swapped(3, b'"start"', b'"acquire"'), 3, "acquire needs 1 arguments, not 0"),
    "a message without a message": (swapped(3, b'"start"', b'"message"'), 3, "message without a message"),
    "a start with a message": (swapped(3, b'"start"', b'"start","m":["x"]'), 3, "start with a message"),
    "a float": (swapped(3, b'"k":[1,', b'"k":[1.5,'), 3, r"1\.5"),
    "an object in a key": (swapped(3, b'"k":[1,', b'"k":[{},'), 3, "object"),
    "cut off": (lambda lines: [*lines[:5], lines[5][:-7]], 6, "cut off"),
    "cut off at the end of a line": (lambda lines: [*lines[:5], lines[5][:-1]], 6, "cut off"),
    "cut off in the header": (lambda lines: [lines[0][:20]], 1, "cut off"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_error_names_the_broken_line(name: str, tmp_path: Path) -> None:
    doctor, line, why = BROKEN[name]
    path = record(tmp_path / "journal")
    path.write_bytes(b"".join(doctor(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(JournalError, match=why) as caught:
        steps_of(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_steps_before_a_cut_are_read(tmp_path: Path) -> None:
    path = record(tmp_path / "journal")
    whole = steps_of(path)
    path.write_bytes(path.read_bytes()[:-5])
    steps = read(path)[1]
    assert [next(steps) for _ in whole[:-1]] == whole[:-1]
    with pytest.raises(JournalError):
        next(steps)


# Replay.


@pytest.mark.parametrize("seed", range(20))
def test_a_recorded_walk_replays(seed: int, tmp_path: Path) -> None:
    path = record(tmp_path / "journal", seed)
    assert replayed(path) == steps_of(path)
    assert steps_of(path)[-1] == Step(steps_of(path)[-1].now, 3, "crash")


def test_time_and_chance_replay(tmp_path: Path) -> None:
    path = record_throws(tmp_path / "journal")
    steps = replayed(path, Thrower)
    assert any(step.event == "timer" and step.choices for step in steps)
    said = {effect[0] for step in steps for effect in step.effects}
    assert said == {"send", "timer", "untimer", "lost"}


def doctored(path: Path, number: int, **changes: Any) -> Path:
    """Change one step of the journal, in line `number`."""
    lines = path.read_bytes().splitlines(keepends=True)
    step = msgspec.structs.replace(steps_of(path)[number - 2], **changes)
    lines[number - 1] = msgspec.json.encode(step) + b"\n"
    path.write_bytes(b"".join(lines))
    return path


def line_with(path: Path, effect: str) -> int:
    return next(line for line, step in enumerate(steps_of(path), 2) if effect in [said[0] for said in step.effects])


def test_a_changed_effect_is_reported(tmp_path: Path) -> None:
    path = record(tmp_path / "journal")
    line = line_with(path, "granted")
    node = steps_of(path)[line - 2].node
    doctored(path, line, effects=(("granted", 1, 0, 99),))
    with pytest.raises(
        ReplayError, match=rf"^line {line}, node {node}: effects: expected .*99.*, got .*granted"
    ) as caught:
        replayed(path)
    assert (caught.value.line, caught.value.node) == (line, node)


def test_a_changed_key_is_reported(tmp_path: Path) -> None:
    path = record(tmp_path / "journal")
    doctored(path, 9, key=(1, 2, 3))
    with pytest.raises(ReplayError, match=r"^line 9, .*state key: expected \(1, 2, 3\), got \(1, "):
        replayed(path)


def test_a_missing_key_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"^line 9, .*state key: expected \(\)"):
        replayed(doctored(record(tmp_path / "journal"), 9, key=()))


def test_changed_choices_and_times_are_reported(tmp_path: Path) -> None:
    path = record_throws(tmp_path / "journal")
    line = line_with(path, "timer")
    good = steps_of(path)[line - 2]
    for changes, why in (
        ({"choices": ()}, r"acquire: .*recorded choice None"),
        ({"choices": (*good.choices, 1)}, r"choices: expected .*, got"),
        ({"choices": (good.choices[0] ^ 1,)}, "effects"),
    ):
        with pytest.raises(ReplayError, match=rf"line {line}, .*{why}"):
            replayed(doctored(path, line, **changes), Thrower)
    doctored(path, line, choices=good.choices)
    replayed(path, Thrower)
    with pytest.raises(ReplayError, match="state key"):
        replayed(doctored(path, line_with(path, "send"), now=77), Thrower)


def test_a_step_of_a_crashed_node_is_refused_until_its_reset(tmp_path: Path) -> None:
    path = record(tmp_path / "journal")
    last = len(steps_of(path)) + 1
    fresh = FairK(3, SETUP, Collected()).key()
    with path.open("ab") as file:
        JournalWriter(file).step(Step(0, 3, "reset", key=fresh))
        JournalWriter(file).step(Step(0, 3, "start", key=fresh))
    replayed(path)
    doctored(path, last + 1, event="start")
    with pytest.raises(ReplayError, match=f"line {last + 1}, node 3: .*crashed"):
        replayed(path)


def test_the_step_that_breaks_a_property_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with JournalWriter(path) as journal:
        journal.header("fair_k", SETUP, "hand")
        network = RecordedNetwork(journal, FairK, SETUP, True)
        network.nodes[3].load((*network.nodes[1].key()[:4], 1, *network.nodes[1].key()[5:]))  # a second token of slot 0
        with pytest.raises(Violation):
            network.acquire(3)
    assert steps_of(path)[-1].event == "acquire"
