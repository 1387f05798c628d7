"""The checker on Non End-to-End, on a ring in which every node knows only its successor, so that routes have many hops.

Bounds: messages arrive in any order, clocks advance by one second, and a node that holds votes but has not won asks
again after one second. Four nodes can be explored completely with one replica, or with two replicas and two clients.
Of larger cases only the first states are explored.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.check.case import MOST_NODES, Case
from fairgate.check.explore import CheckReport, Explorer
from fairgate.core.kbr import Door
from fairgate.core.keyspace import place_of
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.literal import NonE2ELiteral
from fairgate.protocols.non_e2e.protocol import NonE2E
from tests.support.dht_check import SomeAsk

SECOND = 1_000_000_000


def placed(protocol: type[NonE2E]) -> type[NonE2E]:
    """The protocol on a ring: replica 0 is at the last node, replica 1 at the one before it, and so on."""

    class Placed(protocol):  # type: ignore[misc, valid-type]
        overlay = "settled_chord"

        def __init__(self, me: int, setup: Setup, out: Door) -> None:
            replicas = setup.options["replicas"]
            setup.shared["replica_keys"] = tuple([place_of(setup.n - 1 - i) for i in range(replicas)])
            protocol.__init__(self, me, setup, out)

    return Placed


def explored(
    protocol: type[NonE2E], replicas: int, most_states: int | None = None, clients: int = MOST_NODES, **bounds: Any
) -> CheckReport:
    """Explore a case in which the first `clients` nodes make requests."""
    options = {"replicas": replicas, "retry": SECOND, "chord_successors": 1, "chord_fingers": 0}
    case = Case(protocol.about.name, ticks=1, options=options, **bounds)
    return Explorer(case, SomeAsk(case, placed(protocol), range(clients))).run(most_states=most_states)


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_nodes_and_one_replica_completely() -> None:
    report = explored(NonE2E, replicas=1, nodes=4)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (298_246, 887_582, 34)


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_nodes_two_replicas_and_two_clients_completely() -> None:
    """The clients host no replica: their REQUESTs pass each other's entries."""
    report = explored(NonE2E, replicas=2, nodes=4, clients=2)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (588_669, 2_274_083, 43)


def test_three_nodes_with_cancels_completely() -> None:
    report = explored(NonE2E, replicas=1, nodes=3, cancels=2)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (19_466, 55_377, 20)


def test_the_first_states_with_more_replicas() -> None:
    for replicas in (2, 3):
        assert explored(NonE2E, replicas=replicas, nodes=3, most_states=40_000).violations == ()


def test_the_algorithm_as_printed_lets_two_in() -> None:
    [violation] = explored(NonE2ELiteral, replicas=1, nodes=3, requests=2).violations
    assert violation.what.startswith("k: 2 inside")
