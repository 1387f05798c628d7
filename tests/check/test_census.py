"""Exhaustive checks of live gates: members that join and crash, and a census in each view."""

from __future__ import annotations

import pytest

from fairgate.arguments import MANY, ONE
from fairgate.check.case import Case
from fairgate.check.census import CensusModel
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import Explorer
from fairgate.errors import BadInput
from fairgate.live.live_protocols import live_protocols, options_of
from fairgate.registry import LAYERS
from tests.mutants.test_regenerate import MUTANTS, DoesNotFreeze

NEWCOMER = {  # number of states with three nodes, one of which only becomes a member when it requests
    "fair_k": 41_944,
    "fair_k_bounded": 42_228,
    "one_line": 12_724,
    "naimi_trehel": 13_694,
    "bv95": 15_548,
    "raymond": 46_730,
    "ricart_agrawala": 46_730,
    "suzuki_kasami": 27_872,
    "srimani_reddy": 27_284,
    "raymond_tree": 13_750,
    "maekawa": 77_006,
    "centralised": 12_724,
}
CRASH = {  # number of states with three nodes, one of which may crash at any moment
    "fair_k": 130_602,
    "fair_k_bounded": 130_222,
    "one_line": 34_776,
    "naimi_trehel": 38_627,
    "bv95": 43_447,
    "raymond": 288_008,
    "ricart_agrawala": 274_146,
    "suzuki_kasami": 118_387,
    "srimani_reddy": 116_241,
    "raymond_tree": 37_859,
    "maekawa": 264_288,
    "centralised": 34_771,
}
QUICK = (ONE, MANY)
SORTED = options_of("bv95")
MORE = [
    (Case("bv95", census=True, crashes=1, joins=1, options=SORTED), 435_822),
    (Case("bv95", census=True, crashes=2, options=SORTED), 186_384),
    (Case("bv95", census=True, crashes=1, cancels=1, options=SORTED), 162_231),
    (Case("bv95", census=True, crashes=1, requests=2, options=SORTED), 903_466),
    (Case("bv95", census=True, crashes=1, requests=2, again=True, options=SORTED), 1_058_742),
    (Case("naimi_trehel", census=True, crashes=1, joins=1), 397_660),
    (Case("naimi_trehel", census=True, crashes=2), 164_047),
    (Case("naimi_trehel", census=True, crashes=1, cancels=1), 145_362),
    (Case("naimi_trehel", census=True, crashes=1, requests=2), 354_482),
    (Case("centralised", k=2, census=True, crashes=1), 65_346),
    (Case("fair_k", k=2, census=True, crashes=1), 47_839),
    (Case("one_line", k=2, census=True, crashes=1), 147_462),
]


def states(case: Case) -> int:
    report = Explorer(case, CensusModel(case)).run()
    assert report.violations == ()
    assert report.complete
    return report.states


def test_every_live_protocol_is_covered() -> None:
    assert list(NEWCOMER) == live_protocols(), "add it to NEWCOMER in this file, in the order of the registry"
    assert list(CRASH) == live_protocols(), "add it to CRASH in this file, in the order of the registry"


@pytest.mark.parametrize(
    ("case", "count"),
    [
        (Case("bv95", nodes=2, requests=2, census=True, crashes=1, again=True, options=SORTED), 1_941),
        (Case("bv95", nodes=2, requests=3, census=True, joins=1, again=True, options=SORTED), 4_310),
        (Case("bv95", nodes=2, requests=2, census=True, exclusions=1, again=True, options=SORTED), 8_028),
    ],
)
def test_a_node_that_leaves_may_ask_again_in_the_same_step(case: Case, count: int) -> None:
    assert states(case) == count


@pytest.mark.parametrize("protocol", NEWCOMER)
def test_one_of_three_joins(protocol: str) -> None:
    assert states(Case(protocol, census=True, joins=1, options=options_of(protocol))) == NEWCOMER[protocol]


@pytest.mark.parametrize(
    "protocol", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.stress) for name in CRASH]
)
def test_one_of_three_crashes(protocol: str) -> None:
    assert states(Case(protocol, census=True, crashes=1, options=options_of(protocol))) == CRASH[protocol]


@pytest.mark.stress
@pytest.mark.parametrize(("case", "expected"), MORE)
def test_larger_cases(case: Case, expected: int) -> None:
    assert states(case) == expected


@pytest.mark.parametrize("mutant", MUTANTS)
def test_one_newcomer_is_enough_to_kill_every_mutant(mutant: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAYERS, "regenerate", mutant)
    case = Case("naimi_trehel", census=True, joins=1)
    assert len(Explorer(case, CensusModel(case)).run().violations) == 1


def test_a_counterexample_can_be_reenacted_and_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAYERS, "regenerate", DoesNotFreeze)
    case = Case("naimi_trehel", census=True, joins=1)
    explorer = Explorer(case, CensusModel(case))
    (violation,) = explorer.run().violations
    way = Counterexample(explorer.model, violation)
    assert violation.what.startswith("k: 2 inside")
    assert sorted(way.reenactment.inside) != []
    assert sum("view" in line for line in way.picture()) >= 2
    with pytest.raises(BadInput, match="a scenario has no views"):
        way.scenario()


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (Case("naimi_trehel", census=True, resets=1), "resets cannot be combined with census"),
        (Case("centralised", k=2, census=True, crashes=1, joins=1), "a view needs 2 members"),
        (Case("naimi_trehel", joins=1), "joins needs census"),
    ],
)
def test_an_invalid_case_is_refused(case: Case, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        CensusModel(case)
