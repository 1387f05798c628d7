"""Large times: sums beyond 2^63 ns are exact, and a run that would pass the end of the clock is refused in one line.

The clock ends before 2^62 ns, so a time plus a delay is a 64-bit integer, and sums of times have 128 bits. That
compiled and interpreted runs agree on such times is tested in test_determinism.py, with the cases "long stays" and
others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from fairgate.core.units import NEVER, SECOND
from fairgate.errors import BadInput
from fairgate.sim.build import build
from fairgate.sim.config import MOST, Config
from fairgate.sim.metrics import Metrics
from fairgate.sim.quantiles import median, quantiles
from fairgate.sim.run import run, simulate
from fairgate.sim.stream import Stream
from fairgate.sim.summary import conclude, measure, together

LONGEST = NEVER // SECOND  # seconds, rounded down
LONG = Config(protocol="one_line", nodes=50, k=1, requests=4, rate=1, cs=2e7, latency="1", waits=True)
CLOCK_ENDS = "the run would last longer than 4,611,686,018 s (146 years): use shorter times, or fewer requests"


def test_the_sum_of_all_waits_is_exact_beyond_64_bits() -> None:
    result = simulate(LONG)
    assert (result.entries, result.violations) == (200, 0)
    waits = exact(result.waits["wait"])
    assert sum(waits) > 1 << 66
    assert result.wait_mean == pytest.approx(sum(waits) / 200 / SECOND, rel=1e-15)
    assert 0 < result.spread < result.wait_max
    assert result.throughput == pytest.approx(1 / 2e7, rel=1e-3)
    assert result.contention == pytest.approx(43.875, rel=1e-6)  # fewer ask towards the end
    assert result.units_mean == pytest.approx(1, rel=1e-6)


def test_a_mean_wait_is_rounded_once() -> None:
    for seed in range(1, 11):
        result = simulate(
            Config(nodes=7, k=1, requests=1, rate=1, cs=1 / 3, latency="uniform:0,1", seed=seed, waits=True)
        )
        assert result.wait_mean == sum(exact(result.waits["wait"])) / (7 * SECOND)


def exact(seconds: Iterable[float]) -> list[int]:
    return [round(Fraction(wait) * SECOND) for wait in seconds]


def test_the_sum_of_all_stays_is_exact_beyond_64_bits() -> None:
    engine = build(replace(LONG, nodes=12, k=10, cs=1.5e9, requests=2, latency="0", rate=1e6))
    assert run(engine, None)
    found = measure(engine)
    assert found.inside_time + found.now * found.inside == 24 * 1_500_000_000 * SECOND > 1 << 64


def test_metrics_add_up_the_longest_waits_exactly() -> None:
    metrics = Metrics(3, 0)
    for _ in range(100):
        for node in range(3):
            metrics.entered(node, NEVER - 1)
    assert metrics.wait_total == 300 * (NEVER - 1)
    assert metrics.wait_max == NEVER - 1
    assert list(metrics.node_maxima()) == [NEVER - 1] * 3
    metrics.restart()
    assert metrics.wait_total == 0


def test_quantiles_of_the_longest_times_are_exact() -> None:
    values = [NEVER - 1, NEVER - 2, NEVER - 3, 0]
    assert quantiles(values, (0.25, 0.5, 0.75, 1.0)) == [0, NEVER - 3, NEVER - 2, NEVER - 1]
    assert median([NEVER - 1] * 4) == float(NEVER - 1)
    assert median([NEVER - 1, 1]) == float(NEVER // 2)


def test_shares_of_a_run_are_merged_exactly() -> None:
    engine = build(LONG)
    assert run(engine, None)
    whole = measure(engine)
    part = whole.packed()
    merged = together([part, part, part])
    assert merged.wait_total == 3 * whole.wait_total == 3 * sum(whole.waits) > 1 << 67
    assert merged.inside_time == 3 * whole.inside_time
    assert conclude(merged, "one_line", 1, 0.0, False).wait_mean == conclude(whole, "one_line", 1, 0.0, False).wait_mean


def test_a_run_may_last_until_the_clock_ends() -> None:
    result = simulate(Config(nodes=1, k=1, requests=1, rate=1e9, cs=LONGEST - 1, latency="0"))
    assert (result.entries, result.violations) == (1, 0)
    assert LONGEST - 1 <= result.simulated < LONGEST


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": 2, "requests": 1, "cs": LONGEST // 2 + 1},  # an exit in its lane
        {"nodes": 20, "requests": 1, "cs": LONGEST / 3, "exponential_cs": True},  # an exit in the heap
        {"nodes": 3, "requests": 1, "latency": f"{LONGEST // 2}"},  # a message in its lane
        {"nodes": 3, "requests": 1, "latency": f"uniform:{LONGEST // 2},{LONGEST - 1}"},  # a message in the heap
        {"nodes": 3, "requests": 1, "latency": f"{LONGEST - 1}", "faults": "reorder:1"},
        {"nodes": 2, "requests": 20, "rate": 1e-9},  # a request
        {"nodes": 2, "requests": 20, "rate": 1e-9, "workload": "open"},
        {"protocol": "leased", "nodes": 2, "requests": 2, "cs": LONGEST // 3, "options": {"lease": 1 << 57}},
    ],
)
def test_a_run_beyond_the_end_of_the_clock_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as wrong:
        simulate(replace(Config(k=1, rate=1, cs=0, latency="0"), **change))
    assert str(wrong.value) == CLOCK_ENDS


def test_a_run_that_is_cut_may_have_later_events() -> None:
    config = Config(nodes=3, k=1, rate=1e-9, cs=LONGEST - 1, latency=f"{LONGEST - 1}", seconds=10, workload="open")
    assert simulate(config).simulated == 10


def test_a_clock_that_runs_ahead_ends_earlier() -> None:
    config = Config(nodes=2, k=1, requests=2, rate=1, cs=LONGEST // 6, latency="1", faults="drift:1", seed=1)
    assert simulate(replace(config, faults="")).violations == 0
    with pytest.raises(BadInput) as wrong:
        simulate(config)
    assert str(wrong.value) == CLOCK_ENDS


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"cs": 1e30}, "1e+30 s is too long: every time must be below 4,611,686,018 s (146 years)"),
        ({"cs": LONGEST + 1.0}, "4.61169e+09 s is too long"),
        ({"latency": "1e30"}, "1e+30 s is too long"),
        ({"latency": "uniform:0,1e30"}, "1e+30 s is too long"),
        ({"latency": "pairs:uniform:0,1e30"}, "1e+30 s is too long"),
        ({"give_up": 0.5, "give_up_after": 1e30}, "1e+30 s is too long"),
        ({"seconds": 1e30}, "1e+30 s is too long"),
        ({"replica_life": 1e30}, "1e+30 s is too long"),
        ({"faults": f"crash:1@1{'0' * 30}"}, "1e+30 s is too long"),
        ({"rate": 1e-30}, "rate must be at least 1e-09 requests per second, not 1e-30"),
        ({"requests": MOST + 1}, "requests and rounds must be at most 2,147,483,647, not 2,147,483,648"),
        ({"resources": 1 << 30}, "5,368,709,120 pairs of a node and a gate are too many: the simulator can number"),
        (
            {"protocol": "leased", "k": 1, "options": {"lease": 1 << 59}},
            "lease must be at most 288,230,376,151,711,744",
        ),
        ({"protocol": "leased", "k": 1, "options": {"drift": 1_000_001}}, "drift must be at most 1,000,000"),
        ({"protocol": "leased", "k": 1, "options": {"lease": -1}}, "lease must be at least 0, not -1"),
        ({"stack": ("channel",), "latency": "1e9"}, "channel_resend must be at most 288,230,376,151,711,744"),
    ],
)
def test_what_compiled_code_cannot_count_is_refused_in_one_line(change: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as wrong:
        build(replace(Config(nodes=5, k=2), **change))
    assert str(wrong.value).startswith(line)
    assert "\n" not in str(wrong.value)


def test_draws_are_cut_off_at_the_end_of_time() -> None:
    stream = Stream("a")
    drawn = [stream.exponential(float(NEVER)) for _ in range(1_000)]
    assert max(drawn) == NEVER
    assert sum(one == NEVER for one in drawn) == pytest.approx(368, rel=0.2)  # 1 / e of them
    assert min(drawn) >= 0
