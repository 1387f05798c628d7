"""The memory of a reliable channel is bounded, whatever the other end does."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.declare import message
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.recovery.channel import MOST, TIMER, WINDOW, Ack, Channel, Data

PEER = 2


@message("tcb.word")
class Word(Message):
    number: int


class Sink(Node):
    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Word)
        GOT.append(msg.number)

    def on_crash(self, peer: int) -> None: ...


GOT: list[int] = []


class End:
    """One end of a channel, and what it has sent."""

    def __init__(self, me: int) -> None:
        GOT.clear()
        self.out = Collected()
        self.channel = Channel(me, Setup((1, 2)), self.out, Sink)

    def sent(self) -> list[Any]:
        return [effect[2] for effect in self.out.drain() if effect[0] == "send"]

    def numbers(self) -> list[int]:
        return [one.number for one in self.sent() if isinstance(one, Data)]


def test_only_a_window_of_messages_is_on_its_way() -> None:
    end = End(1)
    for number in range(1, WINDOW + 11):
        end.channel.send_down(PEER, Word(number))
    assert end.numbers() == list(range(1, WINDOW + 1))
    end.channel.timer_due(f"{TIMER}{PEER}")
    assert end.numbers() == list(range(1, WINDOW + 1))
    end.channel.on_message(PEER, Ack(3))
    assert end.numbers() == [WINDOW + 1, WINDOW + 2, WINDOW + 3]
    end.channel.on_message(PEER, Ack(WINDOW))
    assert end.numbers() == list(range(WINDOW + 4, WINDOW + 11))
    end.channel.on_message(PEER, Ack(10**15))  # a lie, at its own expense
    assert end.numbers() == []
    end.channel.send_down(PEER, Word(0))
    assert end.numbers() == [WINDOW + 11]


def test_everything_arrives_once_and_in_order_through_a_window() -> None:
    one, two = End(1), End(2)
    for number in range(1, 3 * WINDOW):
        one.channel.send_down(2, Word(number))
    while data := one.sent():
        for each in reversed(data):  # the worst order
            two.channel.on_message(1, each)
        for each in two.sent():
            one.channel.on_message(2, each)
    assert list(range(1, 3 * WINDOW)) == GOT


@pytest.mark.parametrize("number", [WINDOW + 1, 10**15, -1, 0, 2**63 - 1 - WINDOW])
def test_a_receiver_stores_nothing_beyond_the_window(number: int) -> None:
    end = End(2)
    end.channel.on_message(1, Data(number, Word(1)))
    assert [one.key() for one in end.sent()] == [Ack(0).key()]
    assert not end.channel.link(1).early
    assert GOT == []


def test_a_peer_that_acknowledges_nothing_is_full() -> None:
    end = End(1)
    assert not end.channel.is_full(PEER)
    for number in range(MOST - 1):
        end.channel.send_down(PEER, Word(number))
    assert not end.channel.is_full(PEER)
    end.channel.send_down(PEER, Word(0))
    assert end.channel.is_full(PEER)
    end.channel.on_crash(PEER)
    assert not end.channel.is_full(PEER)
