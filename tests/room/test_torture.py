"""Many processes at one gate that are killed and stopped at random (torture.py)."""

from __future__ import annotations

import pytest

from tests.room.torture import torture
from tests.room.versions import run_module

K = 3


@pytest.mark.parametrize("hunt", [False, True], ids=["at random", "in the middle of changes"])
def test_processes_are_killed_and_stopped(hunt: bool) -> None:
    outcome = torture(3.0, 8, K, seed=1, hunt=hunt)
    print(outcome)
    assert outcome.complaints(K) == []
    assert outcome.entries > 50
    assert outcome.kills > 5


def test_processes_that_keep_their_slots_are_killed() -> None:
    outcome = torture(3.0, 2, 1, seed=1, rests=True)
    print(outcome)
    assert outcome.complaints(1) == []
    assert outcome.kills > 5


@pytest.mark.stress
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
@pytest.mark.parametrize("hunt", [False, True], ids=["at random", "in the middle of changes"])
def test_processes_are_killed_and_stopped_for_a_minute(hunt: bool, plain: bool) -> None:
    said = run_module("torture", plain, "--seconds", "60", "--seed", "2", *["--hunt"] * hunt)
    print(said)
    assert not hunt or "rebuilt=0" not in said


@pytest.mark.stress
@pytest.mark.parametrize("hunt", [False, True], ids=["at random", "in the middle of changes"])
def test_processes_that_keep_their_slots_are_killed_for_a_minute(hunt: bool) -> None:
    print(run_module("torture", False, "--seconds", "60", "--processes", "3", "-k", "1", "--rests", *["--hunt"] * hunt))
