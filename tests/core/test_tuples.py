"""A tuple changed in one place: the compiled twin may change a tuple that nobody else holds, and only that."""

import pytest

from fairgate.core.tuples import replaced


def test_who_holds_a_tuple_keeps_it_as_it_is() -> None:
    held = tuple(range(5))
    others = [held]
    assert replaced(held, 3, 9) == (0, 1, 2, 9, 4)
    assert held == others[0] == (0, 1, 2, 3, 4)
    assert replaced(tuple(range(3)), 0, 7) == (7, 1, 2)


def test_a_place_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError):
        replaced((1, 2), 2, 3)
