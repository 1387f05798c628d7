"""Each mutant of RF's Algorithm 1 is one line gone wrong, and walks with crashes name the property it breaks."""

import pytest

from fairgate.walks.failure_detectors import fd_walks
from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "asks for units before anybody trusts it (8)": (
        "if not self.ready and self.unacked <= self.S:",
        "if not self.ready:",
        {"liveness"},
    ),
    "forgets the request that waited (8)": (
        '                self.out.note("a request waited for the initialization")\n'
        "                Raymond.request_cs(self)\n",
        '                self.out.note("a request waited for the initialization")\n',
        {"liveness"},
    ),
    "counts the replies of the dead (30)": ("        if j in self.crashed:  # RF:30", "        if False:", {"k"}),
    "forgets an INIT that waits (35)": ("            self.init_waits.add(j)", "            pass", {"liveness"}),
    "counts a crash twice (39)": ("        if j not in self.crashed:  # RF:39", "        if True:", {"k"}),
    "keeps the permission of the dead (42)": ("                self.perm_count -= 1  # RF:42\n", "", {"k"}),
    "still counts the dead (43)": ("            self.n -= 1  # RF:43\n", "", {"liveness"}),
    "does not look again when n changed (15)": (
        "            self.n -= 1  # RF:43\n            self.await_permissions()\n",
        "            self.n -= 1  # RF:43\n",
        {"liveness"},
    ),
    "tells others only, as the paper has it": (
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
