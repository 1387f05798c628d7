"""Mutants of Suzuki and Kasami's algorithm: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "an overtaken request lowers RN": (
        "self.RN[m.j] = max(self.RN[m.j], m.n)",
        "self.RN[m.j] = m.n",
        {"liveness"},
    ),
    "ignores requests": ("self.RN[m.j] = max(self.RN[m.j], m.n)", "pass", {"liveness"}),
    "an idle holder keeps its token": ("            self.send_token(m.j, ())\n", "            pass\n", {"liveness"}),
    "a busy holder gives its token away": (" and not self.requesting_cs", "", {"k", "KeyError"}),
    "does not record that it was served": ("        self.LN[self.me] = self.RN[self.me]\n", "", {"liveness"}),
    "forgets who was served": ("rest, served)", "rest, (0,) * self.setup.n)", {"liveness"}),
    "serves the head of the queue forever": ("self.Q[1:])", "self.Q)", {"assertion"}),
    "request numbers do not rise": ("            self.RN[self.me] += 1\n", "", {"liveness"}),
    "sends its request only to itself": ("if j != self.me:", "if j == self.me:", {"liveness"}),
    "keeps the token it sends": ("        self.token_present = False\n", "", {"tokens"}),
    "the fence does not rise": ("        self.fence += 1\n", "", {"fence"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    # Many seeds, because messages rarely overtake each other.
    assert caught(mutant("protocols.suzuki_kasami", old, new), "SuzukiKasami", seeds=1_200) in expected
