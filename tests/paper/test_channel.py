"""The reliable channel that the papers assume (recovery/channel.py): one test per rule, one message at a time."""

from __future__ import annotations

import pytest

from fairgate.core.declare import message
from fairgate.core.layers import over
from fairgate.core.message import Key, Message, decode
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.channel import Ack, Channel, Data
from fairgate.scenario.manual import ManualNetwork

MS = 1_000_000


@message("test.word")
class Word(Message):
    text: str


class Talker(Node):
    """Sends the letters it is given, and remembers those it received."""

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Node.__init__(self, me, setup, out)
        self.heard = ""

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        """The only input that takes a tuple. Here `members` are the letters to send to node 1."""
        for letter in members:
            self.out.send(1, Word(chr(letter)))

    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Word)
        self.heard += msg.text

    def key(self) -> Key:
        return (self.version, self.heard)

    def load(self, key: Key) -> None:
        _, self.heard = key


class Pair(ManualNetwork):
    """Node 0 sends, node 1 receives."""

    def __init__(self) -> None:
        super().__init__(over(Channel, Talker), Setup((0, 1)), slots=False)

    def say(self, text: str) -> None:
        self.step(0, "on_view", 1, tuple(map(ord, text)), ())

    @property
    def heard(self) -> str:
        return str(self.nodes[1].upper.heard)  # type: ignore[attr-defined]

    def find(self, msg: Message) -> int:
        return [flight.msg for flight in self.flight].index(msg)


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_a_message_is_numbered_and_acknowledged_in_the_step_that_delivers_it(pair: Pair) -> None:
    pair.say("a")
    assert [flight.msg for flight in pair.flight] == [Data(1, Word("a"))]
    pair.deliver()
    assert pair.heard == "a"
    assert [flight.msg for flight in pair.flight] == [Ack(1)]


def test_a_lost_message_is_sent_again(pair: Pair) -> None:
    pair.say("a")
    pair.drop()
    pair.advance(199 * MS)
    assert not pair.flight
    pair.advance(MS)
    pair.deliver_all()
    assert pair.heard == "a"
    assert not pair.timers


def test_one_timer_resends_everything_unacknowledged(pair: Pair) -> None:
    pair.say("abc")
    assert list(pair.timers) == [(0, "resend:1")]
    pair.flight.clear()
    pair.fire(0, "resend:1")
    assert [flight.msg for flight in pair.flight] == [Data(1, Word("a")), Data(2, Word("b")), Data(3, Word("c"))]


def test_a_later_acknowledgement_makes_up_for_a_lost_one(pair: Pair) -> None:
    pair.say("ab")
    pair.deliver()
    pair.drop(pair.find(Ack(1)))
    pair.deliver()
    pair.deliver(pair.find(Ack(2)))
    assert not pair.timers


def test_a_message_that_arrives_again_is_acknowledged_again(pair: Pair) -> None:
    pair.say("a")
    pair.deliver()
    pair.drop(pair.find(Ack(1)))
    pair.fire(0, "resend:1")
    pair.deliver_all()
    assert pair.heard == "a"
    assert not pair.timers


def test_a_duplicated_message_is_delivered_once(pair: Pair) -> None:
    pair.say("a")
    pair.duplicate()
    pair.deliver_all()
    assert pair.heard == "a"
    assert "a message came again" in pair.marks


def test_a_message_that_arrives_early_waits_for_its_turn(pair: Pair) -> None:
    pair.say("abc")
    pair.deliver(2)
    pair.deliver(1)
    assert pair.heard == ""
    pair.deliver(0)
    assert pair.heard == "abc"


def test_an_early_message_is_not_acknowledged_before_it_is_delivered(pair: Pair) -> None:
    pair.say("ab")
    pair.deliver(1)
    assert pair.flight[-1].msg == Ack(0)


def test_the_delay_doubles_up_to_its_cap(pair: Pair) -> None:
    pair.say("a")
    due = []
    for _ in range(7):
        due.append((pair.timers[0, "resend:1"] - pair.now) // MS)
        pair.fire(0, "resend:1")
    assert due == [200, 400, 800, 1600, 3200, 3200, 3200]


def test_a_new_acknowledgement_resets_the_delay(pair: Pair) -> None:
    pair.say("ab")
    for _ in range(3):
        pair.fire(0, "resend:1")
    pair.deliver(pair.find(Data(1, Word("a"))))
    pair.deliver(pair.find(Ack(1)))
    assert pair.timers[0, "resend:1"] - pair.now == 200 * MS


def test_nothing_is_resent_to_a_crashed_peer(pair: Pair) -> None:
    pair.say("a")
    pair.crash(1)
    pair.step(0, "on_crash", 1)
    assert not pair.timers


def test_a_late_duplicate_from_a_crashed_peer_is_not_delivered_again(pair: Pair) -> None:
    pair.say("a")
    pair.duplicate()
    pair.deliver()
    pair.step(1, "on_crash", 0)
    pair.deliver_all()
    assert pair.heard == "a"


def test_messages_nest_on_the_wire() -> None:
    wire = ("ch.data", 3, ("test.word", "a"))
    assert Data(3, Word("a")).key() == wire
    assert decode(wire) == Data(3, Word("a"))
