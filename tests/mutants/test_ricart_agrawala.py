"""Mutants of Ricart and Agrawala's algorithm: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "never defers a reply": (
        "            self.reply_deferred.add(j)",
        "            self.out.send(j, Reply())",
        {"k"},
    ),
    "defers even earlier requests": (
        "if self.requesting_cs and self.goes_first(j, m.sequence_number):",
        "if self.requesting_cs:",
        {"liveness"},
    ),
    "both win a tie": ("            return self.me < j", "            return False", {"k"}),
    "both lose a tie": ("            return self.me < j", "            return True", {"liveness"}),
    "the clock ignores received numbers": (
        "        self.highest_sequence_number = max(self.highest_sequence_number, m.sequence_number)\n",
        "",
        {"k"},
    ),
    "enters one reply early": (
        "        if self.outstanding_reply_count == 0:",
        "        if self.outstanding_reply_count <= 1:",
        {"k", "assertion"},
    ),
    "replies again to requests it has answered": (
        "        self.reply_deferred = set()\n",
        "",
        {"k", "liveness"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.ricart_agrawala", old, new), "RicartAgrawala") in expected
