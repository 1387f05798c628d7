"""End-to-End, every state of small cases, on a circle of nodes that know the next one only: ways of several hops.

Messages overtake each other freely; every node asks once. The larger cases are looked at as far as the bound goes.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.check.case import Case
from fairgate.check.explore import Explorer, Report
from fairgate.check.model import Model
from fairgate.core.ids import NIL
from fairgate.protocols.e2e import E2E
from fairgate.registry import LAYERS
from tests.routes import Circle


class Circled(E2E):
    overlay = "circle"


class Forgetful(Circled):
    def named_heir(self) -> int:
        return NIL


def explored(protocol: type[E2E], most_states: int | None = None, replicas: int = 1, **bounds: Any) -> Report:
    case = Case("e2e", options={"replicas": replicas}, **bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LAYERS, "circle", Circle)
        return Explorer(case, Model(case, protocol)).run(most_states=most_states)


def test_two_nodes_and_one_replica() -> None:
    report = explored(Circled, nodes=2, requests=2)
    assert report.complete
    assert not report.violations
    assert (report.states, report.cyclic) == (11_292, 0)


def test_three_nodes_and_one_replica() -> None:
    report = explored(Circled, nodes=3)
    assert report.complete
    assert not report.violations
    assert (report.states, report.cyclic) == (39_096, 0)


@pytest.mark.parametrize(("nodes", "replicas"), [(4, 1), (2, 3), (3, 2), (4, 3)])
def test_larger_ones_as_far_as_20_000_states(nodes: int, replicas: int) -> None:
    report = explored(Circled, 20_000, replicas, nodes=nodes)
    assert not report.complete
    assert not report.violations


def test_it_finds_what_happens_when_release_names_no_heir() -> None:
    report = explored(Forgetful, 60_000, nodes=3)
    assert report.violations[0].what.startswith("k: 2 inside")
