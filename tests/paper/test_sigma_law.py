"""Sigma's throughput past saturation: 1 / E[m-th smallest of n sums of two latencies].

When a client leaves, each replica hears of it after one latency, and its vote reaches the next client after another.
The next client enters with the m-th of these votes. Successive clients are two random ones, so it makes no difference
whether a latency is drawn for each message or once for each pair of nodes, as in SG.
"""

import pytest

from fairgate.lab.sigma import law
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

CLIENTS = 3_000  # a client that asks again as it leaves would free its votes earlier


@pytest.mark.parametrize("latency", ["uniform:0,0.3", "pairs:uniform:0,0.3"])
@pytest.mark.parametrize(("n", "m"), [(12, 8), (12, 9)])
def test_past_saturation_throughput_is_that_of_the_law(n: int, m: int, latency: str) -> None:
    possible = law(n, m, 0.0, 0.3)
    found = simulate(
        Config(
            "sigma",
            CLIENTS,
            k=1,
            rate=2 * possible,
            cs=0.0,
            latency=latency,
            workload="open",
            seconds=400.0,
            warmup_seconds=100.0,
            options={"replicas": n, "quorum": m},
        )
    )
    assert found.broken == ()
    assert found.throughput == pytest.approx(possible, rel=0.03)
