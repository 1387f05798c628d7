"""Random walks of agreed rosters on a network and with clocks that fail in every way (walks/rosters.py)."""

from __future__ import annotations

import pytest

from fairgate.walks.rosters import FIVE, TROUBLES, roster_walks

OUTCOMES = {"versions", "applied", "denied", "excluded", "turned away", "stopped", "leaders"}


def test_rosters_survive_everything_that_can_fail() -> None:
    seen = roster_walks(range(60))
    assert {*TROUBLES, *OUTCOMES} <= seen.keys()
    assert seen["no majority"] < 12


def test_five_voters() -> None:
    seen = roster_walks(range(FIVE, FIVE + 30))
    assert {*TROUBLES, *OUTCOMES} <= seen.keys()


@pytest.mark.parametrize("seed", [FIVE + 9_185, FIVE + 10_725])
def test_walks_that_broke_a_promise_once(seed: int) -> None:
    """The first chose several versions in one step; in the second only new members knew the latest roster."""
    roster_walks([seed])


@pytest.mark.stress
@pytest.mark.parametrize("part", range(10))
def test_many_walks(part: int) -> None:
    roster_walks(range(1000 * part, 1000 * (part + 1)))
    roster_walks(range(FIVE + 1500 * part, FIVE + 1500 * (part + 1)))
