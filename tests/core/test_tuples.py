"""A compiled simulator changes a tuple in place, or takes it out of its message, only if nothing else refers to it."""

from collections.abc import Callable
from sys import getrefcount

import pytest

from fairgate.core.message import Key, Message, decode
from fairgate.core.tuples import replaced, taken
from fairgate.protocols.fair_k import TokenLocations
from fairgate.sim.build import build
from fairgate.sim.config import Config


def test_a_tuple_that_is_referenced_elsewhere_stays_unchanged() -> None:
    held = tuple(range(5))
    others = [held]
    assert replaced(held, 3, 9) == (0, 1, 2, 9, 4)
    assert held == others[0] == (0, 1, 2, 3, 4)
    assert replaced(tuple(range(3)), 0, 7) == (7, 1, 2)


def test_an_index_out_of_range_is_refused() -> None:
    with pytest.raises(IndexError):
        replaced((1, 2), 2, 3)


def test_a_message_that_no_loop_delivers_keeps_its_tuple() -> None:
    message = TokenLocations((1, 2), 0)
    assert taken(message, message.a) == (1, 2)
    assert message.a == (1, 2)


def test_a_delivered_message_that_others_refer_to_keeps_its_tuple() -> None:
    """Fair-k takes the tuple out of a message while a simulator delivers it. Here a list has every message too."""
    engine = build(Config("fair_k", nodes=5, requests=5, rate=10.0, census_every=0))
    sent: list[tuple[Message, Key]] = []
    engine.begin()
    while engine.run(1):
        sent += [(message, message.key()) for message in engine.under_way()]
    assert engine.metrics.entries == 25
    assert [message.key() for message, _ in sent] == [key for _, key in sent]


@pytest.mark.parametrize("make", [TokenLocations, lambda a, b: decode(("fk.token_locations", a, b))])
def test_a_freed_message_keeps_none_of_its_fields(make: Callable[[tuple[int, ...], int], Message]) -> None:
    """Its memory goes to the pool of its class, and comes back with other fields."""
    held = tuple(range(5))
    before = getrefcount(held)
    for _ in range(3):
        messages = [make(held, i) for i in range(2000)]  # more than a pool keeps
        assert [message.key() for message in messages] == [("fk.token_locations", held, i) for i in range(2000)]
        del messages
        assert getrefcount(held) == before
