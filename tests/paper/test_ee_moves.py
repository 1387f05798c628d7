"""Replicas of EE's protocols that move to another node or lose their memory, and what it costs to survive failures."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.ids import NIL
from fairgate.protocols.e2e.fault_tolerant import E2EFT
from fairgate.protocols.e2e.messages import HandOver, Request
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.scenario.manual import ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.walks.dht import OVERLAYS, SECOND, Conditions, how_runs_end, over_overlay, over_strides
from tests.paper.test_e2e import REQ1, REQ2, REQ3, inside, node, of
from tests.paper.test_e2e_ft import LEASE, PING, drawn, waiting

JOINS = Conditions(joins=2, leaves=1, until=10 * SECOND, requests=5)
RESETS = Conditions(resets=2, stay=SECOND, requests=4)
QUICK = {"lease": 3 * SECOND, "ping": SECOND}


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("protocol", [E2E, NonE2E])
def test_replicas_move_with_their_keys_on_a_settled_ring(protocol: Any, overlay: str) -> None:
    """The new owner may be asked before the state arrives, and votes anew.

    Of 400 runs on each overlay, 4 of `e2e` and 3 of `non_e2e` let two in, and none hangs.
    """
    ends = how_runs_end(over_overlay(overlay, protocol), range(40), JOINS)
    assert ends.get("", 0) >= 39
    assert "liveness" not in ends


@pytest.mark.parametrize("protocol", [E2E, NonE2E])
def test_runs_hang_if_replicas_do_not_move_with_their_keys(protocol: Any) -> None:
    class Keeps(protocol):  # type: ignore[misc]
        def on_range(self, start: int, end: int) -> None:
            pass

    assert how_runs_end(over_strides(Keeps), range(40), JOINS).get("liveness", 0) > 0


@pytest.mark.parametrize("protocol", [E2E, E2EFT])
def test_a_replica_that_moves_with_its_title_keeps_its_state(protocol: Any) -> None:
    network = drawn(protocol=protocol)
    inside(network, REQ1)
    giver, taker = node(network, 6), node(network, 8)
    before = giver.replicas[0].key()
    taker.take_replica(0, giver.give_replica(0))
    assert taker.replicas[0].key() == before
    assert taker.replicas[0].holder == REQ1
    assert 0 not in giver.replicas


# The state of a replica: its vote with stamp, round and rank, whether it is recalled, its holder with stamp, its
# generation and lineage, and the requests that wait.
VOTED = (REQ1, 5, 2, 3, True, NIL, 0, 4, 7, ((-1, 9, REQ2, 1),))
OWNED = (NIL, 0, 0, 0, False, REQ1, 5, 4, 7, ())


@pytest.mark.parametrize("state", [VOTED, OWNED])
def test_a_replica_that_is_handed_over_keeps_its_state(state: Any) -> None:
    taker = node(drawn(protocol=E2E), 8)
    taker.on_handover(HandOver(0, taker.keys[0], 0, *state))
    assert taker.replicas[0].key() == state


def test_a_replica_that_is_handed_over_leaves_nothing_behind() -> None:
    network = drawn(protocol=E2E)
    inside(network, REQ1)
    giver = node(network, 6)
    giver.on_range(giver.keys[0], giver.keys[0] + 1)  # a range that excludes the key
    assert giver.replicas == {}


def test_a_replica_that_is_handed_over_votes_if_its_vote_is_free() -> None:
    taker = node(drawn(protocol=E2E), 8)
    taker.on_handover(HandOver(0, taker.keys[0], 0, NIL, 0, 0, 0, False, NIL, 0, 4, 7, ((-1, 9, REQ2, 1),)))
    assert taker.replicas[0].vote == REQ2


def test_a_replica_that_waits_after_a_reset_lets_nobody_in_twice() -> None:
    """Of 200 runs with two resets 5 let two in if replicas vote at once, and none if they wait."""
    assert how_runs_end(over_strides(E2EFT), range(60), RESETS, {**QUICK, "wait": True}) == {"": 60}
    assert how_runs_end(over_strides(E2EFT), range(200), RESETS, QUICK).get("k", 0) > 0


def due(network: ManualNetwork, me: int, timer: str) -> dict[str, int]:
    """The node's timers of this name, with the time left."""
    return {
        name: at - network.now for (node, name), at in network.timers.items() if node == me and name.endswith(timer)
    }


def test_waiters_with_a_copy_ping_in_turn() -> None:
    """EE:V.A With n waiters the failure of the owner is noticed within a period divided by n."""
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2, REQ3)
    assert [*due(network, REQ2, "/ping").values()] == [PING // 2]
    assert [*due(network, REQ3, "/ping").values()] == [PING]


def test_a_waiter_asks_one_replica_at_a_time() -> None:
    network = drawn()
    inside(network, REQ1)
    waiting(network, REQ2)
    [(timer, left)] = due(network, REQ2, "/ask").items()
    assert left == LEASE
    network.fire(REQ2, timer)
    assert len(of(network, Request)) == 1


@pytest.mark.parametrize("protocol", ["e2e_ft", "non_e2e_faults"])
def test_fault_tolerance_costs_less_than_in_sigma(protocol: str) -> None:
    def hops(name: str, **options: int) -> int:
        config = Config(
            name, nodes=400, k=1, resources=4, workload="rounds", rounds=20, requests=20, per_resource=True,
            latency="0.05", stack=("settled_pastry",), options={"replicas": 10, **options},
        )  # fmt: skip
        return simulate(config).hops

    assert hops(protocol, lease=30 * SECOND) < hops("sigma", lease=30 * SECOND)
