"""Sigma with leases in the checker: one replica, at node 0, and two clients whose clocks run at different rates."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.numbers import COMPILED
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.protocol import Sigma
from tests.support.dht_check import explored

STATES = 4_000 if not COMPILED else 40_000  # how much is explored of a case that is too large for a test
HALF = 500_000  # parts per million
LEASED: dict[str, Any] = {
    "nodes": 2,
    "clients": 2,
    "replicas": 1,
    "quorum": 1,
    "options": {"lease": SECOND, "drift": HALF},
}


class DriftCountsAsWait(Sigma):
    def less_drift(self, waited: int) -> int:
        return waited


@pytest.mark.parametrize(("rates", "states"), [((0, 0), 14_473), ((HALF, 0), 13_359), ((0, HALF), 13_029)])
def test_no_lease_is_too_long_if_clocks_differ_by_the_drift(rates: tuple[int, int], states: int) -> None:
    report = explored(Sigma, ticks=3, rates=rates, **LEASED)
    assert (report.violations, report.complete, report.states) == ((), True, states)


@pytest.mark.parametrize("rates", [(HALF, 0), (0, HALF)])
def test_no_violation_in_the_first_states_with_two_requests_each(rates: tuple[int, int]) -> None:
    assert not explored(Sigma, ticks=3, rates=rates, requests=2, most_states=STATES, **LEASED).violations


def test_a_wait_on_a_fast_clock_makes_a_lease_too_long() -> None:
    report = explored(DriftCountsAsWait, ticks=3, rates=(HALF, 0), requests=2, **LEASED)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["k"]
