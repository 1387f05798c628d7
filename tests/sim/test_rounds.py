"""EE's rounds: requests, exits and churn at set times, with many gates at once (sim/rounds.py, sim/churn.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairgate.errors import BadInput
from fairgate.overlay.ring import Ring
from fairgate.sim.as_paper import as_paper
from fairgate.sim.build import build
from fairgate.sim.churn import overlay_of, owner_of
from fairgate.sim.config import Config
from fairgate.sim.run import run, simulate

SMALL = Config(
    protocol="sigma",
    nodes=60,
    k=1,
    resources=4,
    workload="rounds",
    rounds=10,
    requests=5,
    per_resource=True,
    latency="0.05",
    stack=("settled_pastry",),
    options={"replicas": 5},
)


def test_each_gate_has_its_own_holder_and_its_own_queue() -> None:
    result = simulate(SMALL)
    assert result.broken == ()
    assert result.max_inside == 1
    assert result.entries > SMALL.resources  # more than the first of each gate
    assert result.backlog > 0  # requests come faster than nodes leave
    assert result.simulated == pytest.approx(10 * 100 * 0.05)


def test_requests_in_total_are_fewer_than_requests_per_resource() -> None:
    whole, each = simulate(replace(SMALL, per_resource=False)), simulate(SMALL)
    assert whole.entries + whole.backlog <= 10 * 5
    assert each.requests == 4 * 10 * 5


def test_only_nodes_that_neither_wait_nor_are_inside_make_requests() -> None:
    """In the end all 60 nodes wait at each gate, and those that have left are drawn again."""
    result = simulate(replace(SMALL, rounds=30))
    assert result.requests == result.entries + result.backlog
    assert 4 * 60 - 4 <= result.backlog + 4 <= 4 * 60
    assert result.requests < 4 * 30 * 5


def test_the_load_of_each_node_is_known() -> None:
    result = simulate(SMALL)
    assert len(result.loads) == 60
    assert sum(result.loads) == pytest.approx(60 * result.load_mean)
    assert max(result.loads) == result.load_max


def test_nobody_leaves_with_chance_zero_and_all_leave_with_chance_one() -> None:
    never, always = simulate(replace(SMALL, leave=0.0)), simulate(replace(SMALL, leave=1.0))
    assert never.entries == SMALL.resources
    assert always.entries > 2 * never.entries


def test_churn_never_replaces_requesters() -> None:
    config = replace(SMALL, requesters=20, churn=8, options={"replicas": 7, "quorum": 6})
    engine = build(config)
    run(engine, None)
    assert engine.violations == []
    ring: Ring = engine.setup.shared["ring"]
    assert ring.size == 60
    assert sum(not ring.has(node) for node in range(60)) > 10
    assert all(engine.is_down(node) != ring.has(node) for node in range(60 + 4 * 10))
    asked = [node for node, entries in enumerate(engine.metrics.node_totals()) if entries]
    assert all(ring.has(seat // 4) for seat in asked)


@pytest.mark.parametrize("protocol", ["sigma", "strawman", "e2e_ft", "non_e2e_faults"])
def test_gates_keep_working_under_churn(protocol: str) -> None:
    """With 6 of 7 votes, two can be inside only if five replicas have lost their memory at once."""
    options = {"replicas": 7, "quorum": 6, "lease": 2_000_000_000}
    config = replace(SMALL, protocol=protocol, requesters=20, churn=4, options=options)
    for seed in range(1, 4):
        result = simulate(replace(config, seed=seed))
        assert result.broken == ()
        assert result.entries > SMALL.resources


def test_a_replica_that_loses_its_memory_is_the_owner_of_its_key() -> None:
    engine = build(replace(SMALL, replica_life=20.0, options={"replicas": 7, "quorum": 6}))
    key = 1 << 63
    assert overlay_of(engine.nodes[owner_of(engine, key)]).next_hop(key) == -1
    run(engine, None)
    assert engine.violations == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"options": {"replicas": 5, "quorum": 6}}, "quorum must be 1..5 (the number of replicas), not 6"),
        (
            {"options": {"replicas": 6, "quorum": 3}},
            "quorum 3 of 6 replicas would let 2 in, but k is 1: use 4 to 6",
        ),
        ({"options": {"replicas": 61}}, "replicas must be 1..60 (the number of nodes), not 61"),
        ({"resources": 0}, "resources must be at least 1, not 0"),
        ({"churn": 3}, "churn must be an even number of nodes, and needs rounds"),
        ({"requests": 61}, "requests must be at most 60 per resource (the number of requesters), not 61"),
        ({"requesters": 61}, "requesters must be 0..60 (the number of nodes), not 61"),
        ({"workload": "closed"}, "rounds must be at least 1, and needs the workload rounds"),
    ],
)
def test_a_nonsensical_config_is_refused_in_one_line(change: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput) as wrong:
        build(replace(SMALL, **change))  # type: ignore[arg-type]
    assert str(wrong.value) == line


# Dynamic rings.


@pytest.mark.parametrize("overlay", ["chord", "pastry"])
@pytest.mark.parametrize("protocol", ["sigma", "e2e", "non_e2e"])
def test_rounds_on_a_dynamic_ring(protocol: str, overlay: str) -> None:
    """All nodes join first; then nodes that make no requests leave and others join, while requests go on."""
    config = Config(
        protocol, nodes=20, k=1, workload="rounds", rounds=10, requests=6, requesters=10, churn=4, latency="0.1",
        options={"replicas": 5}, stack=(overlay,), seed=3,
    )  # fmt: skip
    result = simulate(config)
    assert result.broken == ()
    assert result.entries > 1
    assert result.messages["ov.leaving"]
    assert result.messages["ov.estate"] > 19


def test_crashes_and_resets_on_a_dynamic_ring() -> None:
    config = Config("sigma", nodes=12, k=1, requests=4, cs=1.0, latency="0.1", faults="crash:*2@5+10,reset:3@8+4")
    for overlay in ("chord", "pastry"):
        result = simulate(replace(config, stack=(overlay,), marks=True))
        assert result.broken == ()
        assert result.entries >= 10 * 4
        assert result.marks["a title was made anew"]


@pytest.mark.parametrize("protocol", ["sigma", "e2e", "non_e2e", "non_e2e_faults"])
def test_the_papers_experiment_is_one_setting(protocol: str) -> None:
    config = as_paper(Config(protocol, nodes=200, k=1, churn=4, rounds=3, options={"replicas": 7}))
    assert (config.workload, config.requests, config.per_resource, config.resources) == ("rounds", 20, True, 2)
    assert (config.rounds, config.options["replicas"], config.requesters) == (3, 7, 200)  # 3 and 7 were given
    assert config.options.get("lease", 0) == 0
    result = simulate(config)
    assert result.requests == 2 * 3 * 20


def test_the_papers_experiment_is_not_for_other_protocols() -> None:
    with pytest.raises(BadInput, match="--as-paper is for sigma, e2e, non_e2e, non_e2e_faults, not fair_k"):
        as_paper(Config("fair_k"))
