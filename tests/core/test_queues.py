"""Sorted queues of requests, compared with `bisect` and `sorted`."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from fairgate.core.queues import is_before, place_in, put

NUMBERS = st.integers(-3, 3) | st.integers(-(2**62), 2**62)
ASKED = st.tuples(NUMBERS, NUMBERS, NUMBERS)


@given(ASKED, ASKED)
def test_is_before_orders_like_tuples(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert is_before(a, b) == (a < b)


@given(st.lists(ASKED), ASKED)
def test_place_in_agrees_with_bisect(queue: list[tuple[int, ...]], asked: tuple[int, ...]) -> None:
    queue.sort()
    assert place_in(queue, asked) == bisect_left(queue, asked)


@given(st.lists(ASKED))
def test_a_queue_is_sorted_and_contains_each_request_once(asked: list[tuple[int, ...]]) -> None:
    queue: list[tuple[int, ...]] = []
    for one in asked:
        put(queue, one)
    assert queue == sorted(set(asked))
