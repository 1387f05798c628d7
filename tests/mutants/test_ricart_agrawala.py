"""Each mutant of Ricart and Agrawala's algorithm breaks a property that is named."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "lets everybody go first": (
        "            self.reply_deferred.add(j)",
        "            self.out.send(j, Reply())",
        {"k"},
    ),
    "defers earlier requests too": (
        "if self.requesting_cs and self.goes_first(j, m.sequence_number):",
        "if self.requesting_cs:",
        {"liveness"},
    ),
    "both win a tie": ("            return self.me < j", "            return False", {"k"}),
    "both lose a tie": ("            return self.me < j", "            return True", {"liveness"}),
    "the clock does not listen": (
        "        self.highest_sequence_number = max(self.highest_sequence_number, m.sequence_number)\n",
        "",
        {"k"},
    ),
    "enters one reply early": (
        "        if self.outstanding_reply_count == 0:",
        "        if self.outstanding_reply_count <= 1:",
        {"k", "grant"},
    ),
    "replies again to those it has replied to": (
        "        self.reply_deferred = set()\n",
        "",
        {"k", "liveness"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.ricart_agrawala", old, new), "RicartAgrawala") in expected
