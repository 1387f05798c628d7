"""Each mutant of the centralised gate is one rule gone wrong, and breaks a property that is named."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "lends a slot and keeps it": ("self.lend(self.free.pop(0), r)", "self.lend(self.free[0], r)", {"tokens"}),
    "forgets who waits": ("            self.queue.append(r)\n", "            pass\n", {"liveness"}),
    "serves the head again and again": ("self.queue.pop(0)", "self.queue[0]", {"grant", "tokens", "liveness"}),
    "keeps a slot that comes back": ("            self.free.append(slot)\n", "            pass\n", {"tokens"}),
    "gives up a slot and holds it": ("        self.slot = NIL\n        if", "        if", {"tokens"}),
    "the release does not name its slot": ("Release(slot))", "Release(0))", {"slot"}),
    "the fence stands still": ("        self.fences[slot] += 1\n", "", {"fence"}),
    "a cancelled turn of the root keeps its slot": (
        "            self.take_back(slot)\n",
        "            pass\n",
        {"tokens"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.centralised", old, new), "Centralised") in expected
