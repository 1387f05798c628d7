"""End-to-End (EE section IV.A): every state of small cases, on a circle in which a node knows only the next one.

So routes have several hops. Messages may overtake each other, and every node asks once unless a case says otherwise.
Time, by which requests are stamped, advances once, at any moment.
The larger cases are explored up to a number of states. papers/e2e.md has the table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from fairgate.check.case import MOST_NODES, Case
from fairgate.check.explore import CheckReport, Explorer
from fairgate.core.ids import NIL
from fairgate.core.numbers import COMPILED
from fairgate.protocols.e2e.protocol import E2E
from fairgate.registry import LAYERS
from tests.support.dht_check import SomeAsk
from tests.support.routes import Circle


class Circled(E2E):
    overlay = "circle"


class Forgetful(Circled):
    def named_heir(self) -> int:
        return NIL


def explored(
    protocol: type[E2E],
    most_states: int | None = None,
    replicas: int = 1,
    clients: Collection[int] = range(MOST_NODES),
    **bounds: Any,
) -> CheckReport:
    case = Case("e2e", ticks=1, options={"replicas": replicas}, **bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LAYERS, "circle", Circle)
        return Explorer(case, SomeAsk(case, protocol, clients)).run(most_states=most_states)


def test_two_nodes_and_one_replica() -> None:
    report = explored(Circled, nodes=2, requests=2)
    assert report.complete
    assert not report.violations
    assert (report.states, report.cyclic) == (39_384, 0)


@pytest.mark.skipif(not COMPILED, reason="too slow interpreted")
def test_three_nodes_and_one_replica() -> None:
    report = explored(Circled, nodes=3)
    assert report.complete
    assert not report.violations
    assert (report.states, report.cyclic) == (198_388, 0)


PAIRS = {(0, 1): 16_613, (0, 2): 10_678, (0, 3): 251, (1, 2): 30_544, (1, 3): 599, (2, 3): 408}  # clients -> states


@pytest.mark.parametrize("clients", PAIRS)
def test_four_nodes_of_which_any_two_ask(clients: tuple[int, int]) -> None:
    report = explored(Circled, nodes=4, clients=clients)
    assert (report.violations, report.complete, report.cyclic, report.states) == ((), True, 0, PAIRS[clients])


@pytest.mark.skipif(not COMPILED, reason="too slow interpreted")
@pytest.mark.parametrize(("clients", "states"), [((0, 3), 223_121), ((2, 3), 695_096)])
def test_four_nodes_and_two_replicas(clients: tuple[int, int], states: int) -> None:
    """The circle is 3, 1, 2, 0. Nodes 3 and 1 play the replicas. One client is itself a replica's node."""
    report = explored(Circled, nodes=4, replicas=2, clients=clients)
    assert (report.violations, report.complete, report.cyclic, report.states) == ((), True, 0, states)


@pytest.mark.parametrize(("nodes", "replicas"), [(4, 1), (2, 3), (3, 2), (4, 3)])
def test_larger_cases_have_no_violation_in_their_first_20_000_states(nodes: int, replicas: int) -> None:
    report = explored(Circled, 20_000, replicas, nodes=nodes)
    assert not report.complete
    assert not report.violations


def test_the_checker_finds_two_inside_if_release_names_no_heir() -> None:
    report = explored(Forgetful, 60_000, nodes=3)
    assert report.violations[0].what.startswith("k: 2 inside")
