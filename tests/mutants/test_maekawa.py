"""Mutants of Maekawa's algorithm: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "a quorum is only a row": (
        "{*row, *range(place % side, len(members), side)}",
        "row",
        {"k"},
    ),
    "an overtaken best request is not told FAILED (Sanders' deadlock)": (
        "            self.tell(was_best[1], Failed(was_best[0]))",
        "            pass",
        {"liveness"},
    ),
    "nobody is told FAILED": (
        "            self.tell(src, Failed(m.ts))",
        "            pass",
        {"liveness"},
    ),
    "an INQUIRE that overtakes its LOCKED is dropped": (
        '            self.out.note("inquire overtook locked")',
        "            return",
        {"liveness"},
    ),
    "a FAILED that its LOCKED overtook still counts": (
        "if m.ts != self.ts or arbiter in self.locked:",
        "if m.ts != self.ts:",
        {"k"},
    ),
    "a relinquished lock still counts": (
        "                self.locked.discard(arbiter)\n",
        "",
        {"k", "assertion"},
    ),
    "a FAILED does not make it relinquish": (
        "        self.failed.add(arbiter)\n        self.give_back()",
        "        self.failed.add(arbiter)",
        {"liveness"},
    ),
    "relinquishes without having failed": (
        "        if not self.failed:\n            return\n",
        "",
        {"k", "assertion", "liveness"},
    ),
    "a new holder never gets an INQUIRE": (
        "        self.holder = (ts, src)\n        self.inquiring = False\n",
        "        self.holder = (ts, src)\n        self.inquiring = True\n",
        {"liveness"},
    ),
    "the arbiter never serves its queue": (
        "        if self.queue:\n            self.lock_best()",
        "        pass",
        {"liveness"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.maekawa", old, new), "Maekawa", seeds=2500) in expected
