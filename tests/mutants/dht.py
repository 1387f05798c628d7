"""Random runs that catch mutants of the protocols on a DHT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairgate.core.kbr import Routed
from tests.support.dht_walk import MS, SECOND, Spec, make_stack, run

UNTIMED = {"replicas": 3, "lease": 0, "retry": 0, "prime": False, "backoff": 100 * MS}
REORDER = Spec(nodes=6, only_clients_ask=True, requests=4, think=20 * MS, stay=600 * MS, late=0.2, options=UNTIMED)
DOUBLED = Spec(
    nodes=6,
    only_clients_ask=True,
    requests=4,
    think=20 * MS,
    stay=600 * MS,
    late=0.2,
    dup=0.3,
    faults_until=20 * SECOND,
    options={**UNTIMED, "retry": 100},
)
CROWDED = Spec(nodes=24, only_clients_ask=True, requests=2, stay=0, options={**UNTIMED, "replicas": 8, "quorum": 6})
LEASED = Spec(nodes=6, stay=1500 * MS, loss=0.2, late=0.1, options={"replicas": 3, "lease": SECOND, "prime": False})
APART = 300_000  # parts per million: clocks that drift apart far enough to matter in a short run
DRIFTING = Spec(
    nodes=9,
    requests=3,
    think=0,
    stay=3 * SECOND,
    loss=0.3,
    faults_until=60 * SECOND,
    drift=APART,
    options={"replicas": 3, "lease": 2 * SECOND, "drift": APART, "prime": False},
)
SILENT = replace(LEASED, loss=0.4, stay=6 * SECOND, faults_until=30 * SECOND)  # several renewals in a row are lost


def first_broken(protocol: type[Routed] | Any, spec: Spec, seeds: int) -> tuple[str, int]:
    """The first property that breaks, and the seed of that run. "" if the mutant survives all runs."""
    make = make_stack(protocol)
    for seed in range(seeds):
        outcome = run(make, spec, seed)
        if outcome.broken and not outcome.excused:
            return outcome.broken, seed
    return "", seeds


def messages(protocol: type[Routed] | Any, spec: Spec, seeds: int) -> int:
    make = make_stack(protocol)
    return sum([run(make, spec, seed).messages for seed in range(seeds)])
