"""Many processes at one gate that are killed and stopped at random (torture.py)."""

from __future__ import annotations

import pytest

from tests.room.torture import LONGEST_STOP, Outcome, torture

K = 3


def judge(outcome: Outcome) -> None:
    print(outcome)
    assert outcome.most_inside <= K
    assert outcome.unfair == 0
    assert outcome.unserved == 0
    assert outcome.longest_gap < LONGEST_STOP / 1e9


@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slowed down"])
def test_processes_are_killed_and_stopped(slow: bool) -> None:
    outcome = torture(3.0, 8, K, seed=1, slow=slow)
    judge(outcome)
    assert outcome.entries > 50
    assert outcome.kills > 5


@pytest.mark.stress
@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slowed down"])
def test_processes_are_killed_and_stopped_for_a_minute(slow: bool) -> None:
    outcome = torture(60.0, 12, K, seed=2, slow=slow)
    judge(outcome)
    assert outcome.kills > 300
    assert outcome.stops > 100
    assert outcome.rebuilt > 0 or not slow
