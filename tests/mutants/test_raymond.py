"""Mutants of Raymond's algorithm: each has one line of RF's listing wrong, and must break one of the named properties.

RF is "Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector"; numbers in brackets are its lines. Line 19
has no mutant here. Sending REPLY(1) for several deferred answers is neither unsafe nor stuck, only slower: once k-1
others owe a node answers forever, it waits for all the rest, so no new debt arises. tests/paper/test_raymond.py pins
the count instead.
"""

import pytest

from tests.mutants.mutate import caught, mutant

MUTANTS = {
    "one permission too few (15)": (
        "self.perm_count >= self.n - self.k:",
        "self.perm_count >= self.n - self.k - 1:",
        {"k"},
    ),
    "one permission too many (15)": (
        "self.perm_count >= self.n - self.k:",
        "self.perm_count > self.n - self.k:",
        {"liveness"},
    ),
    "old permissions still count (12)": ("        self.perm_count = 0  # RF:12\n", "", {"k"}),
    "old replies count as new (32)": (
        "        settled: bool = self.reply_count[j] == 0",
        "        settled = True",
        {"k"},
    ),
    "replies while inside (24)": ("if self.state == CS or (self.state", "if (self.state", {"k"}),
    "defers even earlier requests (25)": (
        "        return self.last < last  # RF:25",
        "        return True",
        {"liveness"},
    ),
    "both win a tie (25)": ("            return self.me < j", "            return False", {"k"}),
    "the clock ignores received timestamps (22)": ("        self.H = max(self.H, m.last)  # RF:22\n", "", {"k"}),
    "replies again to requests it has answered (20)": (
        "                self.defer_count[j] = 0  # RF:20\n",
        "",
        {"k", "liveness"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.raymond", old, new), "Raymond") in expected
