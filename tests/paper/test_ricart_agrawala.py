"""Ricart and Agrawala (1981), one test a claim."""

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.ricart_agrawala import Reply, Request, RicartAgrawala
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.walk import walks


def hand_of(n: int) -> ManualNetwork:
    return ManualNetwork(RicartAgrawala, Setup(tuple(range(1, n + 1))), slots=False)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_an_entry_costs_2_n_minus_1_messages(n: int) -> None:
    hand = hand_of(n)
    hand.acquire(1)
    sent = 0
    while hand.flight:
        hand.deliver()
        sent += 1
    assert list(hand.inside) == [1]
    assert sent == 2 * (n - 1)


def test_a_node_enters_only_when_all_have_replied() -> None:
    hand = hand_of(3)
    hand.acquire(1)
    hand.deliver(0)  # REQUEST to 2
    hand.deliver(1)  # REPLY of 2
    assert not hand.inside
    hand.deliver_all()
    assert list(hand.inside) == [1]


def test_a_node_that_is_inside_defers_its_reply() -> None:
    hand = hand_of(2)
    hand.acquire(1)
    hand.deliver_all()
    hand.acquire(2)
    hand.deliver_all()
    assert hand.nodes[1].show()["reply_deferred"] == [2]
    hand.release(1)
    assert [flight.msg for flight in hand.flight] == [Reply()]
    hand.deliver_all()
    assert list(hand.inside) == [2]


def test_ids_break_the_tie_of_equal_sequence_numbers() -> None:
    hand = hand_of(2)
    hand.acquire(2)
    hand.acquire(1)
    assert [flight.msg for flight in hand.flight] == [Request(1), Request(1)]
    hand.deliver_all()
    assert list(hand.inside) == [1]


def test_the_sequence_number_is_past_the_highest_ever_seen() -> None:
    hand = hand_of(2)
    hand.step(2, "on_message", 1, Request(41))
    hand.acquire(2)
    assert hand.flight[-1].msg == Request(42)


def test_a_request_may_overtake_the_reply_to_the_one_before() -> None:
    hand = hand_of(2)
    hand.acquire(2)
    hand.acquire(1)  # same number, smaller id: 1 goes first
    hand.deliver(0)  # 2's REQUEST, deferred by 1
    hand.deliver(0)
    hand.deliver(0)
    hand.release(1)
    hand.acquire(1)
    assert [type(flight.msg) for flight in hand.flight] == [Reply, Request]
    hand.deliver(1)  # 1's new REQUEST comes before 1's REPLY: 2 asked earlier, so it defers
    assert not hand.inside
    hand.deliver_all()
    assert list(hand.inside) == [2]
    hand.release(2)
    hand.deliver_all()
    assert list(hand.inside) == [1]


def test_random_walks_meet_every_branch() -> None:
    assert walks(RicartAgrawala, range(100)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
    }
