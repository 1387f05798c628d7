"""Mutants of Raymond's tree algorithm: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "forgets its own request (RQ1)": ("        self.request_q += (self.me,)  # RT:RQ1\n", "", {"liveness"}),
    "forgets a neighbour's request (PR1)": ("        self.request_q += (j,)  # RT:PR1\n", "", {"liveness"}),
    "stays in the critical section (RL1)": ("        self.using = False  # RT:RL1\n", "", {"liveness"}),
    "does not notice the token (PP1)": ("        self.holder = self.me  # RT:PP1\n", "", {"tokens"}),
    "sends the token away while inside (AP1)": (" and not self.using and", " and", {"k", "tokens", "fence", "slot"}),
    "keeps the head in its queue (AP2)": (
        "            self.request_q = self.request_q[1:]\n",
        "",
        {"assertion", "liveness", "grant"},
    ),
    "never asks again (AP3)": ("            self.asked = False  # RT:AP3\n", "", {"liveness"}),
    "never asks for others (MR2)": ("            self.out.send(self.holder, Request())  # RT:MR2\n", "", {"liveness"}),
    "keeps the token it sends (AP5)": (
        "                self.fence = NIL\n",
        "                self.holder = self.me\n",
        {"tokens"},
    ),
    "the fence does not rise": ("        self.fence += 1\n", "", {"fence"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.raymond_tree", old, new), "RaymondTree") in expected
