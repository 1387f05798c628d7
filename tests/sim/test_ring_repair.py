"""Failures on a settled ring: the neighbours of a failed node notice, and the ring closes the gap (EE section V)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairgate.overlay.ring import Ring
from fairgate.protocols.non_e2e.fault_tolerant import NonE2EFaults
from fairgate.registry import PROTOCOLS
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.run import run, simulate
from fairgate.sim.summary import Result

SECOND = 1_000_000_000
ROUNDS = Config(
    protocol="non_e2e_faults", nodes=400, k=1, resources=4, workload="rounds", rounds=12, requests=10, requesters=80,
    per_resource=True, leave=1.0, latency="0.05", stack=("settled_pastry",), options={"replicas": 10}, marks=True,
)  # fmt: skip
NEW_PATH, CLEAN_UP = "a request was routed anew", "a path was cleaned up"


def churned(protocol: str) -> tuple[Result, Result]:
    """A run without churn, and one in which 20 of 400 nodes fail in each round and as many join."""
    still, changing = (simulate(replace(ROUNDS, protocol=protocol, churn=churn)) for churn in (0, 40))
    return still, changing


def test_paths_are_repaired_under_churn() -> None:
    still, changing = churned("non_e2e_faults")
    assert NEW_PATH not in still.marks
    assert changing.marks[NEW_PATH] > 20
    assert changing.marks[CLEAN_UP] > 2
    assert 1.02 < changing.hops / still.hops < 1.6  # once: requesters do not ask forever


def test_end_to_end_needs_no_repair() -> None:
    still, changing = churned("e2e")
    assert 0.9 < changing.hops / still.hops < 1.1


def test_without_repair_requests_that_failed_nodes_kept_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unmended(NonE2EFaults):
        about = replace(NonE2EFaults.about, name="unmended")

        def mend_paths(self, peer: int) -> None:
            pass

    monkeypatch.setitem(PROTOCOLS, "unmended", Unmended)
    config = replace(ROUNDS, churn=60, rounds=30, requests=3)
    unmended, mended = (simulate(replace(config, protocol=name)) for name in ("unmended", "non_e2e_faults"))
    assert NEW_PATH not in unmended.marks
    assert unmended.entries < 0.9 * mended.entries


CLOSED = Config(
    nodes=30, k=1, requests=3, cs=1.0, rate=0.05, leave=1.0, latency="0.05", stack=("settled_pastry",),
    options={"replicas": 5, "lease": 5 * SECOND},
)  # fmt: skip


@pytest.mark.parametrize("protocol", ["e2e_ft", "non_e2e_faults", "sigma"])
def test_a_crashed_node_leaves_the_ring_and_nobody_waits_for_it(protocol: str) -> None:
    options: dict[str, Any] = {**CLOSED.options, "quorum": 4}  # so that one lost memory lets nobody in twice
    engine = build(replace(CLOSED, protocol=protocol, options=options, faults="crash:*6@20+15"))
    run(engine, None)
    ring: Ring = engine.setup.shared["ring"]
    assert engine.violations == []
    assert ring.size == 24
    assert engine.waiting() == 0


def test_the_ring_closes_the_gap_only_after_the_failure_was_noticed() -> None:
    engine = build(replace(CLOSED, protocol="e2e_ft", faults="crash:3@20,detect:7"))
    ring: Ring = engine.setup.shared["ring"]
    sizes: dict[int, int] = {}
    for second in (19, 26, 28):
        engine.plan(second * SECOND, lambda engine: sizes.update({engine.now // SECOND: ring.size}))
    run(engine, None)
    assert sizes == {19: 30, 26: 30, 28: 29}
