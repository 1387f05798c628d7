"""Slots and Waiting: random operations on the module in use and on plain Python's containers give the same results."""

from __future__ import annotations

import random

import pytest

from fairgate.core.ids import NIL
from fairgate.core.slots import Slots
from fairgate.core.waiting import Waiting


@pytest.mark.parametrize("seed", range(20))
def test_slots_are_an_ordered_set(seed: int) -> None:
    rng = random.Random(seed)
    slots, model = Slots(), list[int]()
    for _ in range(500):
        slot = rng.randrange(rng.choice([3, 40]))
        match rng.randrange(5):
            case 0 | 1:
                slots.add(slot)
                model += [] if slot in model else [slot]
            case 2:
                slots.remove(slot)
                model = [each for each in model if each != slot]
            case 3 if model:
                assert slots.take_first() == model.pop(0)
            case 4 if model:
                assert slots.take_last() == model.pop()
        assert (slots.key(), slots.count) == (tuple(model), len(model))
        assert slots.has(slot) == (slot in model)
        assert not model or slots.first() == model[0]
        if rng.random() < 0.1:
            slots = rng.choice([slots.copy(), Slots.from_key(slots.key())])


def test_an_empty_set_of_slots_has_no_first() -> None:
    for method in (Slots().first, Slots().take_first, Slots().take_last):
        with pytest.raises(IndexError):
            method()


@pytest.mark.parametrize("slot", [-1, 1 << 20, 1 << 40])
def test_slots_have_bounds(slot: int) -> None:
    with pytest.raises(ValueError, match=f"slot {slot} is not between"):
        Slots.from_key((slot,))
    assert not Slots().has(slot)


@pytest.mark.parametrize("seed", range(20))
def test_waiting_keeps_requests_in_order_and_knows_the_others(seed: int) -> None:
    rng = random.Random(seed)
    waiting, order, known = Waiting(), list[int](), dict[int, tuple[int, int]]()
    for _ in range(2000):
        r = rng.choice([rng.randrange(300), rng.randrange(5), (1 << 62) + rng.randrange(9)])
        match rng.randrange(6):
            case 0 | 1 if r not in known:
                waiting.add(r, r % 7)
                order.append(r)
                known[r] = (r % 7, NIL)
            case 2 if r in known:
                assert waiting.promise(r, 3) == r % 7
                known[r] = (r % 7, 3)
            case 3:
                first = waiting.take_first()
                assert first == (order.pop(0) if order else NIL)
                if first != NIL and rng.random() < 0.8:
                    waiting.forget(first)
                    del known[first]
            case 4:
                waiting.remove(r)
                order = [each for each in order if each != r]
            case 5 if r in known and r not in order:
                waiting.forget(r)
                del known[r]
        assert (waiting.number(r), waiting.slot(r)) == known.get(r, (NIL, NIL))
        assert (waiting.nodes(), waiting.known) == (tuple(order), len(known))
        if rng.random() < 0.02:
            waiting = waiting.copy()
    assert waiting.key() == tuple([(r, r % 7) for r in order])
    assert Waiting.from_key(waiting.key()).key() == waiting.key()
    assert {r: (waiting.number(r), waiting.slot(r)) for r in known} == known


def test_unknown_requests_and_negative_numbers_are_errors() -> None:
    for wrong in (lambda: Waiting().forget(1), lambda: Waiting().promise(1, 0)):
        with pytest.raises(KeyError):
            wrong()
    with pytest.raises(ValueError, match="negative number"):
        Waiting.from_key(((1, -1),))
