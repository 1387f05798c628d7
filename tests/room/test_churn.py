"""A gate that is closed, broken, forked, resized and left while others enter (churn.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.room.churn import Entry, judge
from tests.room.versions import run_module

FIRST = Entry(pid=1, user=0, number=1, entered=10, last=20, fence=5, slots=0b01)


def second(**different: int) -> Entry:
    """Another entry, right behind the first one."""
    return replace(FIRST, **{"pid": 2, "entered": 20, "last": 30, "fence": 6, **different})


def test_entries_one_after_the_other_are_fine() -> None:
    outcome = judge([FIRST, second()], 1)
    assert outcome.complaints(1) == []
    assert (outcome.entries, outcome.users, outcome.most_inside) == (2, 2, 1)


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (second(fence=5), "one fence twice"),
        (second(fence=5, last=0), "one fence twice"),
        (second(entered=19), "one slot twice"),
        (second(entered=19, slots=0b11), "one slot twice"),
        (second(entered=19, slots=0b110), "3 slots of 2 were taken"),
        (second(entered=71_000_000_000, last=71_000_000_001), "the gate stood still for 71 s"),
    ],
)
def test_the_judge_finds(other: Entry, complaint: str) -> None:
    assert any(each.startswith(complaint) for each in judge([FIRST, other], 2).complaints(2))


def test_a_permit_that_was_never_seen_valid_was_nowhere() -> None:
    assert judge([FIRST, second(entered=15, last=0)], 1).complaints(1) == []


def test_for_a_moment() -> None:
    """Without the acts that end requests of this process."""
    said = run_module("churn", True, "--seconds", "2", "--acts", "break,lease,cancel,resize,several")
    print(said)


@pytest.mark.stress
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
@pytest.mark.parametrize("acts", ["close,leave", "break,fork,lease,cancel,resize,several"])
def test_for_a_minute(acts: str, plain: bool) -> None:
    print(run_module("churn", plain, "--seconds", "60", "--acts", acts))


@pytest.mark.stress
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
def test_everything_for_a_minute(plain: bool) -> None:
    print(run_module("churn", plain, "--seconds", "60"))
