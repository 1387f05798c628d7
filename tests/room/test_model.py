"""Every state of small rooms. The counts are pinned: a change of them must be explained."""

from __future__ import annotations

import pytest

from tests.room.model import Case, Model

SMALL = {
    "two processes, two deaths": (Case(2, 1, deaths=2), (4_504, 2_614)),
    "a death": (Case(3, 1, deaths=1), (9_370, 2_593)),
    "a death, two slots": (Case(3, 2, deaths=1), (20_815, 5_317)),
    "cancels and leases": (Case(3, 1, cancels=2), (1_712, 581)),
    "a stop": (Case(3, 1, entries=2, stops=1), (18_629, 5_765)),
    "several permits at once": (Case(3, 2, cancels=1, deaths=1, permits=(1, 2, 1)), (57_818, 13_147)),
    "k is changed": (Case(3, 1, resizes=2, capacity=3), (2_250, 855)),
    "four processes": (Case(4, 2, cancels=1), (56_577, 8_217)),
}
LARGE = {
    "two deaths": (Case(3, 1, deaths=2), (185_623, 37_282)),
    "two deaths and a cancel": (Case(3, 1, deaths=2, cancels=1), (821_781, 151_659)),
    "two deaths and a cancel, two slots": (Case(3, 2, deaths=2, cancels=1), (1_236_507, 202_425)),
    "a stop and a death": (Case(3, 1, stops=1, deaths=1), (40_829, 12_320)),
    "two stops and a death": (Case(3, 1, stops=2, deaths=1), (90_696, 27_348)),
    "k is changed, a death": (Case(3, 1, resizes=1, capacity=2, deaths=1), (89_249, 14_861)),
    "k is changed twice, a death": (Case(3, 1, resizes=2, capacity=3, deaths=1), (457_236, 84_171)),
    "several permits, two deaths": (Case(3, 2, deaths=2, permits=(2, 1, 1)), (305_469, 60_549)),
    "four processes, a death": (Case(4, 1, deaths=1), (288_308, 33_208)),
    "four processes, a death, two slots": (Case(4, 2, deaths=1), (2_700_019, 108_947)),
}


@pytest.mark.parametrize("name", SMALL)
def test_nothing_breaks(name: str) -> None:
    case, counts = SMALL[name]
    found = Model(case).explore()
    assert (found.states, found.calm) == counts


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LARGE)
def test_nothing_breaks_in_larger_rooms(name: str) -> None:
    case, counts = LARGE[name]
    found = Model(case).explore()
    assert (found.states, found.calm) == counts
