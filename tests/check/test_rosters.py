"""Exhaustive checks of agreed rosters (check/rosters.py): bounds on what happens, every order of it, pinned counts."""

from __future__ import annotations

import pytest

from fairgate.check.roster_cases import CASES, RosterCase
from fairgate.check.rosters import explore_rosters

SMALL = {
    "a rival and a newcomer": 1_542,
    "a rival takes over": 3_661,
    "a short lease": 4_787,
    "one leader excludes": 9_212,
    "a rival takes over, one message doubled": 16_718,
    "a voter leaves": 25_803,
    "five voters, and a leader that is told": 29_368,
}
LARGE = {
    "a voter was replaced": 47_215,
    "voters are added": 52_839,
    "a slow clock": 56_071,
    "a rival wants another": 94_347,
    "one voter is left": 73_501,
    "a newcomer is excluded": 96_626,
    "a rival goes on": 113_495,
    "a rival and a beat": 131_953,
    "two beats": 138_642,
    "a rival wants another, one message doubled": 460_824,
    "suspected by a majority": 405_010,
    "a newcomer is excluded, one message doubled": 730_181,
    "a slow clock, two beats": 1_190_918,
    "two rivals": 1_405_251,
}


def test_every_case_has_a_count() -> None:
    assert {*SMALL, *LARGE} == CASES.keys()


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
