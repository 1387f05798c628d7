"""Mutants of RF's Algorithm 1: each has one line wrong, and must break a named property in walks with crashes.

RF is "Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector"; numbers in brackets are its lines.
"""

from dataclasses import replace

import pytest

from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.walks.failure_detectors import fd_walks
from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "requests before any process trusts it (8)": (
        "if not self.ready and self.unacked <= self.S:",
        "if not self.ready:",
        {"liveness"},
    ),
    "forgets a request that waited for the initialization (8)": (
        '                self.out.note("a request waited for the initialization")\n                self.request_cs()\n',
        '                self.out.note("a request waited for the initialization")\n',
        {"liveness"},
    ),
    "counts the replies of the dead (30)": ("        if j in self.crashed:  # RF:30", "        if False:", {"k"}),
    "forgets a waiting INIT (35)": ("            self.init_waits.add(j)", "            pass", {"liveness"}),
    "counts a crash twice (39)": ("        if j not in self.crashed:  # RF:39", "        if True:", {"k"}),
    "keeps the permission of the dead (42)": ("                self.perm_count -= 1  # RF:42\n", "", {"k"}),
    "still counts the dead (43)": ("            self.n -= 1  # RF:43\n", "", {"liveness"}),
    "does not check line 15 again when n changes (15)": (
        "            self.n -= 1  # RF:43\n            self.await_permissions()\n",
        "            self.n -= 1  # RF:43\n",
        {"liveness"},
    ),
    "does not tell itself of a crash, as in the paper": (
        "        self.learn_crash(j)\n",
        "",
        {"liveness"},
    ),
    "tells nobody else (48)": ("            self.out.send(i, Crash(j))  # RF:48", "            pass", {"liveness"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.raymond_fd", old, new), "RaymondFD", 400, walker=fd_walks) in expected


# In the simulator, where detectors notice a crash one after another and many nodes never trust each other.

DISTRUST = Config(
    "raymond_fd",
    nodes=8,
    k=2,
    rate=1,
    cs=5,
    latency="uniform:0.01,3",
    requests=100,
    faults="crash:*5@10+3,detect:0-1,doubt:0.5,distrust:0.7",
)


def violated(faults: str = DISTRUST.faults, seeds: int = 20) -> set[str]:
    """The names of the properties that runs of the registered raymond_fd violate."""
    runs = [simulate(replace(DISTRUST, faults=faults, seed=seed)) for seed in range(seeds)]
    return {broken.partition(":")[0] for result in runs for broken in result.broken}


def test_nothing_is_violated_where_only_a_crash_message_brings_the_news() -> None:
    assert violated() == set()


UNNOTICED = "requests before any process trusts it (8)"  # here every node is trusted long before the first crash


@pytest.mark.parametrize("name", [name for name in MUTANTS if name != UNNOTICED])
def test_the_simulator_catches_the_mutant_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, expected = MUTANTS[name]
    monkeypatch.setitem(PROTOCOLS, "raymond_fd", mutant("protocols.raymond_fd", old, new).RaymondFD)
    assert violated() & expected


def test_detectors_that_all_speak_at_once_hide_that_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: this is why the simulator needs delays of its own for each pair, and distrust."""
    old, new, _ = MUTANTS["tells nobody else (48)"]
    monkeypatch.setitem(PROTOCOLS, "raymond_fd", mutant("protocols.raymond_fd", old, new).RaymondFD)
    assert violated(faults="crash:*5@10+3,detect:2") == set()
