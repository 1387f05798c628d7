"""Runs every scenario (*.txt) here and in holes/, and compares its recorded output with the actual output.

`REWRITE=1 pytest tests/scenarios` writes the actual output into the files instead: review the diff.
"""

import os
from pathlib import Path

import pytest

from fairgate.core.layers import Layer, MakeNode, over
from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.protocols.fair_k import FairK
from fairgate.registry import PROTOCOLS, make_node
from fairgate.scenario.run import ScenarioError, run_scenario

FILES = sorted(Path(__file__).parent.rglob("*.txt"))


class Clock(Node):
    """Not a protocol: waits for a timer of 1.5 s, enters without a slot, may lose its permit, makes a choice."""

    timed = True

    def on_acquire(self, request: int) -> None:
        self.set_timer("wait", 1_500_000_000)
        self.out.note(f"chose {self.out.choose(1)}")

    def on_cancel(self, request: int) -> None:
        self.cancel_timer("wait")

    def on_timer(self, name: str) -> None:
        self.out.granted(1, -1, -1)

    def on_suspect(self, peer: int, detector: str) -> None:
        self.out.lost(1, f"{peer} suspected by {detector}")

    def on_trust(self, peer: int, detector: str) -> None:
        self.out.granted(7, -1, -1)

    def key(self) -> Key:
        return (self.version, self.timers_key())


class Thin(Layer):
    """A layer that only notes every message that it sends down."""

    def send_down(self, dst: int, msg: Message) -> None:
        self.out.note("down")
        self.out.send(dst, msg)

    def on_message(self, src: int, msg: Message) -> None:
        self.lift().on_message(src, msg)


NODES: dict[tuple[str, tuple[str, ...]], MakeNode] = {
    ("fair_k", ("thin",)): over(Thin, FairK),
    ("clock", ()): Clock,
}


def make(name: str, stack: tuple[str, ...]) -> MakeNode:
    return make_node(name, stack) if name in PROTOCOLS and (name, stack) not in NODES else NODES[name, stack]


def run(commands: str) -> list[str]:
    """The output of one block of commands."""
    return run_scenario(f"{commands}\n----\n", make).partition("----\n")[2].splitlines()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    actual = run_scenario(text, make)
    if os.environ.get("REWRITE"):
        path.write_text(actual, encoding="utf-8")
    else:
        assert actual.splitlines() == text.splitlines()


def test_there_are_scenarios() -> None:
    assert FILES


def test_old_output_is_replaced_and_comments_stay() -> None:
    start = "# first\nprotocol fair_k members 1..2  # two\n----\n"
    old = start + "wrong\nwrong\n# second\n\n\nacquire 1\n----"
    new = start + "ok\n# second\n\n\nacquire 1\n----\n1 enters slot 0 fence 1\n"
    assert run_scenario(old, make) == new
    assert run_scenario(new, make) == new


def test_messages_can_be_selected_dropped_and_duplicated() -> None:
    start = "protocol fair_k members 1..3 census off\nacquire 2 3\n"
    assert run(start + "drop 2->1\nflight") == ["2 -> 1 fk.request(2)", "3 -> 1 fk.request(3)", "3 -> 1 fk.request(3)"]
    assert run(start + "duplicate to 1\ndrop next\nflight")[2:] == [
        "3 -> 1 fk.request(3)",
        "2 -> 1 fk.request(2)",
        "3 -> 1 fk.request(3)",
    ]
    assert run(start + "drop all\nflight")[2:] == ["no messages in flight"]
    assert run(start + "deliver 3->1 fk.request")[2:] == [
        "1 -> 1 fk.child(3)",
        "1 -> 3 fk.token_locations((3,), 0)",
    ]


def test_only_one_of_two_equal_messages_is_selected() -> None:
    start = "protocol fair_k members 1..2\nacquire 2\nduplicate next\n"
    assert run(start + "drop 2->1\nflight")[1:] == ["2 -> 1 fk.request(2)"]


