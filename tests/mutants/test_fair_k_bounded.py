"""Mutants of the bounded Fair-k: each has one of its own rules wrong, and must break a property or the bound."""

import pytest

from fairgate.check.case import Case
from fairgate.check.model import Model
from tests.mutants.mutate import caught, mutant, speak
from tests.support.overtakes import bound, most_past

MUTANTS = {
    "a waiting node keeps every Child, even those for its idle tokens": (
        "(self.waits() and m.b - self.setup.k == self.turn)",
        "self.waits()",
        {"liveness"},
    ),
    "a Child is matched by its queue instead of its turn": (
        "m.b - self.setup.k == self.turn)",
        "c == self.turn % self.setup.k)",
        {"liveness", "ValueError"},
    ),
    "an old Child makes the parents a cycle": (" and m.b > self.turn", "", {"liveness", "RecursionError"}),
    "a Child gives a coordinator a parent": (
        " and self.parent != NIL and self.next == NIL and m.b > self.turn",
        "",
        {"liveness", "coordinator"},
    ),
    "asks again while its last request has a successor": (
        "        elif self.parent == NIL or self.next != NIL:",
        "        elif self.parent == NIL:",
        {"liveness"},
    ),
    "a deferred request is forgotten": ("            self.ask()  # FK:BL", "            pass", {"liveness"}),
    "the coordinator does not become the tail when it takes a turn": (
        "            self.token_locations = replaced(a, c, self.me)",
        "            pass",
        {"liveness", "ValueError", "assertion"},
    ),
    "does not enter when it is queued behind itself": (
        "            self.begin_turn(c)  # FK:BC1",
        "            pass",
        {"liveness"},
    ),
    "an idle token is used and kept": (
        "        self.idle = tuple([token for token in self.idle if token[0] != c])",
        "        pass",
        {"tokens"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    module = mutant("protocols.fair_k_bounded", old, new)
    assert caught(module, "FairKBounded", seeds=1000, options={"reentry": 0}) in expected


UNFAIR = {
    "re-entries are not counted": (1, "            self.reentries += 1  # FK:BR1", "            pass"),
    "every entry resets the count of re-entries": (
        1,
        "        self.slot = c\n",
        "        self.slot = c\n        self.reentries = 0\n",
    ),
    "one queue is taken for all of them": (2, "count(self.me) == self.setup.k", "count(self.me) >= 1"),
}


@pytest.mark.parametrize("name", UNFAIR)
def test_mutant_breaks_the_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    k, old, new = UNFAIR[name]
    module = mutant("protocols.fair_k_bounded", old, new)
    speak(module, monkeypatch)
    model = Model(Case("fair_k_bounded", nodes=2, k=k, requests=6, options={"reentry": 1}), module.FairKBounded)
    assert max(most_past(model, 0, 1), most_past(model, 1, 0)) > bound(2, k, 1)
