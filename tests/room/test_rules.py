"""Rules of the table that only show over time."""

from __future__ import annotations

from fairgate.room import links, rules, table
from fairgate.room.layout import (
    FAR,
    HEAD,
    LOOKS,
    NEAR,
    SKIPPED,
    STATE,
    TICK,
    TICKET,
)
from fairgate.room.rules import Request
from fairgate.room.table import Change
from fairgate.room.words import copied


def test_waiters_near_an_end_of_the_queue_tick_often() -> None:
    """Skipped waiters do not count, nor do the tickets of requests that gave up."""
    m = copied(bytes(8 * links.size(1, 60)))
    table.create(m, 1, 60, 1, 0, 0)
    change = Change(0, table.nobody_is_stopped)

    class Everybody:
        def is_gone(self, seat: int) -> bool:
            return False

        def is_stopped(self, seat: int) -> bool:
            return False

    def ask(owner: int) -> int:
        return rules.ask(m, change, Everybody(), Request(owner, owner, 1, 0, 1, 0))

    ask(1)
    skipped, first, second = ask(2), ask(3), ask(4)
    m[skipped + SKIPPED] = 1
    m[second + TICKET] += 10_000  # many requests between the two have given up
    assert m[HEAD] == skipped
    assert rules.duties(m, first, 0).when == TICK
    assert rules.duties(m, second, 0).when == 2 * TICK
    queue = [first, second, *[ask(number) for number in range(5, 60)]]
    places = [rules.duties(m, seat, 0).when // TICK - 1 for seat in queue]
    assert places[:NEAR] == list(range(NEAR))
    assert places[-NEAR:] == list(range(NEAR, 0, -1))
    assert places[NEAR:-NEAR] == list(range(NEAR, len(queue) - NEAR))
    assert [m[seat + LOOKS] for seat in queue] == [(1 + place) * TICK for place in places]
    m[queue[30] + TICKET] += 10_000
    assert rules.duties(m, queue[30], 0).when == (1 + FAR) * TICK


def test_those_that_look_again_are_woken_before_those_let_in() -> None:
    m = copied(bytes(8 * links.size(2, 4)))
    table.create(m, 2, 4, 2, 0, 0)
    seats = list(links.all_seats(m))
    for seat, state in zip(seats, (2, 2, 1, 3), strict=True):
        m[seat + STATE] = state
    assert table.in_order(m, seats) == [seats[2], seats[3], seats[1], seats[0]]
