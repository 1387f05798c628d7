"""FK section 4 sentence by sentence, and where our measurements differ from it.

FK is "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems". N=100, k=3, critical sections (cset) take 10 s and
messages (T) 1 s unless a test says otherwise. Compiled, each node makes 2,000 requests, as in the paper. Interpreted,
it makes fewer, and the bounds are wider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import log2
from statistics import fmean
from typing import Any

import pytest

from fairgate.core.choose import from_floats
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Setup
from fairgate.registry import make_node
from fairgate.sim.build import build, make_latency, make_workload
from fairgate.sim.config import Config
from fairgate.sim.engine import Engine
from fairgate.sim.run import run, simulate
from fairgate.sim.stream import Stream
from fairgate.sim.summary import Result

REQUESTS = 2000 if COMPILED else 150
START_UP = 5  # requests per node to leave out: at the start all nodes ask at once, which never happens again
RATES = (0.01, 0.5, 1.0)


@cache
def lan(rate: float = 0.5, protocol: str = "fair_k", warmup: int = START_UP) -> Result:
    result = simulate(Config(protocol=protocol, rate=rate, requests=REQUESTS, warmup=warmup))
    assert result.violations == 0
    return result


def law(n: int, k: int, latency: float, cs: float, rate: float) -> float:
    """The mean wait at saturation: a round of all N nodes takes N(cset+T)/k, less the time inside and thinking."""
    return n * (cs + latency) / k - cs - 1 / rate


# Figure 2: the mean time to get the token.


def test_the_mean_stabilises_at_355_seconds_from_rate_one_half_on() -> None:
    assert law(100, 3, 1, 10, 0.5) == pytest.approx(354.67, abs=0.01)
    assert lan(0.5).wait_mean == pytest.approx(355, rel=0.005)
    assert lan(1.0).wait_mean == pytest.approx(355, rel=0.005)


@pytest.mark.parametrize("rate", RATES)
def test_every_rate_from_one_hundredth_on_is_saturated(rate: float) -> None:
    assert lan(rate).wait_mean == pytest.approx(law(100, 3, 1, 10, rate), rel=0.01 if COMPILED else 0.03)


@pytest.mark.parametrize(
    ("n", "k", "latency", "cs", "rate"),
    [(50, 2, 0.5, 5, 1), (200, 5, 1, 10, 0.5), (30, 1, 0.1, 2, 2), (100, 10, 1, 20, 0.1), (20, 1, 0, 1, 5)],
)
def test_the_law_holds_for_other_systems_in_saturation(n: int, k: int, latency: float, cs: float, rate: float) -> None:
    requests = 300 if COMPILED else 100
    result = simulate(Config(nodes=n, k=k, latency=str(latency), cs=cs, rate=rate, requests=requests, warmup=START_UP))
    assert result.wait_mean == pytest.approx(law(n, k, latency, cs, rate), rel=0.01)
    assert result.violations == 0


def test_333_seconds_is_not_optimal_in_a_closed_system() -> None:
    """The paper's optimum, lambda N cset / k, ignores that a thinking node does not wait."""
    assert lan(0.01).wait_mean < 260


def test_law_and_fairness_break_down_where_the_coordinator_is_the_bottleneck() -> None:
    """Not in the paper. The coordinator's role moves on once per T, so it can keep at most (cset+T)/T tokens busy. The
    other tokens fall idle, and their holders re-enter without a message while the rest wait for the coordinator."""
    result = simulate(Config(nodes=64, k=4, latency="2", cs=3, rate=1, requests=100, warmup=START_UP))
    assert result.violations == 0
    assert result.messages_per_entry < 5
    assert result.wait_mean < 0.95 * law(64, 4, 2, 3, 1)
    assert result.spread > 0.5 * result.wait_mean


