"""Intervals of means and of shares."""

from __future__ import annotations

import pytest

from fairgate.lab.statistics import (
    estimate,
    estimate_share,
    estimates,
    mean_and_margin,
    share_interval,
    wait_distribution,
)
from fairgate.lab.sweeps import SHARES


def test_a_mean_has_the_margin_of_students_distribution() -> None:
    assert mean_and_margin([1.0, 2.0, 3.0]) == pytest.approx((2.0, 2.484), abs=1e-3)
    assert estimate([354.5, 354.7], "s") == "354.6 ± 1.3 s"
    assert estimate([354.6], "s") == "354.6 s"
    assert estimates({"fair_k": [0.5], "bv95": [42.0, 42.4]}) == "fair_k 0.5, bv95 42.2 ± 2.5"


def test_a_distribution_of_waits_has_the_mean_of_each_quantile() -> None:
    rows = [{"wait_shares": [0.0] * SHARES + [longest]} for longest in (1.0, 3.0)]
    drawn = wait_distribution(rows, least=0.1, scale=10)
    assert drawn[0] == (0.1, 0.0, 0.0)
    assert drawn[-1] == (20.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"), [(200, 200, 0.981, 1.0), (0, 20, 0.0, 0.161), (5, 10, 0.237, 0.763)]
)
def test_a_share_has_wilsons_interval(successes: int, trials: int, low: float, high: float) -> None:
    assert share_interval(successes, trials) == pytest.approx((low, high), abs=1e-3)


def test_a_share_is_written_with_its_interval_even_if_all_succeeded() -> None:
    assert estimate_share([1.0] * 200) == "1.000 (0.981 to 1.000)"
