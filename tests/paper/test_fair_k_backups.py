"""FK section 5 sentence by sentence: backups at successors, takeover, figure 6, and what the text leaves open."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest

from fairgate.lab.survival import by_definition, catastrophe, lost_states, none_lost
from fairgate.sim.config import Config, backup_stack
from fairgate.sim.run import simulate

SEEDS = range(10)


# "The successor nodes of a node i store the state information of node i."


def test_every_step_that_says_something_is_copied_to_each_successor() -> None:
    result = simulate(Config(nodes=20, requests=3, stack=backup_stack(census=False), options={"backups": 3}))
    assert result.messages["hm.copy"] == result.messages["hm.copied"]
    assert result.messages["hm.copy"] % 3 == 0


# "Thus when a node i fails, one of its successors in the replica set will receive the message."


def test_more_crashes_than_backups_are_survived_one_by_one() -> None:
    """Node j copies what it took over to its own successors, so a single backup is enough if crashes are far apart."""
    config = Config(
        nodes=20, requests=4, cs=2.0, faults="crash:*12@30+20", stack=backup_stack(census=False), options={"backups": 1}
    )
    result = simulate(config)
    assert result.violations == 0


# "Such a scenario can be detected when a node receives a message destined to an identifier for which [...] it does not
# have the state information."


def test_a_loss_is_noticed_without_a_message() -> None:
    """Node 7 never asks, and nobody sends it anything: its loss is noticed at once all the same."""
    stack, options = backup_stack(), {"backups": 0}
    config = Config(nodes=10, rate=0.001, requests=1, faults="crash:7@1", stack=stack, options=options, marks=True)
    result = simulate(config)
    assert result.marks["an identity was lost"] == 1
    assert "a message came for an identity that is not here" not in result.marks


# "The probability of p back up nodes failing simultaneously is f^p [...] for p = 6 and f = 0.01, the probability is
# 10^-12."


def test_the_probability_is_that_of_one_node_and_not_of_a_network() -> None:
    assert pytest.approx(1e-12) == 0.01**6
    some_node_lost = 1 - none_lost(10_000, 100, 2)
    assert some_node_lost == pytest.approx(10_000 * 0.01**3, rel=0.05)  # for each of the nodes, it and its backups


# Figure 6.


def test_the_law_counts_what_it_should() -> None:
    order = list(range(9))
    for crashed in (2, 4, 6):
        for backups in (0, 1, 2):
            sets = [set(chosen) for chosen in combinations(order, crashed)]
            kept = [one for one in sets if not lost_states(order, one, backups)]
            assert none_lost(9, crashed, backups) == pytest.approx(len(kept) / len(sets))


@pytest.mark.parametrize(
    ("share", "backups", "all_states", "tree", "carriers"), [(0.2, 4, 0.98, 0.99, 1.0), (0.5, 6, 0.69, 0.81, 0.97)]
)
def test_success_depends_on_its_definition(
    share: float, backups: int, all_states: float, tree: float, carriers: float
) -> None:
    assert none_lost(100, int(share * 100), backups) == pytest.approx(all_states, abs=0.005)
    found = [by_definition((seed, share))[backups] for seed in SEEDS]
    means = [fmean(each) for each in zip(*found, strict=True)]
    assert means == pytest.approx((all_states, tree, carriers), abs=0.05)


def test_four_backups_against_20_percent_and_six_against_50_percent() -> None:
    """FK: above 0.95 and above 0.8. The second holds only if states may be lost that some waiting node needs."""
    assert sum(simulate(catastrophe(seed, 0.2, 4)).violations == 0 for seed in SEEDS) >= 9
    assert sum(simulate(catastrophe(seed, 0.5, 6)).violations == 0 for seed in SEEDS) in range(5, 9)


def test_the_number_of_backups_does_not_scale() -> None:
    """Four backups against 20 %: enough for 100 nodes, not for 10,000; likewise six against 50 %."""
    assert none_lost(100, 20, 4) > 0.95
    assert none_lost(1_000, 200, 4) < 0.8
    assert none_lost(10_000, 2_000, 4) < 0.1
    assert none_lost(10_000, 2_000, 7) > 0.95
    assert none_lost(1_000, 500, 6) < 0.05
    assert none_lost(10_000, 5_000, 15) < 0.95 < none_lost(10_000, 5_000, 16)


def test_with_a_census_the_gate_always_goes_on() -> None:
    for share, backups in ((0.2, 1), (0.5, 2), (0.5, 4)):
        config = Config(
            requests=3, faults=f"crash:{100 * share:g}%@500", stack=backup_stack(), options={"backups": backups}
        )
        assert simulate(config).violations == 0
