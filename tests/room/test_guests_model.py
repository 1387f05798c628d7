"""Every state of small rooms with guests. The counts are pinned: a change of them must be explained."""

from __future__ import annotations

import pytest

from tests.room.explore_guests import explore
from tests.room.guests import Case

SMALL = {
    "two guests": (Case(2, 1), (400, 36)),
    "a death": (Case(2, 1, deaths=1), (11_922, 536)),
    "a guest gives up": (Case(2, 1, entries=(2, 1), cancels=1), (8_494, 213)),
    "a guest is stopped": (Case(2, 1, stops=1), (2_221, 215)),
    "the peer dies, is stopped, or leaves": (Case(2, 1, starts=2, halts=1, lapses=1), (31_726, 2_807)),
}
LARGE = {
    "three guests": (Case(3, 2), (80_075, 1_178)),
    "a death, two slots": (Case(2, 2, deaths=1), (40_240, 1_054)),
    "a guest gives up, three guests": (Case(3, 1, cancels=1), (138_089, 1_050)),
    "a guest is stopped, three guests": (Case(3, 1, stops=1), (103_146, 2_842)),
    "the peer ends twice, and two leases": (Case(2, 1, starts=2, halts=2, lapses=2), (306_240, 32_899)),
    "the peer ends, and a guest dies": (Case(2, 1, starts=2, halts=1, lapses=1, deaths=1), (641_020, 49_331)),
    "the peer ends, a guest gives up, two slots": (
        Case(2, 2, starts=2, halts=1, lapses=1, cancels=1),
        (219_988, 12_431),
    ),
    "one gives up, one dies": (Case(2, 1, entries=(2, 1), cancels=1, deaths=1), (218_978, 3_248)),
    "one is stopped, one dies, one gives up": (Case(2, 1, stops=1, deaths=1, cancels=1), (215_578, 6_492)),
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
