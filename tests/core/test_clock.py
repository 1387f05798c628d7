"""Clocks that run at their own rate."""

import random

import pytest

from fairgate.check.case import Case
from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.model import Model
from fairgate.core.clock import MILLION, Clock, drawn_clock
from fairgate.core.units import SECOND
from fairgate.errors import BadInput
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

HALF = 500_000  # parts per million


def test_a_timer_is_never_early_and_at_most_a_nanosecond_late() -> None:
    rng = random.Random(1)
    for _ in range(200):
        clock = drawn_clock(HALF, 10**15, rng.randrange)
        due = clock.offset + rng.randrange(10**12)
        at = clock.time(due)
        assert clock.reading(at) >= due
        assert clock.reading(at - 2) < due


def test_drawn_clocks_include_the_slowest_and_the_fastest() -> None:
    rng = random.Random(1)
    rates = {drawn_clock(HALF, 0, rng.randrange).ahead for _ in range(50)}
    assert {0, HALF} < rates
    assert max(rates) == HALF


def explored(rates: tuple[int, ...], drift: int) -> CheckReport:
    case = Case("leased", nodes=2, ticks=6, rates=rates, options={"lease": 2 * SECOND, "drift": drift})
    return Explorer(case, Model(case)).run()


@pytest.mark.parametrize("rates", [(0, 0), (HALF, 0), (0, HALF)])
def test_a_lease_is_safe_if_clocks_drift_within_its_margin(rates: tuple[int, ...]) -> None:
    report = explored(rates, HALF)
    assert report.complete
    assert not report.violations


def test_a_lease_is_not_safe_if_the_clock_of_the_root_is_faster_than_that() -> None:
    (violation,) = explored((HALF, 0), 10_000).violations
    assert violation.what.startswith("k:")


@pytest.mark.parametrize(("rates", "told"), [((0,), "one value per node"), ((0, -1), "0 to 1000 percent")])
def test_bad_rates_are_rejected(rates: tuple[int, ...], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        Case("leased", nodes=2, ticks=6, rates=rates).check()


def test_every_simulated_node_has_its_own_clock() -> None:
    engine = build(Config("leased", nodes=6, k=1, faults="drift:0.01", options={"lease": 2 * SECOND}))
    assert engine.clocks is not None
    assert {clock.ahead for clock in engine.clocks} >= {0, MILLION // 100}
    engine.begin()
    engine.run(2_000)
    readings = [node.now - engine.now for node in engine.nodes]
    assert max(readings) > 0
    assert not engine.violations


def test_simulated_clocks_that_drift_too_far_let_too_many_in() -> None:
    config = Config("leased", nodes=6, k=1, cs=30, faults="drift:0.5,loss:0.3", options={"lease": 2 * SECOND})
    assert simulate(config).violations


def test_one_clock_is_true_time() -> None:
    assert Clock().reading(17) == 17
    assert Clock().time(17) == 17
