"""`replaced`: the compiled version may change a tuple in place, but only if there is no other reference to it."""

import pytest

from fairgate.core.tuples import replaced


def test_a_tuple_that_is_referenced_elsewhere_stays_unchanged() -> None:
    held = tuple(range(5))
    others = [held]
    assert replaced(held, 3, 9) == (0, 1, 2, 9, 4)
    assert held == others[0] == (0, 1, 2, 3, 4)
    assert replaced(tuple(range(3)), 0, 7) == (7, 1, 2)


def test_an_index_out_of_range_is_refused() -> None:
    with pytest.raises(IndexError):
        replaced((1, 2), 2, 3)
