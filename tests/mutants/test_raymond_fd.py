"""Mutants of RF's Algorithm 1: each has one line wrong, and must break a named property in walks with crashes.

RF is "Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector"; numbers in brackets are its lines.
"""

import pytest

from fairgate.walks.failure_detectors import fd_walks
from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "requests before any process trusts it (8)": (
        "if not self.ready and self.unacked <= self.S:",
        "if not self.ready:",
        {"liveness"},
    ),
    "forgets a request that waited for the initialization (8)": (
        '                self.out.note("a request waited for the initialization")\n'
        "                Raymond.request_cs(self)\n",
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
