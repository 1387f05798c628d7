"""Sigma with zones in random runs (tests/support/dht_walk.py) in which members join, leave, fail and lose their memory.

No lost memory excuses anything here: a member that may have forgotten a vote waits until it has expired. `make test`
runs a sample, `make stress` 1,200 runs.
"""

import random

import pytest

from fairgate.protocols.sigma.replica import DRIFT
from tests.support.dht_walk import MS, SECOND, Outcome, Spec, make_stack, run

SHORT, LONG = 60, 1_200


def random_spec(rng: random.Random) -> Spec:
    k = rng.choice([1, 1, 1, 2])
    nodes = rng.randint(3, 8)
    options = {
        **(rng.choice([{"replicas": 3}, {"replicas": 4, "quorum": 3}]) if k == 1 else {"replicas": 5, "quorum": 2}),
        "lease": rng.choice([SECOND, 3 * SECOND]),
        "responses": rng.choice(["direct", "routed"]),
        "prime": rng.random() < 0.5,
    }
    return Spec(
        nodes=nodes,
        k=k,
        requests=rng.randint(1, 3),
        think=rng.choice([0, 400 * MS]),
        stay=rng.choice([0, 100 * MS, 1500 * MS]),
        late=rng.choice([0.0, 0.1]),
        loss=rng.choice([0.0, 0.1, 0.2]),
        dup=rng.choice([0.0, 0.1, 0.3]),
        resets=rng.choice([0, 0, 1, 4]),
        crashes=rng.choice([0, 0, 1]),
        joins=rng.randint(0, nodes - 2),
        absences=rng.choice([0, 1, 4]),
        drift=rng.choice([0, DRIFT]),
        faults_until=12 * SECOND,
        options=options,
    )


def walk(seeds: range) -> list[Outcome]:
    make = make_stack("sigma_zones")
    found = []
    for seed in seeds:
        spec = random_spec(random.Random(f"zones {seed}"))
        outcome = run(make, spec, seed)
        assert not outcome.broken, f"{outcome.broken}: {outcome.why} [seed {seed}] {spec}"
        found.append(outcome)
    return found


def test_short() -> None:
    outcomes = walk(range(SHORT))
    assert sum(outcome.entries for outcome in outcomes) > 3 * SHORT
    marks = set().union(*[outcome.marks for outcome in outcomes])
    assert {"a member is gone", "a member that joined is asked", "lease over"} <= marks


@pytest.mark.stress
@pytest.mark.parametrize("part", range(4))
def test_long(part: int) -> None:
    walk(range(part * LONG // 4, (part + 1) * LONG // 4))
