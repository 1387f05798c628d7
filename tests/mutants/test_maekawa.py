"""Each mutant of Maekawa's algorithm breaks a property that is named."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "a quorum is a row only": (
        "if i // side == place // side or i % side == place % side",
        "if i // side == place // side",
        {"k"},
    ),
    "an overtaken best request is not told (Sanders' deadlock)": (
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
    "a FAILED that LOCKED has overtaken counts": (
        "if m.ts != self.ts or arbiter in self.locked:",
        "if m.ts != self.ts:",
        {"k"},
    ),
    "a lock that was given back still counts": (
        "                self.locked.discard(arbiter)\n",
        "",
        {"k", "grant"},
    ),
    "FAILED gives nothing back": (
        "        self.failed.add(arbiter)\n        self.give_back()",
        "        self.failed.add(arbiter)",
        {"liveness"},
    ),
    "gives back without having failed": (
        "        if not self.failed:\n            return\n",
        "",
        {"k", "assertion", "liveness"},
    ),
    "a new holder is never inquired": (
        "        self.holder = (ts, src)\n        self.inquiring = False\n",
        "        self.holder = (ts, src)\n        self.inquiring = True\n",
        {"liveness"},
    ),
    "the arbiter leaves its queue alone": (
        "        if self.queue:\n            self.lock_best()",
        "        pass",
        {"liveness"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.maekawa", old, new), "Maekawa", seeds=2500) in expected
