"""Runs that last for a set time, with requests arriving at a total rate (SG section V)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairgate.errors import BadInput
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.pool import ClientPool
from fairgate.sim.run import run, simulate
from fairgate.sim.stream import Stream

CALM = Config(
    protocol="centralised",
    nodes=50,
    k=1,
    workload="open",
    rate=2.0,
    cs=0.0,
    latency="0.01",
    seconds=500.0,
    warmup_seconds=100.0,
)


def test_a_fast_gate_serves_every_request() -> None:
    result = simulate(CALM)
    assert result.violations == 0
    assert result.simulated == 500.0
    assert result.throughput == pytest.approx(CALM.rate, rel=0.05)
    assert result.backlog <= 1


def test_a_gate_that_is_too_slow_leaves_a_backlog_and_no_violation() -> None:
    slow = simulate(replace(CALM, nodes=1_000, cs=1.0))
    assert slow.violations == 0
    assert slow.throughput == pytest.approx(1 / 1.02, rel=0.02)  # a stay, and two hops to hand over
    assert slow.backlog == pytest.approx((CALM.rate - slow.throughput) * 500, rel=0.1)


def test_the_warm_up_is_left_out() -> None:
    whole, warm = simulate(replace(CALM, warmup_seconds=0.0)), simulate(CALM)
    assert whole.entries == warm.entries  # the same run
    assert whole.throughput == pytest.approx(whole.entries / 500)
    assert warm.throughput * 400 < whole.entries * 0.9


def test_the_messages_of_the_warm_up_are_left_out_too() -> None:
    result = simulate(replace(CALM, nodes=1_000))
    assert result.messages_per_entry == pytest.approx(3, abs=0.01)  # request, grant, release; none for the root


def test_requests_wait_from_their_arrival_when_no_client_is_idle() -> None:
    """Two clients, stays of 1 s, 0.7 requests per second in total: requests queue for an idle client."""
    busy = simulate(replace(CALM, nodes=2, cs=1.0, rate=0.7))
    roomy = simulate(replace(CALM, nodes=200, cs=1.0, rate=0.7))
    assert busy.wait_mean > 0.6 * roomy.wait_mean > 0.5


def test_all_clients_make_about_as_many_requests() -> None:
    engine = build(replace(CALM, nodes=10))
    run(engine, None)
    totals = engine.metrics.node_totals()
    assert sum(totals) > 900
    assert max(totals) < 2 * min(totals)


def test_a_client_that_is_gone_is_never_chosen() -> None:
    pool = ClientPool(3, 0, Stream("x"), 1.0)
    pool.gone(1, 0)
    pool.gone(1, 0)
    assert sorted(pool.idle) == [0, 2]
    pool.remove(0)
    assert pool.idle == [2]
    pool.done(0, 0)
    pool.done(0, 0)
    assert sorted(pool.idle) == [0, 2]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"warmup_seconds": 600.0}, "warmup_seconds must be at least 0 and less than seconds"),
        ({"warmup_seconds": 500.0}, "warmup_seconds 500 leaves nothing to measure of seconds 500"),
        ({"rounds": 3}, "rounds must be at least 1, and needs the workload rounds"),
        ({"churn": 3}, "churn must be an even number of nodes, and needs rounds"),
        ({"resources": 0}, "resources must be at least 1, not 0"),
        ({"requesters": 51}, "requesters must be 0..50 (the number of nodes), not 51"),
    ],
)
def test_a_nonsensical_config_is_refused_in_one_line(change: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput) as wrong:
        build(replace(CALM, **change))  # type: ignore[arg-type]
    assert str(wrong.value) == line