def test_king_latencies_change_little() -> None:
    wide = simulate(Config(latency="wan", requests=REQUESTS // 4, warmup=START_UP))
    assert wide.violations == 0
    assert wide.wait_mean == pytest.approx(lan().wait_mean, rel=0.12)
    assert wide.wait_mean == pytest.approx(law(100, 3, 0.091, 10, 0.5), rel=0.02)  # half of King's mean round trip


# Figures 3 and 4: the maximum.


def test_the_global_maximum_is_about_370_seconds_without_the_start_up() -> None:
    assert lan().wait_max == pytest.approx(371, abs=5 if COMPILED else 10)


def test_with_the_start_up_the_maximum_is_larger() -> None:
    """So the paper's 370 s can only be a figure without the first requests."""
    whole = lan(warmup=0)
    assert lan().wait_max < whole.wait_max < 390


def test_the_spread_is_about_16_seconds() -> None:
    """The paper says less than 15 s. That holds for most nodes, but not for the worst one."""
    result = lan()
    assert result.spread == pytest.approx(16, abs=3 if COMPILED else 8)
    assert result.node_max_median - result.wait_mean < 15


@pytest.mark.parametrize("rate", RATES)
def test_no_wait_reaches_390_seconds(rate: float) -> None:
    assert lan(rate, warmup=0).wait_max < 390


@cache
def bv95_maxima() -> list[float]:
    """Each node's longest wait under BV95 with random trees and appended caches, sorted."""
    engine = build(Config(protocol="bv95", requests=REQUESTS, warmup=START_UP))
    assert run(engine, None)
    assert engine.violation_count == 0
    return sorted(wait / 1e9 for wait in engine.metrics.node_maxima())


def test_bv95_has_a_comparable_mean() -> None:
    assert lan(protocol="bv95").wait_mean == pytest.approx(lan().wait_mean, rel=0.05 if COMPILED else 0.1)


@pytest.mark.skipif(not COMPILED, reason="longest waits need 2,000 requests a node: too slow interpreted")
def test_under_bv95_nearly_every_node_waits_longer_than_1300_seconds_at_least_once() -> None:
    """The paper says that all nodes do, with a 90th percentile over 1,700 s. Over ten seeds, 92 to 100 of 100 nodes do.
    The median is 1,500 to 1,650 s, the 90th percentile 1,750 to 3,150 s, the smallest 1,230 to 1,350 s."""
    maxima = bv95_maxima()
    assert sum(longest > 1300 for longest in maxima) >= 90
    assert maxima[0] > 1200
    assert 1400 < maxima[50] < 1800
    assert maxima[90] > 1700


def test_the_maximum_of_bv95_is_a_multiple_of_fair_ks() -> None:
    """The paper says more than an order of magnitude. That holds for the spread, but not for the maximum."""
    assert bv95_maxima()[-1] > (5 if COMPILED else 3) * lan().wait_max
    assert bv95_maxima()[-1] - lan(protocol="bv95").wait_mean > (50 if COMPILED else 20) * lan().spread
    assert bv95_maxima()[0] > 2 * lan().wait_max


# "All the requests are satisfied in order of their coordinator timestamps": not quite, but displacement is small.


class Watched(Engine):
    """Records the displacement of every entry: the number of earlier requests that it overtook."""

    displacements: list[int]

    def granted(self, request: int, slot: int, fence: int) -> None:
        before = self.waiters[0].overtakes
        super().granted(request, slot, fence)
        self.displacements.append(self.waiters[0].overtakes - before)


def displacements(latency: str, **more: Any) -> Iterator[int]:
    """The displacements of all entries after the start-up, in which the first token holders overtake everyone."""
    config = Config(latency=latency, requests=300 if COMPILED else 60, **more)
    engine = Watched(
        make_node(config.protocol),
        Setup(tuple(range(config.nodes)), config.k),
        make_latency(config),
        make_workload(config, make_latency(config)),
        from_floats(Stream("choices").unit),
        slots=True,
    )
    engine.displacements = []
    assert run(engine, None)
    return iter(engine.displacements[START_UP * config.nodes :])


@pytest.mark.parametrize("latency", ["1", "wan"])
def test_displacement_is_small(latency: str) -> None:
    seen = list(displacements(latency))
    assert 0 < max(seen) <= 8  # of 100 waiting nodes: the order is not strict, but nobody jumps far ahead
    assert sum(seen) / len(seen) < 2


def test_displacement_under_bv95_has_no_such_bound() -> None:
    assert max(displacements("1", protocol="bv95")) > 90


# Figure 5: messages.


def test_an_entry_takes_about_8_messages() -> None:
    assert lan().messages_per_entry == pytest.approx(8.0, abs=0.1)


def test_bv95_takes_fewer_messages() -> None:
    assert lan(protocol="bv95").messages_per_entry < 0.5 * lan().messages_per_entry


def messages(rate: float, parent_on_child: bool, requests: int = 300 if COMPILED else 100, latency: str = "1") -> float:
    config = Config(rate=rate, requests=requests, latency=latency, options={"parent_on_child": parent_on_child})
    return simulate(config).messages_per_entry


def test_parent_on_child_saves_messages_at_low_load() -> None:
    assert messages(0.0003, True) < messages(0.0003, False) - 0.1  # 6.81 against 7.02


def test_parent_on_child_costs_messages_at_high_load_at_first() -> None:
    assert messages(0.5, True) > messages(0.5, False) + 0.4  # 7.98 against 6.07


def test_without_parent_on_child_messages_rise_with_the_length_of_the_run() -> None:
    """What the shortcut costs at high load is a transient: in the long run both cost about 8 messages."""
    short, long = (100, 2000) if COMPILED else (50, 500)
    assert messages(0.5, False, long) > messages(0.5, False, short) + 0.4  # 7.4 against 5.9
    assert messages(0.5, True, long) == pytest.approx(messages(0.5, True, short), abs=0.3)


@pytest.mark.skipif(not COMPILED, reason="200,000 entries take too long interpreted")
@pytest.mark.parametrize("latency", ["uniform:0.5,1.5", "wan"])
def test_parent_on_child_saves_messages_at_high_load_if_latencies_vary(latency: str) -> None:
    assert messages(0.5, True, 2000, latency) < messages(0.5, False, 2000, latency) - 0.05  # 7.8 and 8.0; 7.9 and 8.1


# The queues drift apart if latencies or stays vary.


def mean_spread(protocol: str, requests: int, **changes: Any) -> float:
    config = Config(protocol, requests=requests, warmup=START_UP, **changes)
    return fmean(simulate(replace(config, seed=seed)).spread for seed in (1, 2, 3))


def test_the_spread_grows_with_the_length_of_the_run_if_latencies_vary() -> None:
    """Each of the k queues has a length of its own in seconds, and the differences perform a random walk."""
    short, long = (100, 1000) if COMPILED else (30, 300)
    assert mean_spread("fair_k", long, latency="uniform:0.5,1.5") > 1.5 * mean_spread(
        "fair_k", short, latency="uniform:0.5,1.5"
    )


def test_with_one_line_for_all_permits_the_spread_does_not_grow() -> None:
    """A control. It also shows the cure: a request must not be tied to a queue before its turn."""
    short, long = (100, 1000) if COMPILED else (30, 300)
    assert mean_spread("centralised", long, latency="uniform:0.5,1.5") < 1.5 * mean_spread(
        "centralised", short, latency="uniform:0.5,1.5"
    )


def test_if_stays_vary_the_spread_is_a_multiple_of_that_of_one_line() -> None:
    requests = 200 if COMPILED else 100
    tied, free = (mean_spread(name, requests, exponential_cs=True) for name in ("fair_k", "centralised"))
    assert tied > 3 * free  # 700 s against 110 s


@pytest.mark.parametrize(
    "n",
    [
        1_000,
        pytest.param(10_000, marks=pytest.mark.skipif(not COMPILED, reason="10,000 nodes are too slow interpreted")),
    ],
)
def test_messages_grow_no_faster_than_the_logarithm_of_n(n: int) -> None:
    """At two thirds of the gate's capacity, so that requests travel through the tree and not along the queue."""
    requests = 20 if COMPILED else 10
    small, large = (simulate(Config(nodes=m, rate=0.2 / m, requests=requests)) for m in (100, n))
    assert large.violations == 0
    assert large.messages_per_entry / small.messages_per_entry < log2(n) / log2(100)
