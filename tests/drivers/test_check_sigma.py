"""Sigma, explored whole or as far as it goes: tests/dht_check.py says what is bounded."""

from __future__ import annotations

import pytest

from fairgate.core.numbers import COMPILED
from fairgate.protocols.sigma import Sigma, SigmaLiteral
from tests.dht_check import explored

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
    for case in ({}, {"nodes": 4, "replicas": 4, "quorum": 3, "resets": 1}, {"requests": 2}):
        assert not explored(Sigma, most_states=STATES, **case).violations
