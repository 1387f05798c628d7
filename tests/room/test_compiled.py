"""The modules in use, which may be compiled, do the same as the plain ones, store by store and error by error."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from fairgate.room import links, rules, table
from fairgate.room.layout import DIRTY, INSIDE, PID, STATE, TICKET, K
from fairgate.room.words import copied
from tests.room import plain

CAPACITY, SEATS = 5, 12
HUGE = 1 << 62


class Senses:
    """Every third process is dead, and every fourth is stopped."""

    def __init__(self, m: Any) -> None:
        self.m = m

    def is_gone(self, seat: int) -> bool:
        return bool(self.m[seat + PID] % 3 == 0)

    def is_stopped(self, seat: int) -> bool:
        return bool(self.m[seat + PID] % 4 == 0)


class Side:
    """One table, and the modules that change it."""

    def __init__(self, m: Any, rules: ModuleType, table: ModuleType, links: ModuleType) -> None:
        self.m, self.rules, self.table, self.links = m, rules, table, links
        table.create(m, CAPACITY, SEATS, 3, 7, 1)

    def do(self, rng: random.Random, now: int) -> tuple[Any, ...]:
        """One random change: what it returned or raised, whom it wakes, and the table afterwards."""
        senses = Senses(self.m)
        change = self.table.Change(now, senses.is_stopped)
        taken = [seat for seat in self.links.all_seats(self.m) if self.m[seat + STATE]]
        seat = rng.choice(taken) if taken else 0
        what, pid = rng.randrange(10), rng.randrange(1, 100)
        outcome: Any = None
        try:
            if self.m[DIRTY]:
                self.table.rebuild(self.m, change)
            if what < 4 or not seat:
                lease = rng.choice([0, 0, 50, HUGE])
                request = self.rules.Request(pid, pid, 1, 0, rng.randrange(1, self.m[K] + 1), lease)
                outcome = self.rules.ask(self.m, change, senses, request)
            elif what < 7:
                self.rules.leave(self.m, change, seat, self.m[seat + TICKET])
            elif what == 7:
                self.rules.look(self.m, change, senses, seat, {self.m[seat + PID]}, rng.random() < 0.5)
                outcome = self.rules.duties(self.m, seat, now).owners if self.m[seat + STATE] != INSIDE else None
            elif what == 8:
                outcome = self.rules.resize(self.m, change, senses, rng.randrange(1, CAPACITY + 1))
            else:
                outcome = self.rules.revoke(self.m, change, rng.randrange(-1, CAPACITY + 1))
        except Exception as wrong:
            outcome = type(wrong).__name__
        return outcome, change.woken, list(self.m)


def both() -> tuple[Side, Side]:
    size = links.size(CAPACITY, SEATS)
    used = Side(copied(bytes(8 * size)), rules, table, links)
    return used, Side([0] * size, plain.rules, plain.table, plain.links)


def test_random_changes_have_the_same_result() -> None:
    for seed in range(30):
        used, reference = both()
        for step in range(200):
            number = 1000 * seed + step
            outcomes = [side.do(random.Random(number), 10_000_000 * step) for side in (used, reference)]
            assert outcomes[0] == outcomes[1], f"seed {seed}, step {step}"


def test_words_outside_of_a_table_are_refused() -> None:
    m = copied(bytes(8 * links.size(1, 2)))
    for at in (len(m), 1 << 40, -(1 << 40)):
        with pytest.raises(IndexError):
            m[at]
        with pytest.raises(IndexError):
            m[at] = 0
    with pytest.raises((OverflowError, ValueError, TypeError)):
        m[0] = 1 << 63
