"""Mutants of Naimi-Trehel: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "no path reversal": ("        self.parent = m.r  # NT:PR4\n", "", {"send", "tokens"}),
    "keeps its parent when it asks": ("            self.parent = NIL  # NT:RQ2\n", "", {"liveness"}),
    "forgets to clear next": ("            self.next = NIL  # NT:RL2\n", "", {"assertion"}),
    "a waiting root sends a token that it does not have": (
        "        elif self.requesting_cs:",
        "        elif False:",
        {"assertion"},
    ),
    "an idle root keeps its token": (
        "            self.send_token(m.r)  # NT:PR3\n",
        "            pass\n",
        {"liveness"},
    ),
    "keeps the token it sends": ("        self.token_present = False\n", "", {"tokens"}),
    "the fence does not rise": ("        self.fence += 1\n", "", {"fence"}),
    "the fence starts again at 0": ("Token(self.fence)", "Token(0)", {"fence"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.naimi_trehel", old, new), "NaimiTrehel") in expected
