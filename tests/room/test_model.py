"""Every state of small rooms. The counts are pinned: a change of them must be explained."""

from __future__ import annotations

import pytest

from tests.room.explore import explore
from tests.room.model import Case

SMALL = {
    "two processes, two deaths": (Case(2, 1, deaths=2), (4_043, 2_359)),
    "a death": (Case(3, 1, deaths=1), (8_128, 2_353)),
    "a death, two slots": (Case(3, 2, deaths=1), (14_713, 4_381)),
    "a death, two slots, heads are not told": (Case(3, 2, deaths=1, throttled=True), (11_833, 4_267)),
    "cancels and leases": (Case(3, 1, cancels=2), (1_777, 616)),
    "a stop": (Case(3, 1, entries=(2, 2, 2), stops=1), (22_859, 7_205)),
    "several permits at once": (Case(3, 2, cancels=1, deaths=1, permits=(1, 2, 1)), (49_246, 12_403)),
    "k is changed": (Case(3, 1, resizes=2, capacity=3), (2_250, 855)),
    "k is changed, several permits at once": (Case(3, 2, resizes=2, permits=(1, 2, 1)), (746, 340)),
    "a permit is revoked": (Case(3, 2, revokes=2), (2_249, 863)),
    "four processes": (Case(4, 2, cancels=1), (42_397, 7_213)),
}
LARGE = {
    "two deaths": (Case(3, 1, deaths=2), (157_348, 33_238)),
    "two deaths and a cancel": (Case(3, 1, deaths=2, cancels=1), (758_020, 150_967)),
    "two deaths and a cancel, two slots": (Case(3, 2, deaths=2, cancels=1), (754_773, 163_431)),
    "two deaths, two slots, heads are not told": (Case(3, 2, deaths=2, throttled=True), (220_654, 61_657)),
    "a stop and a death": (Case(3, 1, stops=1, deaths=1), (36_462, 11_226)),
    "a stop and a death of one that comes again": (Case(3, 1, stops=1, deaths=1, entries=(2, 1, 1)), (137_097, 36_876)),
    "two stops and a death": (Case(3, 1, stops=2, deaths=1), (81_887, 25_049)),
    "a stop and a death, two slots": (Case(3, 2, stops=1, deaths=1), (56_725, 17_593)),
    "k is changed, a death": (Case(3, 1, resizes=1, capacity=2, deaths=1), (72_611, 13_520)),
    "k is changed by a fourth process, a death": (
        Case(4, 1, resizes=1, capacity=2, deaths=1, entries=(1, 1, 1, 0)),
        (209_426, 16_067),
    ),
    "k is changed twice, a death": (Case(3, 1, resizes=2, capacity=3, deaths=1), (366_201, 76_926)),
    "several permits, two deaths": (Case(3, 2, deaths=2, permits=(2, 1, 1)), (246_082, 51_951)),
    "several permits, k is changed, a death": (Case(3, 2, deaths=1, resizes=1, permits=(1, 2, 1)), (32_330, 8_638)),
    "a permit is revoked, a death": (Case(3, 2, deaths=1, revokes=1), (95_282, 22_430)),
    "four processes, a death": (Case(4, 1, deaths=1), (246_900, 29_724)),
    "four processes, a death, two slots": (Case(4, 2, deaths=1), (1_859_187, 86_379)),
    "four processes, a death, two slots, heads are not told": (Case(4, 2, deaths=1, throttled=True), (763_283, 78_479)),
}


@pytest.mark.parametrize("name", SMALL)
def test_nothing_breaks(name: str) -> None:
    case, counts = SMALL[name]
    found = explore(case)
    assert (found.states, found.calm) == counts


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LARGE)
def test_nothing_breaks_in_larger_rooms(name: str) -> None:
    case, counts = LARGE[name]
    found = explore(case)
    assert (found.states, found.calm) == counts
