"""Mutants of fairgate.room.keeping: some order of the memory accesses must show what is wrong."""

from __future__ import annotations

import pytest

from tests.mutants.test_room import Mutant, applied
from tests.room.model import Case as TableCase
from tests.room.orders import BrokenOrder, Case, explore

UNUSED = TableCase(1, 1)
ONE, AGAIN, DEATH = Case((1, 1)), Case((2, 2)), Case((1, 1), deaths=1)

MUTANTS = {
    "one that enters again does not look whether that has ended": (" or m[ENDINGS] != endings:", ":", ONE),
    "one that leaves does not look whether that has ended": (" and m[ENDINGS] == endings\n", "\n", ONE),
    "an ending is not counted": ("    m[ENDINGS] = m[ENDINGS] + 1 if 0 <= m[ENDINGS] < LIMIT else 1\n", "", ONE),
    "there is no barrier": ("    barrier()\n", "", ONE),
    "what is kept is read before the ending is counted": (
        "    m[ENDINGS] = m[ENDINGS] + 1 if 0 <= m[ENDINGS] < LIMIT else 1\n    barrier()\n    kept = m[KEPT]\n",
        "    kept = m[KEPT]\n    m[ENDINGS] = m[ENDINGS] + 1\n    barrier()\n",
        ONE,
    ),
    "one that rests keeps its slot": ("if kept & 1 == RESTS:", "if False:", ONE),
    "one that is inside loses its slot": ("if kept & 1 == RESTS:", "if True:", ONE),
    "the fences that were used are forgotten": ("        m[LAST_FENCE] = max(m[LAST_FENCE], fence)\n", "", ONE),
    "what another one keeps is taken for one's own": (
        "if not swap(m, KEPT, 2 * fence + RESTS, ",
        "if not swap(m, KEPT, m[KEPT], ",
        Case((1, 2)),
    ),
    "an entry does not change the word": ("2 * fence + 2 + IS_INSIDE)", "2 * fence + RESTS)", ONE),
    "the end of an ending comes too early": (
        "    seat, fence = m[KEPT_SEAT], kept >> 1\n",
        "    seat, fence = m[KEPT_SEAT], kept >> 1\n    m[KEPT] = 0\n",
        DEATH,
    ),
    "one that others wait for keeps its slot": ("m[HEAD] == 0\n        and ", "", AGAIN),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", MUTANTS)
def test_an_order_shows_it(name: str) -> None:
    old, new, case = MUTANTS[name]
    with applied(Mutant("keeping", old, new, UNUSED)), pytest.raises(BrokenOrder):
        explore(case)
