"""Sigma, explored completely or as far as a test allows. tests/support/dht_check.py describes the bounds."""

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
STATES = 4_000 if not COMPILED else 20_000  # how much is explored of a case that is too large for a test


def test_one_reset_of_three_replicas_breaks_mutual_exclusion_as_in_figure_2() -> None:
    """2m - n = 1."""
    report = explored(Sigma, resets=1)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["k"]


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_the_counts_of_three_replicas_and_two_clients_are_pinned() -> None:
    report = explored(Sigma)
    assert report.violations == ()
    assert report.complete
    assert (report.states, report.transitions, report.depth, report.cyclic) == (133_779, 495_478, 25, 0)


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_the_algorithm_as_printed_hangs() -> None:
    report = explored(SigmaLiteral)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["liveness"]


@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_the_algorithm_as_printed_lets_two_in() -> None:
    report = explored(SigmaLiteral, requests=2)
    assert [violation.what.split(":")[0] for violation in report.violations] == ["k"]


def test_no_violation_in_the_first_states_of_larger_cases() -> None:
    """Three replicas; four replicas with a quorum of three and one reset; two requests per client."""
    for case in ({}, {**FOUR, "resets": 1}, {"requests": 2}):
        assert not explored(Sigma, most_states=STATES, **case).violations


# Equivalent states merged into one (tests/support/sigma_quotient.py).


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
    """Do the steps from a state and from its representative lead to different representatives?

    A step that stays within the class does not count. One of the two may have more of these; they cannot form a cycle,
    since each removes a message that makes no difference.
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
def test_a_state_and_its_representative_have_the_same_successors(case: dict[str, Any]) -> None:
    model = only_the_last_is_reset(**case)
    quotient = Quotient(model)
    assert not any(differs(model, quotient, state) for state in walked(model, 20))


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_every_state_of_three_replicas_agrees_with_its_representative() -> None:
    model = only_the_last_is_reset()
    quotient = Quotient(model)
    assert sum(not differs(model, quotient, state) for state in whole(model)) == 133_779


class NoReleases(Quotient):
    """A wrong quotient that leaves out every RELEASE."""

    def of(self, concrete: State) -> State:
        return super().of(tuple([each for each in concrete if RELEASE not in str(self.things[each])]))


def test_a_quotient_that_leaves_out_too_much_is_detected() -> None:
    model = only_the_last_is_reset()
    quotient = NoReleases(model)
    assert any(differs(model, quotient, state) for state in walked(model, 5))


def test_three_replicas_with_equivalent_states_merged() -> None:
    """Unmerged there are 133,779 states: see above."""
    report = explored(Sigma, merged=True)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (1_927, 6_011, 15)


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_replicas_with_a_quorum_of_three_completely() -> None:
    report = explored(Sigma, merged=True, **FOUR)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (80_645, 331_728, 31)


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
def test_four_replicas_one_of_which_loses_its_memory_completely() -> None:
    """2m - n = 2: one reset is tolerated. Only one of the two nodes that are not clients is reset: they are alike."""
    report = explored(Sigma, merged=True, **FOUR, resets=1)
    assert (report.violations, report.complete, report.cyclic) == ((), True, 0)
    assert (report.states, report.transitions, report.depth) == (235_066, 1_027_428, 32)
