"""EE's queues are sorted by timestamps "to maintain fairness": requests enter in the order in which they are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result

LEASE = 10_000_000_000


def busy(protocol: str, faults: str = "", latency: str = "0.05", **options: Any) -> Result:
    """60 nodes that request one gate more often than it can serve."""
    config = Config(
        protocol, nodes=60, k=1, requests=8, cs=1.0, rate=0.02, latency=latency, faults=faults,
        stack=("settled_pastry",), options={"replicas": 5, **options},
    )  # fmt: skip
    result = simulate(config)
    assert result.broken == ()
    assert result.entries == 60 * 8
    return result


@pytest.mark.parametrize("latency", ["0.05", "uniform:0,0.2"])
@pytest.mark.parametrize(
    ("protocol", "options"),
    [("e2e", {}), ("non_e2e", {}), ("e2e_ft", {"lease": LEASE}), ("non_e2e_faults", {"lease": LEASE})],
)
def test_few_requests_are_overtaken(protocol: str, options: dict[str, int], latency: str) -> None:
    result = busy(protocol, "", latency, **options)
    assert result.overtakes < 0.2 * result.entries


@pytest.mark.parametrize("protocol", ["e2e", "non_e2e"])
def test_clocks_that_drift_apart_are_almost_as_fair(protocol: str) -> None:
    """At the end the fastest clock is seconds ahead of the slowest, but nodes learn the time from each other."""
    result = busy(protocol, "drift:0.01")
    assert result.overtakes < 0.2 * result.entries


@pytest.mark.parametrize("protocol", [E2E, NonE2E])
def test_a_lamport_clock_that_only_counts_is_not_fair(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(protocol):  # type: ignore[misc]
        about = replace(protocol.about, name="counting")
        counted = 0

        def clock(self) -> int:
            return self.counted

        def next_stamp(self) -> int:
            self.counted += 1
            return self.counted

        def see_stamp(self, stamp: int) -> None:
            self.counted = max(self.counted, stamp)

    monkeypatch.setitem(PROTOCOLS, "counting", Counting)
    result = busy("counting")
    assert result.overtakes > result.entries