def test_the_protocol_command_sets_root_epoch_and_options() -> None:
    assert run("protocol fair_k members 3,1,2 k 2 root 1 epoch 1\nacquire 3\nstate parent") == [
        "3 enters slot 0 fence 4294967297",
        "node  parent",
        "3     1",
        "1     -",
        "2     1",
    ]
    # Node 2, the tail of the second queue, takes its child 4 as parent, unless the option turns that off.
    asked = "acquire 3\ndeliver all\nacquire 4\ndeliver all\nstate parent 2"
    assert run(f"protocol fair_k members 1..4 k 2\n{asked}")[-1] == "2     4"
    assert run(f"protocol fair_k members 1..4 k 2 parent_on_child=false\n{asked}")[-1] == "2     1"


def test_slots_are_found_through_a_layer() -> None:
    said = run("protocol fair_k members 1..3 over thin\nacquire 1 3\nrelease 1\ndeliver all")
    assert said[:3] == ["1 enters slot 0 fence 1", "3 notes: down", "3 -> 1 fk.request(3)"]
    assert said[-1] == "3 enters slot 0 fence 2"


def test_a_violation_is_reported() -> None:
    said = run("protocol fair_k members 1..2\nacquire 2\ndeliver next\nduplicate 1->2 token_locations\ndeliver to 2")
    assert said[3:] == ["VIOLATION coordinator: 2 in the system, 1 were made"]


def test_the_census_can_be_turned_off() -> None:
    lost = "acquire 2\ndeliver next\ndrop 1->2 token_locations\ndeliver next"
    assert any("VIOLATION" in line for line in run(f"protocol fair_k members 1..2\n{lost}"))
    assert not any("VIOLATION" in line for line in run(f"protocol fair_k members 1..2 census off\n{lost}"))


def test_time_and_detectors() -> None:
    start = "protocol clock members 1,2 k 2\nacquire 1\n"
    asked = ["1 sets timer wait to 1.5s", "1 notes: chose 0"]
    assert run(start + "timers\nadvance 1\ntimers\nadvance 0.5s\ntimers") == [
        *asked,
        "1 wait in 1.5s",
        "1 wait in 0.5s",
        "1 enters",
        "no timers",
    ]
    assert run(start + "fire 1 wait\nsuspect 1 2\ntrust 1 2 S")[2:] == [
        "1 enters",
        "1 loses its permit: 2 suspected by T",
        "1 enters",
        "VIOLATION grant: node 1 was granted request 7, which does not wait",
    ]
    assert run(start + "cancel 1\ntimers")[2:] == ["1 cancels timer wait", "no timers"]


def test_a_crashed_node_has_no_state() -> None:
    said = run("protocol fair_k members 1..3 k 2 parent_on_child=false\ncrash 2\nstate parent token 2..3")
    assert said == ["node       parent  token", "2 crashed", "3          1       -"]


WRONG = {
    "jump 1": "unknown command 'jump'",
    "acquire": "name at least one node",
    "acquire 9": "node 9 is not a member",
    "acquire x": "'x' is not a number",
    "acquire 1 1": "node 1 is already waiting or inside",
    "release 2": "node 2 is not inside",
    "cancel 2": "node 2 is neither waiting nor inside",
    "crash 2 2": "node 2 has crashed",
    "deliver": "say which message",
    "deliver next": "no such message",
    "deliver 1->2 token": "no such message",
    "fire 1 wait": "no timer wait",
    "fire 1": "fire: missing a required argument: 'timer'",
    "advance soon": "'soon' is not a number of seconds",
    "state colour": "no field 'colour'",
    "state 9": "node 9 is not a member",
    "protocol fair_k k 3": "protocol NAME members",
    "protocol fair_k members 1..2 k 3": "k must be",
    "protocol fair_k members 2..1": "at least one member",
    "protocol unheard_of members 1..2": "unheard_of",
    "----": "unknown command",
}


@pytest.mark.parametrize("command", WRONG)
def test_the_error_names_the_line_of_a_wrong_command(command: str) -> None:
    with pytest.raises(ScenarioError, match=WRONG[command]) as caught:
        run_scenario(f"# a comment\nprotocol fair_k members 1..3 k 2\n----\n\n{command}\n----\n", make)
    assert caught.value.line == 5


def test_dashes_are_required_and_the_protocol_comes_first() -> None:
    with pytest.raises(ScenarioError, match="line 2: no line ----"):
        run_scenario("# c\nprotocol fair_k members 1..3\n\nacquire 1\n", make)
    with pytest.raises(ScenarioError, match="line 1: a scenario must begin with a protocol command"):
        run_scenario("acquire 1\n----\n", make)
