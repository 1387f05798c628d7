"""Clients that are not members of the DHT (SG section II): they reach replicas through a member."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_keys
from fairgate.core.keyspace import place_of
from fairgate.core.layers import over
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.overlay.gates import Gates
from fairgate.overlay.outside import Outside
from fairgate.protocols.sigma.protocol import Sigma
from fairgate.sim.build import build
from fairgate.sim.churn import owner_of
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

STACKS = ("full", "settled_chord", "settled_pastry", "chord", "pastry")
SMALL: dict[str, Any] = {"nodes": 16, "k": 1, "cs": 0.3, "requests": 3, "latency": "uniform:0,0.2"}


def outside(me: int = 9, choices: tuple[int, ...] = ()) -> Any:
    script = iter(choices)
    setup = Setup(tuple(range(10)), options={"outsiders": 2})
    return over(Outside, over(Gates, Sigma))(me, setup, Collected(lambda n: next(script, 0)))


def test_what_it_routes_goes_to_a_random_member_and_its_own_answers_end_there() -> None:
    node = outside(choices=(3, 7))
    assert [node.next_hop(5), node.next_hop(5)] == [3, 7]
    assert node.next_hop(place_of(9)) == NIL
    assert not node.serves(place_of(9))
    assert node.neighbours(3) == ()


@pytest.mark.parametrize("stack", STACKS)
def test_everybody_enters_and_only_members_serve_replicas(stack: str) -> None:
    for seed in range(3):
        faults = "loss:0.1,dup:0.1,drift:0.01" if seed else ""
        config = Config("sigma", **SMALL, stack=(stack,), outsiders=9, seed=seed, faults=faults)
        engine = build(config)
        assert all(owner_of(engine, key) < 7 for key in replica_keys(engine.setup) if stack.startswith("settled"))
        result = simulate(config)
        assert (result.entries - result.lost, result.violations) == (48, 0)


def test_the_nodes_after_the_members_are_outside() -> None:
    engine = build(Config("sigma", **SMALL, stack=("full",), outsiders=9))
    assert [isinstance(node, Outside) for node in engine.nodes] == [False] * 7 + [True] * 9


def test_if_the_member_that_was_asked_is_gone_another_one_is_tried() -> None:
    config = Config("sigma", **SMALL, stack=("full",), outsiders=9, faults="crash:2@0.01", options={"replicas": 5})
    result = simulate(config)
    assert not result.violations
    assert result.entries >= 45


def test_members_alone_vote_with_their_zones() -> None:
    config = Config("sigma_zones", **SMALL, stack=("full",), outsiders=9)
    engine = build(config)
    gates = cast("Any", engine.nodes[15]).upper
    assert len(gates.at(0).voters) == 7
    assert not simulate(config).violations


@pytest.mark.parametrize(
    ("protocol", "changed", "told"),
    [
        ("e2e", {}, "outsiders are for sigma"),
        ("sigma", {"outsiders": 16}, "outsiders must be 0..15"),
        ("sigma", {"options": {"replicas": 8}}, "7 members are too few"),
        ("sigma", {"options": {"responses": "routed"}}, "cannot be routed"),
    ],
)
def test_bad_input(protocol: str, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        build(Config(protocol, **{**SMALL, "outsiders": 9, **changed}))
