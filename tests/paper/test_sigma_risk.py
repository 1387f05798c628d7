"""SG section III and figure 2: how likely it is that lost memories break mutual exclusion."""

import random
from math import exp

import pytest

from fairgate.lab.sigma_risk import advised, break_probability, resets_survived


def test_figure_2_the_papers_own_setting() -> None:
    """Replicas live for 10,000 s on average, clients stay for 10 s, n = 32 and m = 24: about 10^-40."""
    assert break_probability(32, 24, 10, 10_000) == pytest.approx(5.9e-40, rel=0.01)


def test_figure_2_a_larger_quorum_is_safer() -> None:
    chances = [break_probability(32, m, 10, 10_000) for m in range(17, 33)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 1e-6


def test_the_probability_is_that_of_random_memories() -> None:
    """Ten replicas, each lost with probability 0.2: 2 * 6 - 10 = 2 or more of them."""
    rng = random.Random(1)
    broken = sum(sum(rng.random() < 0.2 for _ in range(10)) >= 2 for _ in range(20_000))
    assert break_probability(10, 6, 1, 5) == pytest.approx(broken / 20_000, abs=0.015)


@pytest.mark.parametrize("f", [1, 2, 3, 10])
def test_3f_plus_1_replicas_and_2f_plus_1_votes_survive_f_resets(f: int) -> None:
    assert resets_survived(3 * f + 1, 2 * f + 1) == f
    assert advised(3 * f + 1) == (3 * f + 1, 2 * f + 1)


def test_the_default_of_two_of_three_votes_survives_none() -> None:
    assert resets_survived(3, 2) == 0
    assert resets_survived(5, 2, k=2) == 0
    assert advised(3) == (4, 3)


def test_any_number_of_replicas() -> None:
    """The number of choices among 100,000 replicas is no float."""
    assert break_probability(100_000, 50_001, 10, 10_000) == pytest.approx(1.0)
    assert break_probability(100_000, 66_667, 10, 10_000) == 0.0
    assert break_probability(10**9, 5 * 10**8 + 1, 1e-9, 1) == pytest.approx(1 - 2 / exp(1), rel=1e-4)
    assert [break_probability(3, 2, stay, 10) for stay in (0, 10, 20)] == [0.0, 1.0, 1.0]
