"""Exhaustive checks of agreed rosters (check/rosters.py): bounds on what happens, every order of it, pinned counts."""

from __future__ import annotations

import pytest

from fairgate.check.rosters import CASES, RosterCase, explore_rosters

SMALL = {
    "a rival takes over": 23_980,
    "a short lease": 109_046,
}
LARGE = {
    "one leader excludes": 274_412,
    "the same, one message doubled": 157_106,
    "a slow clock": 1_997_696,
    "a rival wants another": 903_426,
    "a voter was replaced": 1_392_278,
}


def complete(case: RosterCase, states: int) -> None:
    report = explore_rosters(case)
    assert report.violations == ()
    assert report.complete
    assert report.states == states


@pytest.mark.parametrize("name", SMALL)
def test_rosters_agree_and_leases_end(name: str) -> None:
    complete(CASES[name], SMALL[name])


@pytest.mark.stress
@pytest.mark.parametrize("name", LARGE)
def test_rosters_agree_and_leases_end_in_larger_cases(name: str) -> None:
    complete(CASES[name], LARGE[name])
