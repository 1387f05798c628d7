"""Exhaustive checks of backups: a crash at any moment, and what breaks if messages do not wait for the copies."""

from __future__ import annotations

import pytest

from fairgate.check.case import Case
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import Explorer, FoundViolation
from fairgate.check.homes import HomesModel
from fairgate.errors import BadInput

LETTER = {"hold": False}  # the paper's text: nothing waits for the copies


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case("fair_k", nodes=2, network="fifo", backups=1, ticks=4), 2_695),
        (Case("fair_k", nodes=2, network="fifo", backups=1, crashes=1, ticks=4), 34_223),
        (Case("fair_k", nodes=2, k=2, requests=2, network="fifo", backups=1, crashes=1, ticks=4), 8_165),
        (Case("one_line", nodes=2, network="fifo", backups=1, crashes=1, ticks=4), 27_044),
        (Case("centralised", nodes=2, backups=1, crashes=1, ticks=4), 58_273),
        pytest.param(Case("naimi_trehel", nodes=2, backups=1, crashes=1, ticks=4), 207_385, marks=pytest.mark.stress),
        pytest.param(
            Case("fair_k", nodes=2, requests=2, network="fifo", backups=1, crashes=1, ticks=4),
            609_354,
            marks=pytest.mark.stress,
        ),
    ],
)
def test_a_crash_at_any_moment_is_survived(case: Case, expected: int) -> None:
    report = Explorer(case, HomesModel(case)).run()
    assert report.violations == ()
    assert report.complete
    assert report.states == expected


class AnyFences(HomesModel):
    """Fences may fall, so that what else goes wrong is seen."""

    def raise_fence(self, state: list[int], slot: int, fence: int) -> str:
        return ""


def broken(nodes: int, fences: bool = True, mortal: list[int] | None = None) -> tuple[HomesModel, FoundViolation]:
    case = Case("fair_k", nodes=nodes, backups=1, crashes=1, ticks=4, options=LETTER)
    model = HomesModel(case) if fences else AnyFences(case)
    model.mortal = mortal or model.mortal
    (violation,) = Explorer(case, model).run().violations
    return model, violation


def test_to_the_letter_a_fence_is_given_twice() -> None:
    """The holder of an idle token enters and dies before the copy of its new state arrives."""
    model, violation = broken(2)
    assert violation.what == "fence: slot 0 gave fence 1 after 1"
    assert len(violation.path) == 4
    way = Counterexample(model, violation)
    assert any("crash" in line for line in way.picture())
    with pytest.raises(BadInput, match="a scenario does not tell nodes of crashes"):
        way.scenario()


def test_to_the_letter_a_turn_comes_to_an_identity_that_does_not_know_of_its_request() -> None:
    """A requester dies: its request arrives, the copy of its state does not."""
    _, violation = broken(2, fences=False)
    assert violation.what.startswith("assertion: a turn came to a node that never asked for one")
    assert len(violation.path) == 4


def test_to_the_letter_a_token_is_doubled() -> None:
    """The holder passes its token on and dies: its successor's copy still has the token."""
    _, violation = broken(3, fences=False, mortal=[0])
    assert violation.what == "k: 2 inside, k is 1 (node 1 came last)"
    assert len(violation.path) == 7


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (Case("fair_k", backups=3), "backups must be 0..2"),
        (Case("fair_k", backups=1, resets=1), "backups cannot be combined with resets or census"),
        (Case("fair_k", backups=1, crashes=1), "set how far the clocks advance, for example ticks=4"),
        (Case("fair_k", census=True, backups=1), "backups cannot be combined with resets or census"),
    ],
)
def test_an_invalid_case_is_refused(case: Case, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        HomesModel(case)
