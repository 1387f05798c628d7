"""The five properties on which FK builds its proof of liveness, and whose proofs it leaves out.

FK is "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems", section 3.4. Property 1 is an invariant of every
state (FairK.broken), so all walks, runs and checks test it. Properties 2 to 5 say that something happens in finite
time. The checker shows them for small cases: there is no dead end and no fair cycle in which it does not happen.
"""

from __future__ import annotations

from typing import cast

import pytest

from fairgate.check.case import Case
from fairgate.check.eventually import Eventually, Flight, Pending
from fairgate.check.explore import Explorer
from fairgate.check.model import Model
from fairgate.core.ids import NIL
from fairgate.core.node import Node
from fairgate.protocols.fair_k import FairK
from tests.mutants.mutate import mutant, speak

CASES = [
    Case("fair_k", nodes=3, k=1, requests=2),
    Case("fair_k", nodes=3, k=2, requests=2),
    Case("fair_k", nodes=4, k=2, requests=1),
    Case("fair_k", nodes=3, k=2, requests=2, options={"parent_on_child": False}),
]


def of(kind: str, flight: Flight) -> Flight:
    return [one for one in flight if one[2].tag == kind]


def nodes_of(nodes: list[Node]) -> list[FairK]:
    return cast("list[FairK]", nodes)


def privileged(nodes: list[Node], flight: Flight) -> set[int]:
    """The privileged queue: nodes that are the `next` of another, or to which the coordinator's state is on its way."""
    return {node.next for node in nodes_of(nodes)} - {NIL} | {dst for _, dst, _ in of("fk.token_locations", flight)}


def on_the_way(nodes: list[Node], flight: Flight) -> set[int]:
    """Property 2: a request for critical section reaches a root in finite time."""
    return {msg.key()[1] for _, _, msg in of("fk.request", flight)}


def in_token_queue(nodes: list[Node], flight: Flight) -> set[int]:
    """Property 3: a node in the token queue obtains the token in a finite time."""
    children = {node.child for node in nodes_of(nodes)} - {NIL}
    announced = {msg.key()[1] for _, _, msg in of("fk.child", flight)}
    return children | announced | {dst for _, dst, _ in of("fk.token", flight)}


def not_yet_privileged(nodes: list[Node], flight: Flight) -> set[int]:
    """Property 5: if a root is not in the privileged queue, it will enter the privileged queue in finite time.

    The coordinator has left that queue, and is not meant.
    """
    roots = {node.me for node in nodes_of(nodes) if node.parent == NIL and not node.is_coordinator}
    return roots - privileged(nodes, flight)


PROPERTIES: dict[str, Pending] = {
    "2": on_the_way,
    "3": in_token_queue,
    "4": privileged,  # if a node is in the privileged queue, it will become the coordinator in finite time
    "5": not_yet_privileged,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"n={case.nodes} k={case.k}, {case.requests} each")
@pytest.mark.parametrize("number", PROPERTIES)
def test_a_property_holds_in_finite_time(number: str, case: Case) -> None:
    report = Explorer(case, Eventually(case, PROPERTIES[number])).run()
    assert report.complete
    assert report.violations == ()
    assert report.states > 1_000


@pytest.mark.parametrize("number", PROPERTIES)
def test_a_property_is_not_void(number: str) -> None:
    """In some state something is pending: otherwise the test above would show nothing."""
    model = Eventually(CASES[1], PROPERTIES[number])
    states, seen = [model.first()], set()
    while states:
        state = states.pop()
        if model.waiting(state):
            return
        if state not in seen:
            seen.add(state)
            states += [after for _, after, _ in model.successors(state)]
    pytest.fail("nothing is ever pending")


# Each property has a mutant without it.

MUTANTS = {
    "2": ("            self.parent = NIL  # FK:RQ2\n", "            self.parent = self.me\n"),
    "3": ("            self.send_token(self.child)  # FK:RL1\n", "            pass\n"),
    "4": ("            self.assign(self.next)  # FK:TL2\n", "            pass\n"),
    "5": ("            self.next = m.r  # FK:PR2\n", "            pass\n"),
}


@pytest.mark.parametrize("number", PROPERTIES)
def test_a_mutant_without_the_property_is_caught(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = mutant("protocols.fair_k", *MUTANTS[number])
    speak(module, monkeypatch)
    found = {
        violation.what.partition(":")[0]
        for case in CASES[:2]
        for violation in Explorer(case, Eventually(case, PROPERTIES[number], module.FairK)).run().violations
    }
    assert found == {"liveness"}


def test_a_mutant_without_property_1_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mutant("protocols.fair_k", "        self.parent = m.r  # FK:PR4\n", "")
    speak(module, monkeypatch)
    case = Case("fair_k", nodes=3, k=1, options={"parent_on_child": False})
    (violation,) = Explorer(case, Model(case, module.FairK)).run().violations
    assert violation.what == "property 1: a root has no token, and nobody to ask for one (node 0)"
