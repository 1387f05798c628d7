"""What a history shows: slots that were used twice, fences that fall, slots that stay free."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairgate.torture.history import SECOND, Absence, Gap, History, gaps, overtakes, violations
from fairgate.torture.run import read

GOOD = """
a asks 0
a enters 1 0 10
b asks 2
a uses 3
a leaves 4
b enters 5 0 11
b uses 6
b leaves 7
"""


def history(text: str) -> History:
    found = History()
    for line in text.strip().splitlines():
        found.told(line)
    return found


def test_one_after_the_other_is_as_it_should_be() -> None:
    assert violations(history(GOOD), 1) == []


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("b uses 6", "a uses 6", "a used slot 0"),
        ("b enters 5 0 11", "b enters 5 0 10", "fence 10 and then with 10"),
        ("b enters 5 0 11", "b enters 5 1 11", "b was in slot 1 of 1"),
    ],
)
def test_what_must_never_happen_is_found(old: str, new: str, what: str) -> None:
    text = GOOD.replace(old, new)
    if new.startswith("a uses"):
        text = text.replace("a leaves 4\n", "")
    assert any(what in wrong for wrong in violations(history(text), 1))


def test_too_many_inside_are_counted() -> None:
    text = "a asks 0\nb asks 0\na enters 1 0 1\nb enters 2 1 1\na uses 5\nb uses 5\n"
    assert violations(history(text), 2) == []
    assert "2 guests were inside at 2" in violations(history(text), 1)


def test_a_late_use_is_found_even_if_others_came_in_between() -> None:
    text = "a asks 0\nb asks 0\nc asks 0\na enters 1 0 1\nb enters 2 0 2\nb leaves 3\nc enters 4 0 3\na uses 9\n"
    found = [wrong for wrong in violations(history(text), 3) if "used slot 0" in wrong]
    assert len(found) == 2


def test_who_has_lost_a_permit_is_no_longer_inside() -> None:
    text = GOOD.replace("a leaves 4", "a loses 4")
    found = history(text)
    assert violations(found, 1) == []
    assert [visit.lost for visit in found.visits] == [True, False]


def test_a_free_slot_counts_only_while_somebody_waits() -> None:
    found = history(GOOD)
    assert gaps(found, 1, 0, 10) == [Gap(0, 1), Gap(4, 5)]
    assert gaps(found, 2, 0, 10) == [Gap(0, 1), Gap(2, 5)]  # a second slot was free while b waited
    assert Gap(0, SECOND).seconds == 1


def test_a_guest_that_was_killed_neither_waits_nor_is_inside() -> None:
    found = history("a asks 0\na enters 1 0 1\nb asks 2\nc asks 3\n")
    found.end("a", 4)
    found.end("b", 5)
    assert gaps(found, 1, 0, 10) == [Gap(0, 1), Gap(4, 10)]


def test_part_of_a_line_is_ignored(tmp_path: Path) -> None:
    """Guests that are killed leave it behind, and the next one may write right after it."""
    results = tmp_path / "results"
    results.write_text("\na asks 0 .\n\nb as\na enters 1 0 10 .\n\na uses 1\na uses 3 .\n\na leaves 4")
    found = read(results, [("a", 9)])
    assert [(visit.asked, visit.entered, visit.used, visit.over) for visit in found.visits] == [(0, 1, 3, 9)]


def test_overtakes_are_counted() -> None:
    assert overtakes(history(GOOD)) == 0
    assert overtakes(history("a asks 0\nb asks 1\nb enters 2 0 1\nb leaves 3\na enters 4 0 2\n")) == 1


def test_who_cannot_be_served_does_not_count_as_waiting() -> None:
    found = history("host1-a asks 0\nhost2-b asks 2\n")
    away = [Absence("host1-", 1, 4), Absence("host2-b", 3)]
    assert gaps(found, 1, 0, 10, away) == [Gap(0, 1), Gap(2, 3), Gap(4, 10)]
    assert gaps(found, 1, 0, 10, [Absence("host", 1)]) == [Gap(0, 1)]


STOPPED = """
a asks 0
b asks 1
a enters 1 0 10
c asks 2
a leaves 3
c enters 8 0 12
c leaves 9
"""


def test_a_guest_that_is_stopped_as_it_is_let_in_keeps_its_slot() -> None:
    """Fence 11 is missing: b had it, and says nothing until it continues."""
    stopped = [Absence("b", 4, 7)]
    assert gaps(history(STOPPED), 1, 0, 9, stopped) == [Gap(0, 1), Gap(7, 8)]
    assert gaps(history(STOPPED.replace(" 12", " 11")), 1, 0, 9, stopped) == [Gap(0, 1), Gap(3, 8)]
    assert gaps(history(STOPPED), 1, 0, 9, [Absence("d", 4, 7)]) == [Gap(0, 1), Gap(3, 8)]
