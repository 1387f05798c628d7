"""End-to-End and Non-End-to-End in random runs on settled and dynamic rings, with all faults that they survive.

Nobody is inside twice, and every live node gets in. Clocks start anywhere and drift apart. `make test` runs a sample,
`make stress` 6,000 runs of each protocol. Sigma has 3,000 runs on dynamic rings here, and 3,000 on settled ones in
test_dht_walks.py.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairgate.core.kbr import Routed
from fairgate.registry import PROTOCOLS
from fairgate.walks import dht, living
from fairgate.walks.dht import MS, OVERLAYS, SECOND, Conditions, over_overlay
from fairgate.walks.living import LIVING

DRIFT = 10_000  # parts per million, the default of the option `drift`
LEASE = 3 * SECOND
LENT = {"lease": LEASE, "overlay_wait": LEASE + LEASE // 50, "wait": True}
KEPT = {"overlay_wait": 60 * SECOND}  # no leases: the overlay waits for any node that may be alive
OPTIONS: dict[str, dict[str, Any]] = {
    "e2e": KEPT,
    "e2e_ft": {**LENT, "ping": SECOND},
    "non_e2e": KEPT,
    "non_e2e_faults": LENT,
    "sigma": {**LENT, "retry": 100},
}
SHORT, LONG = 40, 6_000


def conditions(protocol: str, settled: bool, rng: random.Random) -> Conditions:
    """Faults that the protocol survives.

    On dynamic rings few messages are lost: the rings take a node for dead whose answers to pings are lost, and then two
    nodes may serve one key (overlay/titles.py).
    """
    faults: dict[str, Any] = {"joins": rng.randint(0, 2), "leaves": rng.randint(0, 2)} if not settled else {}
    if OPTIONS[protocol] is not KEPT:
        faults["crashes"] = rng.randint(0, 1)
        faults["resets"] = rng.randint(0, 1 if faults["crashes"] else 2)
        faults["loss"] = rng.choice([0.0, 0.05, 0.2] if settled else [0.0, 0.05])
        faults["dup"] = rng.choice([0.0, 0.1])
        if settled:
            faults["joins"] = rng.randint(0, 2)
    return Conditions(
        requests=rng.randint(2, 5),
        think=rng.choice([100 * MS, SECOND]),
        stay=rng.choice([0, 300 * MS, 2 * SECOND]),
        cancel=rng.choice([0.0, 0.2]),
        drift=rng.choice([0, DRIFT]),
        until=rng.choice([5 * SECOND, 20 * SECOND]),
        **faults,
    )


def seeds(protocol: str, within: range) -> list[int]:
    """Even seeds are runs on settled rings, odd ones on dynamic rings."""
    return [seed for seed in within if protocol != "sigma" or seed % 2]


def walk(protocol: str, seed: int) -> dht.RunSummary:
    rng = random.Random(f"{protocol} {seed}")
    settled = seed % 2 == 0
    chosen = conditions(protocol, settled, rng)
    found = PROTOCOLS[protocol]
    assert issubclass(found, Routed)
    if settled:
        return dht.one_run(over_overlay(rng.choice(sorted(OVERLAYS)), found), seed, chosen, OPTIONS[protocol])
    return living.one_run(LIVING[rng.choice(sorted(LIVING))], found, seed, chosen, OPTIONS[protocol])


@pytest.mark.parametrize("protocol", OPTIONS)
def test_short(protocol: str) -> None:
    summaries = [walk(protocol, seed) for seed in seeds(protocol, range(SHORT))]
    assert sum(summary.entries for summary in summaries) > 5 * len(summaries)
    marks = set().union(*[summary.marks for summary in summaries])
    if protocol == "non_e2e_faults":
        assert {"a request was routed anew", "what a RELEASE had gathered was sent again"} & marks


@pytest.mark.stress
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("protocol", OPTIONS)
def test_many(protocol: str, part: int) -> None:
    for seed in seeds(protocol, range(SHORT + part, LONG, 5)):
        walk(protocol, seed)
