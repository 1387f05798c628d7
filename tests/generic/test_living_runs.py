"""DHT protocols on overlays that maintain themselves: small random runs with joins, orderly leaves and crashes.

At most one node is inside (with leases, not counting lost permits), and every live node gets in.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fairgate.protocols.sigma.replica import DRIFT
from fairgate.registry import PROTOCOLS
from fairgate.scenario.manual import Violation
from fairgate.walks.dht import SECOND, Conditions
from fairgate.walks.living import LEASE, LIVING, UNTITLED, one_run

CALM = Conditions(requests=5, joins=2, leaves=2, until=5 * SECOND)
CRASHES = Conditions(requests=5, joins=1, leaves=1, crashes=1, until=5 * SECOND)
WORSE = Conditions(requests=5, joins=1, crashes=1, resets=1, loss=0.05, dup=0.05, until=5 * SECOND)
LENT = {"lease": LEASE, "overlay_wait": LEASE + LEASE // 50}  # a lease, plus a margin for drift
KEPT = {"overlay_wait": 60 * SECOND}  # no leases: the overlay waits for any node that may be alive
OPTIONS: dict[str, dict[str, Any]] = {
    "sigma": {**LENT, "retry": 100},
    "strawman": LENT,
    "e2e": KEPT,
    "e2e_ft": {**LENT, "ping": SECOND},
    "non_e2e": KEPT,
    "non_e2e_faults": LENT,
}
SURVIVE = ("sigma", "strawman", "e2e_ft", "non_e2e_faults")
DRIFTING = ("sigma", "strawman")  # those that also run with a clock per node
SHORT, LONG = 20, 200
WEATHERS = {"calm": CALM, "crashes": CRASHES, "worse": WORSE}


def all_is_well(overlay: str, protocol: str, conditions: Conditions, seeds: Iterable[int]) -> set[str]:
    marks: set[str] = set()
    if protocol in DRIFTING:
        conditions = replace(conditions, drift=DRIFT)
    for seed in seeds:
        told = one_run(LIVING[overlay], PROTOCOLS[protocol], seed, conditions, OPTIONS[protocol])
        assert told.kinds["ov.estate"]
        marks |= told.marks
    return marks


@pytest.mark.parametrize("overlay", LIVING)
@pytest.mark.parametrize("protocol", OPTIONS)
def test_joins_and_leaves(protocol: str, overlay: str) -> None:
    marks = all_is_well(overlay, protocol, CALM, range(SHORT))
    assert "a message waited for the title of its key" in marks
    if OPTIONS[protocol] is KEPT:  # with leases the wait is three periods, and on Chord a change may take longer
        assert "a title was made anew" not in marks


@pytest.mark.parametrize("overlay", LIVING)
@pytest.mark.parametrize("protocol", SURVIVE)
def test_crashes(protocol: str, overlay: str) -> None:
    assert "a title was made anew" in all_is_well(overlay, protocol, CRASHES, range(SHORT))


@pytest.mark.stress
@pytest.mark.parametrize("conditions", WEATHERS)
@pytest.mark.parametrize("overlay", LIVING)
@pytest.mark.parametrize("protocol", OPTIONS)
def test_many(protocol: str, overlay: str, conditions: str) -> None:
    if conditions == "calm" or protocol in SURVIVE:
        all_is_well(overlay, protocol, WEATHERS[conditions], range(SHORT, LONG))


@pytest.mark.parametrize(("overlay", "seed"), [("chord", 357), ("pastry", 137)])
def test_without_titles_two_are_inside(overlay: str, seed: int) -> None:
    """Two nodes both believe that they own a key, and the second does not have the first one's state."""
    with pytest.raises(Violation, match="2 inside"):
        one_run(UNTITLED[overlay], PROTOCOLS["e2e"], seed, CALM, KEPT)
    one_run(LIVING[overlay], PROTOCOLS["e2e"], seed, CALM, KEPT)
