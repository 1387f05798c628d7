"""Sigma and the strawman in random runs (tests/support/dht_walk.py): safe except after resets, and never stuck.

`make test` runs a sample, `make stress` 3,000 runs of each.
"""

import random

import pytest

from fairgate.protocols.sigma.replica import DRIFT
from tests.support.dht_walk import MS, SECOND, Outcome, Spec, make_stack, run

PROTOCOLS = ("sigma", "strawman")
GROUPS = ({"replicas": 3}, {"replicas": 4, "quorum": 3}, {"replicas": 5})
SHORT, LONG = 80, 3_000
REORDERED = {"lease": 0, "retry": 0, "prime": False}  # only the messages of the paper


def random_spec(rng: random.Random) -> Spec:
    k = rng.choice([1, 1, 1, 2])
    group = rng.choice(GROUPS) if k == 1 else {"replicas": 5, "quorum": 2}
    options = {
        **group,
        "lease": rng.choice([SECOND, 10 * SECOND]),
        "responses": rng.choice(["direct", "routed"]),
        "retry": rng.choice([80, 100]),
        "prime": rng.random() < 0.5,
    }
    return Spec(
        nodes=rng.randint(3, 7),
        k=k,
        requests=rng.randint(1, 3),
        think=rng.choice([0, 400 * MS]),
        stay=rng.choice([0, 100 * MS, 1500 * MS]),
        late=rng.choice([0.0, 0.1]),
        loss=rng.choice([0.0, 0.1, 0.2]),
        dup=rng.choice([0.0, 0.1, 0.3]),
        resets=rng.choice([0, 0, 1, 4]),
        crashes=rng.choice([0, 0, 1]),
        drift=rng.choice([0, DRIFT]),
        options=options,
    )


def walk(protocol: str, seeds: range) -> list[Outcome]:
    make = make_stack(protocol)
    found = []
    for seed in seeds:
        spec = random_spec(random.Random(f"{protocol} {seed}"))
        outcome = run(make, spec, seed)
        assert not outcome.broken or outcome.excused, f"{outcome.broken}: {outcome.why} [seed {seed}] {spec}"
        found.append(outcome)
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_short(protocol: str) -> None:
    outcomes = walk(protocol, range(SHORT))
    assert sum(outcome.entries for outcome in outcomes) > 3 * SHORT
    assert {"lease over", "a lease is over"} <= set().union(*[outcome.marks for outcome in outcomes])


@pytest.mark.stress
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_long(protocol: str, part: int) -> None:
    outcomes = walk(protocol, range(part * LONG // 4, (part + 1) * LONG // 4))
    assert sum(outcome.excused for outcome in outcomes) < LONG // 100


def test_sigma_needs_no_repeated_questions_if_nothing_is_lost() -> None:
    make = make_stack("sigma")
    for seed in range(60):
        spec = Spec(
            nodes=8,
            only_clients_ask=True,
            think=100 * MS,
            stay=300 * MS,
            late=0.1,
            options={"replicas": 5, **REORDERED},
        )
        outcome = run(make, spec, seed)
        assert not outcome.broken, f"{outcome.broken}: {outcome.why} [seed {seed}]"


def literally(seeds: range, fifo: bool) -> list[str]:
    spec = Spec(nodes=8, only_clients_ask=True, fifo=fifo)
    return [run(make_stack("sigma_literal"), spec, seed).broken for seed in seeds]


def test_the_figures_to_the_letter_are_neither_safe_nor_live() -> None:
    assert {"k", "hang"} <= set(literally(range(60), fifo=False))
