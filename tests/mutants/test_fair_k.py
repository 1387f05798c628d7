"""Mutants of Fair-k: each has one line of FK's pseudo-code wrong, and must break one of the named properties.

FK is "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems"; the labels are those of papers/fair_k.md.
"""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "forgets to clear child (RL2)": (
        "            self.child = NIL  # FK:RL2",
        "            pass",
        {"assertion"},
    ),
    "keeps the token it sends": (
        "        self.token_present = False\n        self.slot = NIL\n",
        "        self.slot = NIL\n",
        {"tokens"},
    ),
    "no path reversal (PR4)": (
        "        self.parent = m.r  # FK:PR4",
        "        pass",
        {"liveness", "tokens", "coordinator"},
    ),
    "stays the coordinator (AS3)": ("        self.is_coordinator = False\n", "", {"coordinator"}),
    "keeps its parent when it asks (RQ2)": (
        "            self.parent = NIL  # FK:RQ2",
        "            pass",
        {"liveness"},
    ),
    "does not pass an idle token on (PC2)": (
        "            self.send_token(m.r)  # FK:PC2",
        "            pass",
        {"liveness"},
    ),
    "the fence does not rise": ("        self.fence += 1\n", "", {"fence"}),
    "tokens lose their number": ("Token(self.slot, self.fence)", "Token(0, self.fence)", {"slot", "fence"}),
    "grants each request twice": (
        "        self.enter_cs(self.slot, self.fence)\n",
        "        self.enter_cs(self.slot, self.fence)\n        self.out.granted(self.request, self.slot, self.fence)\n",
        {"grant"},
    ),
    "next is never cleared (TL2)": (
        "            self.parent = self.next\n            self.next = NIL\n",
        "            self.parent = self.next\n",
        {"assertion"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.fair_k", old, new), "FairK") in expected
