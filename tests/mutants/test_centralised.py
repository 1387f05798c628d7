"""Mutants of the centralised gate: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "lends a slot and keeps it": ("self.lend(self.free.pop(0), r)", "self.lend(self.free[0], r)", {"tokens"}),
    "forgets waiting requests": ("            self.queue.append(r)\n", "            pass\n", {"liveness"}),
    "serves the head again and again": ("self.queue.pop(0)", "self.queue[0]", {"assertion"}),
    "loses a slot that is returned": ("            self.free.append(slot)\n", "            pass\n", {"tokens"}),
    "releases a slot and still holds it": ("        self.slot = NIL\n        if", "        if", {"tokens"}),
    "a release always names slot 0": ("Release(slot))", "Release(0))", {"slot"}),
    "the fence does not rise": ("        self.fences[slot] += 1\n", "", {"fence"}),
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
