"""Each mutant of Non End-to-End's leases and repairs breaks a property that is named."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.mutex import Mutex
from tests.dht_runs import SECOND, Weather, on, one_run
from tests.mutants.mutate import caught, mutant

LEASES = {"lease": 3 * SECOND}
STORM = Weather(crashes=1, resets=1, loss=0.1, dup=0.1, until=6 * SECOND, stay=2 * SECOND, patience=600 * SECOND)
SILENCE = Weather(loss=0.7, until=30 * SECOND, stay=20 * SECOND, patience=900 * SECOND)
HEARD = Weather(crashes=1, detect=2 * SECOND, until=6 * SECOND, patience=600 * SECOND)


def storm(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(on("strides", protocol), seed, STORM, LEASES)


def heard(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(on("strides", protocol), seed, HEARD)


def silence(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(on("strides", protocol), seed, SILENCE, LEASES)


MUTANTS = {
    "a vote counts longer than its lease": (
        "lease.questions[m.n] + self.lease)",
        "self.now + 9 * self.lease)",
        {"k"},
        silence,
    ),
    "a Ping renews for less than a third of a lease": (
        '        if held:\n            self.set_timer(f"{VOTE}{m.replica}", self.hold)\n',
        '        if held:\n            self.set_timer(f"{VOTE}{m.replica}", self.hold // 9)\n',
        {"k", "liveness"},
        storm,
    ),
    "a replica never takes its vote back": (
        '        if replica.owner and self.lease:\n            self.set_timer(f"{VOTE}{number}", self.hold)',
        "        pass",
        {"liveness"},
        storm,
    ),
    "a Ping renews at the owner only": (
        '        if held:\n            self.set_timer(f"{VOTE}{m.replica}", self.hold)\n',
        "",
        {"k"},
        storm,
    ),
    "who waits asks once": (
        "        if self.lease or self.crashed:\n            self.ask_later()\n",
        "        pass\n",
        {"liveness"},
        storm,
    ),
    "the news of a crash is not used": (
        "        self.crashed.add(peer)\n",
        "        return\n",
        {"liveness"},
        heard,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected, walker = MUTANTS[name]
    assert caught(mutant("protocols.non_e2e_faults", old, new), "NonE2EFaults", seeds=400, walker=walker) in expected
