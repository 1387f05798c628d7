"""Sigma, explored whole or as far as it goes: tests/support/dht_check.py says what is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from fairgate.check.model import State
from fairgate.core.numbers import COMPILED
from fairgate.protocols.sigma.protocol import Sigma, SigmaLiteral
from tests.support.dht_check import Placement, explored, placement
from tests.support.sigma_quotient import RELEASE, Quotient

FOUR: dict[str, Any] = {"nodes": 4, "replicas": 4, "quorum": 3}  # n = 3f + 1, m = 2f + 1
STATES = 4_000 if not COMPILED else 20_000  # of a case that is too large for a test


def test_one_reset_of_three_replicas_breaks_the_exclusion_as_figure_2_says() -> None:
    """2m - n = 1."""
    report = explored(Sigma, resets=1)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["k"]


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_three_replicas_and_two_clients_are_known_to_the_last_state() -> None:
    report = explored(Sigma)
    assert report.violations == ()
    assert report.complete
    assert (report.states, report.transitions, report.depth, report.cyclic) == (133_779, 495_478, 25, 0)


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_the_figures_to_the_letter_hang() -> None:
    report = explored(SigmaLiteral)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["liveness"]


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_the_figures_to_the_letter_let_two_in() -> None:
    report = explored(SigmaLiteral, requests=2)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["k"]


def test_nothing_breaks_at_the_beginning() -> None:
    """The first states of: three replicas; four, of which three are needed, with one reset; two requests each."""
    for case in ({}, {**FOUR, "resets": 1}, {"requests": 2}):
        assert not explored(Sigma, most_states=STATES, **case).violations


# Up to what makes no difference (tests/support/sigma_quotient.py).


def walked(model: Placement, walks: int) -> Iterator[State]:
    """The states of random walks, each to its end."""
    random = Random(1)
    for _ in range(walks):
        state = model.first()
        while found := model.successors(state):
            yield state
            state = random.choice(found)[1]


def whole(model: Placement) -> Iterator[State]:
    seen = {model.first()}
    level = list(seen)
    while level:
        yield from level
        level = list({after for state in level for _, after, _ in model.successors(state)} - seen)
        seen.update(level)


def differs(model: Placement, quotient: Quotient, state: State) -> bool:
    """Do the steps from a state, and from the one that stands for it, lead to different ones?

    A step that leads from a state to one that the same stands for is none: of these there may be more, but no circle,
    since each takes a message out that makes no difference.
    """
    stands = quotient.of(state)
    real, told = [
        {(quotient.of(after), broken) for _, after, broken in model.successors(each)} | {(stands, "")}
        for each in (state, stands)
    ]
    return quotient.of(stands) != stands or real != told


def only_the_last_is_reset(**bounds: Any) -> Placement:
    model = placement(Sigma, **bounds)
    model.forgetful = range(model.n - 1, model.n)
    return model


@pytest.mark.parametrize("case", [{}, FOUR, {**FOUR, "resets": 1}, {"requests": 2}, {**FOUR, "requests": 2}])
def test_what_is_left_out_makes_no_difference(case: dict[str, Any]) -> None:
    model = only_the_last_is_reset(**case)
    quotient = Quotient(model)
    assert not any(differs(model, quotient, state) for state in walked(model, 20))


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_it_makes_none_in_any_state_of_three_replicas() -> None:
    model = only_the_last_is_reset()
    quotient = Quotient(model)
    assert sum(not differs(model, quotient, state) for state in whole(model)) == 133_779


class NoReleases(Quotient):
    """Leaves out too much."""

    def of(self, concrete: State) -> State:
        return super().of(tuple([each for each in concrete if RELEASE not in str(self.things[each])]))


def test_it_is_noticed_if_too_much_is_left_out() -> None:
    model = only_the_last_is_reset()
    quotient = NoReleases(model)
    assert any(differs(model, quotient, state) for state in walked(model, 5))


def test_three_replicas_up_to_what_makes_no_difference() -> None:
    """Of the 133,779 states: see above."""
    report = explored(Sigma, merged=True)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (1_927, 6_011, 15)


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_replicas_of_which_three_are_needed_whole() -> None:
    report = explored(Sigma, merged=True, **FOUR)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (80_645, 331_728, 31)


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_replicas_one_of_which_loses_its_memory_whole() -> None:
    """2m - n = 2: one memory may be lost. Which of the two that are no clients does not matter: they are alike."""
    report = explored(Sigma, merged=True, **FOUR, resets=1)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (235_066, 1_027_428, 32)
