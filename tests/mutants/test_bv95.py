"""Mutants of BV95: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

PREPEND = {"cache": "prepend"}
SORTED = {"cache": "sorted"}
HINT = {"tree": "queue_hint"}

MUTANTS = {
    "keeps its parent when it asks": ("            self.parent[t] = NIL  # BV:RQ3\n", "", {}, {"liveness"}),
    "a releasing node stays a sink": (
        "                self.parent[self.slot] = waiting[len(waiting) - 1][1]  # BV:RL2\n",
        "                pass\n",
        {},
        {"assertion", "send", "tokens"},
    ),
    "an idle holder stays a sink": (
        "            self.parent[m.t] = m.r\n            self.send_token(m.r, ())  # BV:PR3\n",
        "            self.send_token(m.r, ())\n",
        {},
        {"send", "tokens"},
    ),
    "points at itself after release": ("waiting[len(waiting) - 1][1]", "self.me", {}, {"liveness"}),
    "forgets the requests it kept": (
        "        return self.queue + kept\n",
        "        return self.queue\n",
        {},
        {"liveness"},
    ),
    "forgets the queue of the token": ("        return self.queue + kept\n", "        return kept\n", {}, {"liveness"}),
    "prepend drops the queue": ("return kept + self.queue", "return kept or self.queue", PREPEND, {"liveness"}),
    "sorted drops the kept": ("sorted(self.queue + kept,", "sorted(self.queue or kept,", SORTED, {"liveness"}),
    "the head stays in the queue": ("waiting[1:])", "waiting)", {}, {"assertion"}),
    "keeps requests that it has sent on": ("        self.kept = []\n", "", {}, {"assertion"}),
    "keeps only the last request": (
        "        self.kept.append((m.stamp, m.r))\n",
        "        self.kept = [(m.stamp, m.r)]\n",
        {},
        {"liveness"},
    ),
    "forgets its own request": ("(*waiting[1:], (self.clock, self.me))", "waiting[1:]", SORTED, {"liveness"}),
    "forgets the queue when it asks again": (
        "(*waiting[1:], (self.clock, self.me))",
        "((self.clock, self.me),)",
        {},
        {"liveness"},
    ),
    "asks again although nobody waits": ("if waiting and self.k == 1", "if self.k == 1", {}, {"IndexError"}),
    "keeps the token it sends": ("        self.token_present = False\n", "", {}, {"tokens"}),
    "the fence does not rise": ("        self.fence += 1\n", "", {}, {"fence"}),
    "tokens lose their number": ("Token(self.slot, self.fence", "Token(0, self.fence", {}, {"slot", "fence"}),
    "asks in a tree that does not exist": (
        "self.out.choose(self.k)",
        "self.out.choose(self.k + 1)",
        {},
        {"IndexError"},
    ),
    "the hint picks a tree that does not exist": (
        "return trees[self.out",
        "return least + trees[self.out",
        HINT,
        {"IndexError"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, options, expected = MUTANTS[name]
    assert caught(mutant("protocols.bv95", old, new), "BV95", options=options) in expected
