"""Mutants of Srimani and Reddy's k tokens: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "an overtaken request lowers RN (PR1)": ("= max(self.RN[m.j], m.n)  # SR:PR1", "= m.n", {"liveness"}),
    "ignores requests (PR1)": ("self.RN[m.j] = max(self.RN[m.j], m.n)  # SR:PR1", "pass", {"liveness"}),
    "an idle holder keeps its token (PR2)": (
        "        if self.idle and self.waits(m.j):\n",
        "        if False:\n",
        {"liveness"},
    ),
    "keeps a surplus token although others wait (PT3)": (
        "            self.pass_on(m.slot, m.fence, m.Q)  # SR:PT3\n",
        "            self.idle = (*self.idle, (m.slot, m.fence))\n",
        {"liveness"},
    ),
    "enters again with a surplus token (PT2)": (
        "if self.requesting_cs and self.slot == NIL:",
        "if self.requesting_cs:",
        {"assertion"},
    ),
    "does not record that it was served (PO1)": (
        "        self.LN[self.me] = self.RN[self.me]  # SR:PO1\n",
        "",
        {"liveness", "assertion", "RecursionError"},
    ),
    "serves only its own queue (PO3)": (
        "        waiting += tuple([j for j in self.setup.members if self.waits(j) and j not in waiting])  # SR:PO3\n",
        "",
        {"liveness"},
    ),
    "request numbers do not rise (RQ1)": ("            self.RN[self.me] += 1  # SR:RQ1\n", "", {"liveness"}),
    "sends its request only to itself (RQ2)": ("if j != self.me:", "if j == self.me:", {"liveness"}),
    "loses a token that nobody wants (PO5)": (
        "            self.idle = tuple(sorted([*self.idle, (slot, fence)]))  # SR:PO5\n",
        "            pass\n",
        {"tokens"},
    ),
    "the fence does not rise": ("self.fence = fence + 1", "self.fence = fence", {"fence"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    # Many seeds, because messages rarely overtake each other.
    assert caught(mutant("protocols.srimani_reddy", old, new), "SrimaniReddy", seeds=1_200) in expected
