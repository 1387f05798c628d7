"""What a run measures, where a plausible wrong number would be easy to miss."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from fairgate.cli.screen import stdout
from fairgate.cli.sim.view import result_table, trials_table
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.trials import combine, run_trials

SATURATED = Config(nodes=20, k=3, rate=0.5, cs=10, latency="1", requests=50)


# Runs that end at a set time.


@pytest.mark.parametrize("protocol", ["fair_k", "naimi_trehel", "suzuki_kasami"])
def test_what_is_in_flight_when_a_run_is_cut_is_no_violation(protocol: str) -> None:
    """A stay and a hand-over take 11 s, so that some of these cuts come while a token or coordinator travels."""
    config = replace(SATURATED, protocol=protocol, k=3 if protocol == "fair_k" else 1)
    for cut in range(30):
        assert simulate(replace(config, seconds=100 + 0.9 * cut)).broken == ()


def test_a_token_doubled_before_a_run_is_cut_is_a_violation() -> None:
    """Without a periodic census, only the one at the end can notice it."""
    config = replace(SATURATED, protocol="srimani_reddy", latency="0.1", faults="dup:0.02", seconds=100)
    *_, last = simulate(replace(config, census_every=1_000_000)).broken
    assert last.startswith("tokens: ")


# The longest wait of each node.


def test_a_node_without_a_wait_that_counts_is_left_out_of_the_maxima() -> None:
    result = simulate(Config(seconds=400, warmup_seconds=350))
    assert result.measured < result.nodes  # fewer waits than nodes, so some nodes have none
    assert result.wait_mean > 300
    assert 300 < result.node_max_median <= result.node_max_p90 <= result.wait_max


def test_a_wait_of_zero_counts() -> None:
    result = simulate(Config("raymond", nodes=3, k=3, requests=2))
    assert (result.measured, result.wait_max, result.node_max_median) == (6, 0.0, 0.0)


def test_without_any_wait_that_counts_the_measures_are_zero() -> None:
    result = simulate(Config(nodes=3, k=1, requests=1, seconds=1, warmup_seconds=0.999, rate=0.001))
    assert (result.measured, result.wait_mean, result.node_max_median, result.spread) == (0, 0.0, 0.0, 0.0)


# Trials.


def test_waits_and_spread_mean_the_same_for_many_trials_as_for_one() -> None:
    results = run_trials(replace(SATURATED, seconds=300, requests=1000), 3, workers=1)
    combined = combine(results)
    assert combined["wait_max"] == max(result.wait_max for result in results)
    assert combined["spread"] == combined["wait_max"] - combined["wait_mean"]
    assert combined["measured"] == sum(result.measured for result in results)
    waited = sum(result.wait_mean * result.measured for result in results)
    assert combined["wait_mean"] == pytest.approx(waited / combined["measured"])
    assert combined["spread_mean"] == fmean(result.spread for result in results) < combined["spread"]


def test_one_trial_combines_into_itself() -> None:
    result = simulate(SATURATED)
    combined = combine([result])
    for name, value in result.as_json().items():
        if name in combined:
            assert combined[name] == (pytest.approx(value) if isinstance(value, float) else value), name


# Several gates.


def test_permits_in_use_are_those_of_all_gates() -> None:
    config = Config("sigma", nodes=30, k=1, resources=10, rate=5, cs=5, latency="0.1", requests=2)
    result = simulate(config)
    assert (result.resources, result.max_inside) == (10, 1)
    assert 1 < result.units_mean <= 10
    with (out := stdout()).capture() as shown:
        out.print(result_table(result))
    (row,) = [line for line in shown.get().splitlines() if "permits in use" in line]
    assert "of 10 " in row


# Marks.


def test_marks_are_counted_only_if_asked_for() -> None:
    config = Config("naimi_trehel", nodes=6, k=1, requests=20, rate=0.01, cs=1)
    assert simulate(config).marks == {}
    results = run_trials(replace(config, marks=True), 2, workers=1)
    counts = [result.marks["an idle token was handed over"] for result in results]
    assert min(counts) > 0
    combined = combine(results)
    assert combined["marks"]["an idle token was handed over"] == sum(counts)
    with (out := stdout()).capture() as shown:
        out.print(result_table(results[0]), trials_table(results, combined))
    assert shown.get().count("an idle token was handed over") == 2
