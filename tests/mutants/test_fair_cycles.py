"""Liveness where runs need not end: the checker reports a storm that blocks a request, but not harmless chatter."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from fairgate.check.case import Case
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import Explorer
from fairgate.check.fair_cycles import parts
from fairgate.check.liveness import Graph
from fairgate.check.model import Model
from fairgate.scenario.run import run_scenario
from fairgate.trace.replay import replay
from tests.mutants.mutate import mutant, speak

CASE = Case("centralised", nodes=3)
HANDLER = """    def on_request(self, m: Request) -> None:
        self.serve(m.r)
"""
STORM = """    def on_request(self, m: Request) -> None:
        if self.me != self.root:
            self.out.send(self.root, m)  # ask again
        elif self.free and self.out.choose(2):
            self.out.send(m.r, m)  # not now
        else:
            self.serve(m.r)
"""
CHATTER = """    def on_start(self) -> None:
        if self.me == self.root:
            self.out.send(self.me, Request(NIL))

    def on_request(self, m: Request) -> None:
        if m.r == NIL:
            self.out.send(self.me, m)
        else:
            self.serve(m.r)
"""
DEAF = CHATTER.replace("self.serve(m.r)", "self.queue.append(m.r)")


def explorer_of(handler: str, monkeypatch: pytest.MonkeyPatch, workers: int = 1) -> Explorer:
    module = mutant("protocols.centralised", HANDLER, handler)
    speak(module, monkeypatch)
    return Explorer(CASE, Model(CASE, module.Centralised), workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_storm_is_found_and_its_counterexample_replays(
    workers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server may send a request back any number of times, and its client asks again each time. So the client can
    enter, but may also wait forever."""
    explorer = explorer_of(STORM, monkeypatch, workers)
    report = explorer.run()
    assert report.complete
    assert report.cyclic > 0
    (violation,) = report.violations
    assert violation.what == "liveness: node 1 may wait forever, in a fair cycle of 2 steps"
    assert [what for what, *_ in violation.path] == ["acquire", "message", "message"]
    assert violation.cycle == 2
    assert_round(explorer.model, violation.path, violation.cycle)
    way = Counterexample(explorer.model, violation)
    way.write_journal(tmp_path / "way.ndjson")
    make = explorer.model.steps.make
    assert len(list(replay(tmp_path / "way.ndjson", make))) == len(way.reenactment.kept.steps)
    text = way.scenario()
    assert run_scenario(text, lambda *_: make) == text


def assert_round(model: Model, path: tuple[object, ...], cycle: int) -> None:
    """The last `cycle` steps lead back to the state in which they began."""
    states = [model.first()]
    for wanted in path:
        (after,) = [after for action, after, _ in model.successors(states[-1]) if action == wanted]
        states.append(after)
    assert states[-1] == states[-1 - cycle]


def test_endless_chatter_alone_is_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message circulates forever, but every request is in flight meanwhile, so a fair run delivers and grants it."""
    report = explorer_of(CHATTER, monkeypatch).run()
    assert (report.complete, report.violations) == (True, ())
    assert report.cyclic == report.states


def test_a_node_that_can_never_enter_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same chatter, but requests are never served."""
    (violation,) = explorer_of(DEAF, monkeypatch).run().violations
    assert violation.what == "liveness: from here node 1 can never enter"
    assert violation.cycle == 0


def graph(edges: dict[int, list[int]], waiting: int) -> Graph:
    made = Graph()
    for targets in edges.values():
        made.extend([len(targets)], array("i", targets), array("i", [waiting]))
    return made


def test_parts_of_a_graph() -> None:
    """Strongly connected parts: a cycle of three, a cycle of two, a state with an edge to itself, and one without."""
    edges = {0: [1], 1: [2, 4], 2: [3], 3: [1], 4: [5, 6], 5: [4], 6: [6, 7], 7: []}
    assert sorted(parts(graph(edges, waiting=1), 0)) == [[1, 2, 3], [4, 5], [6]]
    assert list(parts(graph(edges, waiting=2), 0)) == []
    assert sorted(parts(graph({0: [1, 2], 1: [0], 2: [0, 3], 3: [2]}, waiting=1), 0)) == [[0, 1, 2, 3]]
