"""Exhaustive checks of gates whose members are excluded while they live: the census gives away nothing they have."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.check.case import Case
from fairgate.check.census import CensusModel
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.model import State
from fairgate.errors import BadInput
from fairgate.live.live_protocols import live_protocols, options_of
from fairgate.registry import LAYERS, find_protocol
from tests.mutants import exclusions as mutants

TWO = {  # number of states with two nodes, one of which may be excluded: for k=1, and for k=2
    "fair_k": (2_960, 471),
    "fair_k_bounded": (2_960, 471),
    "one_line": (898, 1_284),
    "naimi_trehel": (994,),
    "bv95": (1_116, 471),
    "raymond": (1_549, 3_390),
    "ricart_agrawala": (1_549,),
    "suzuki_kasami": (994,),
    "srimani_reddy": (994, 471),
    "raymond_tree": (994,),
    "maekawa": (3_161,),
    "centralised": (898, 1_280),
}

THREE = {  # number of states with three nodes, one of which may be excluded
    ("fair_k", 1): 1_996_661,
    ("fair_k", 2): 624_547,
    ("fair_k_bounded", 1): 1_976_377,
    ("fair_k_bounded", 2): 625_150,
    ("one_line", 1): 161_745,
    ("one_line", 2): 478_138,
    ("naimi_trehel", 1): 234_576,
    ("bv95", 1): 300_223,
    ("bv95", 2): 594_800,
    ("raymond", 1): 6_801_378,
    ("suzuki_kasami", 1): 1_711_807,
    ("srimani_reddy", 1): 1_670_622,
    ("raymond_tree", 1): 214_394,
    ("centralised", 1): 161_247,
    ("centralised", 2): 472_724,
}


class Prepared(CensusModel):
    """Starts after a given run."""

    before: tuple[tuple[str, int], ...] = ()

    def first(self) -> State:
        state = super().first()
        for what, me in self.before:
            if what == "*":
                state = self.settled(state)
                continue
            action, state = next((a, after) for a, after, _ in self.successors(state) if (a[0], a[1]) == (what, me))
            self.opened = (*self.opened, action)
        return state


def explored(protocol: str, before: tuple[tuple[str, int], ...] = (), **bounds: Any) -> tuple[CheckReport, CensusModel]:
    case = Case(protocol, census=True, options=options_of(protocol), **{"exclusions": 1, **bounds})
    model = Prepared(case)
    model.before = before
    return Explorer(case, model).run(), model


def states(protocol: str, **bounds: Any) -> int:
    report, _ = explored(protocol, **bounds)
    assert report.violations == ()
    assert report.complete
    return report.states


def ks(protocol: str) -> tuple[int, ...]:
    return (1, 2) if find_protocol(protocol).about.many else (1,)


def test_every_live_protocol_is_covered() -> None:
    assert list(TWO) == live_protocols(), "add it to TWO in this file, in the order of the registry"
    assert {name: len(counts) for name, counts in TWO.items()} == {name: len(ks(name)) for name in TWO}


@pytest.mark.parametrize("protocol", TWO)
def test_one_of_two_is_excluded(protocol: str) -> None:
    assert tuple(states(protocol, nodes=2, k=k) for k in ks(protocol)) == TWO[protocol]


@pytest.mark.stress
@pytest.mark.parametrize(("protocol", "k"), THREE)
def test_one_of_three_is_excluded(protocol: str, k: int) -> None:
    assert states(protocol, k=k) == THREE[protocol, k]


@pytest.mark.stress
@pytest.mark.parametrize(("protocol", "count"), [("maekawa", 1_158_107), ("ricart_agrawala", 2_475_035)])
def test_one_of_three_is_excluded_with_channels_that_keep_the_order(protocol: str, count: int) -> None:
    assert states(protocol, network="fifo") == count


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.layer.__name__)
def test_a_mutant_is_caught(mutant: mutants.Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAYERS, "regenerate", mutant.layer)
    report, _ = explored(mutant.protocol, mutant.before, **mutant.bounds)
    assert [violation.what.split(":")[0] for violation in report.violations] == [mutant.breaks]


def test_a_counterexample_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAYERS, "regenerate", mutants.GivesAll)
    report, model = explored("naimi_trehel", nodes=2)
    (violation,) = report.violations
    assert any("view 2" in line for line in Counterexample(model, violation).picture())


def test_exclusions_need_a_census() -> None:
    with pytest.raises(BadInput, match="exclusions needs census"):
        Case("naimi_trehel", exclusions=1).check()
