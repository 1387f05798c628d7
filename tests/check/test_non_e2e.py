"""The checker over Non End-to-End on a ring in which everybody knows the next node only: many hops, many entries.

Bounds: messages in any order, clocks that go on by one second, and who holds votes asks again after one. With one
replica, or with two and two clients, four nodes can be seen whole; of more only the first states are.
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
    """On a ring, with replica i at the i-th node from the last."""

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
    """The first so many nodes ask."""
    options = {"replicas": replicas, "retry": SECOND, "chord_successors": 1, "chord_fingers": 0}
    case = Case(protocol.about.name, ticks=1, options=options, **bounds)
    return Explorer(case, SomeAsk(case, placed(protocol), range(clients))).run(most_states=most_states)


def test_four_nodes_and_one_replica_whole() -> None:
    report = explored(NonE2E, replicas=1, nodes=4)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (61_036, 198_234, 33)


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_nodes_two_replicas_and_two_clients_whole() -> None:
    """The clients own no replica: their REQUESTs pass each other's entries."""
    report = explored(NonE2E, replicas=2, nodes=4, clients=2)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (286_376, 1_106_006, 43)


def test_with_cancels_whole() -> None:
    report = explored(NonE2E, replicas=1, nodes=3, cancels=2)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (6_224, 19_090, 20)


def test_more_replicas_in_part() -> None:
    for replicas in (2, 3):
        assert explored(NonE2E, replicas=replicas, nodes=3, most_states=40_000).violations == ()


def test_the_text_as_printed_lets_two_in() -> None:
    [violation] = explored(NonE2ELiteral, replicas=1, nodes=3, requests=2).violations
    assert violation.what.startswith("k: 2 inside")
