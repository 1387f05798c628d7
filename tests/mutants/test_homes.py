"""Mutants of recovery/homes.py: each breaks one rule, and storms of crashes or the checker must catch it."""

from __future__ import annotations

import pytest

from fairgate.check.case import Case
from fairgate.check.explore import Explorer
from fairgate.check.homes import HomesModel
from fairgate.registry import LAYERS
from tests.mutants.mutate import mutant
from tests.recovery import test_homes as tests
from tests.support.storms import (
    AGAIN_AND_AGAIN,
    AT_ONCE,
    COMING_BACK,
    EARLY,
    FAR_APART,
    ONE_BACKUP,
    ONE_BY_ONE,
    PUSHED_OUT,
    REORDERED,
    Storm,
    outcome,
)

SEEDS = 120
CHECKED = Case("fair_k", nodes=2, network="fifo", backups=1, crashes=1, ticks=4)

RULES: dict[str, tuple[str, str, Storm | Case]] = {
    "messages wait for the copies": (
        "home.held[0].count <= safe or not self.hold",
        "True",
        CHECKED,
    ),
    "messages wait for all copies": ("safe = min(", "safe = max(", REORDERED),
    "the grant of an idle token waits": (
        "if grant is not None and not (own and self.hold):",
        "if grant is not None:",
        CHECKED,
    ),
    "a cancelled grant that waited is forgotten": (
        "if held.grant is not None and held.grant[0] == home.request:",
        "if held.grant is not None:",
        Case("fair_k", nodes=2, network="fifo", backups=1, cancels=1),
    ),
    "the first state is copied": (
        "        if home.count == 0:\n            self.copy(home)",
        "        pass",
        EARLY,
    ),
    "an older copy does not replace a newer one": (
        "if known is None or known[0] < stamp:\n            self.copies[m.identity]",
        "if True:\n            self.copies[m.identity]",
        FAR_APART,
    ),
    "a takeover starts a new term": (
        "self.load_home(identity, term + 1,",
        "self.load_home(identity, term,",
        COMING_BACK,
    ),
    "a takeover ends the dead client's request": (
        "        self.at(home).load(state)\n        self.end_request(home)",
        "        self.at(home).load(state)",
        CHECKED,
    ),
    "new backups get a copy": (
        "self.copy_to(home, tuple([peer for peer in self.backups if peer not in before]))",
        "pass",
        ONE_BACKUP,
    ),
    "what waits for a dead backup leaves": (
        "self.copy_to(home, tuple([peer for peer in self.backups if peer not in before]))\n        self.let_out(home)",
        "self.copy_to(home, tuple([peer for peer in self.backups if peer not in before]))",
        CHECKED,
    ),
    "a backup that is pushed out discards its copy": (
        "self.out.send(peer, Discard(home.identity, *self.stamp(home)))",
        "pass",
        PUSHED_OUT,
    ),
    "a late copy does not undo a discard": (
        "self.copies[m.identity] = (stamp, NIL, ())",
        "self.copies.pop(m.identity, None)",
        PUSHED_OUT,
    ),
    "a loss is noticed without a message": ("self.lost.add(identity)", "pass", AT_ONCE),
    "an identity that is taken over sees the view": ("        if self.view:\n", "        if False:\n", ONE_BY_ONE),
    "a view ends excluded identities": ("self.homes.pop(identity, None)", "pass", ONE_BY_ONE),
    "a view is shown to the identities": ("            self.show_view(home, gone)\n", "            pass\n", AT_ONCE),
    "a late copy saves an identity": (
        "if m.identity in self.lost and self.kept(m.identity) is not None:",
        "if False:",
        ONE_BY_ONE,
    ),
    "a newcomer fetches copies": ("if self.newcomer and self.backups:", "if False:", COMING_BACK),
    "a newcomer loads what it has fetched": (
        "self.copies[m.identity] = (stamp, m.request, m.state)\n            self.asked",
        "pass\n            self.asked",
        COMING_BACK,
    ),
    "a newcomer does not start its identity anew": (
        "self.newcomer = not self.door.serves(place_of(self.me))",
        "self.newcomer = False",
        COMING_BACK,
    ),
    "requests wait until the identity is home": (
        "            self.postponed = request\n",
        "            pass\n",
        COMING_BACK,
    ),
    "a home copies again when its backups have caught up": (
        "home.copied - safe < WINDOW",
        "home.copied < WINDOW",
        ONE_BY_ONE,
    ),
    "a change of backups does not count as a copy that all have yet to acknowledge": (
        "        home.count += 1  # above",
        "        home.copied += 2 * (home.copied == home.count)\n        home.count += 1  # above",
        AGAIN_AND_AGAIN,
    ),
    "identities move with their keys": ("if first <= home.place <= last:", "if False:", COMING_BACK),
}


def is_caught(judge: Storm | Case) -> bool:
    if isinstance(judge, Case):
        return bool(Explorer(judge, HomesModel(judge)).run().violations)
    for seed in range(SEEDS):
        try:
            if outcome(judge, seed)[0]:
                return True
        except Exception:
            return True
    return False


@pytest.mark.parametrize("rule", RULES)
def test_a_mutant_is_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, judge = RULES[rule]
    monkeypatch.setitem(LAYERS, "homes", mutant("recovery.homes", old, new).Homes)
    assert is_caught(judge)


def test_a_home_without_a_window_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = mutant("recovery.homes", "(home.copied - safe < WINDOW or not self.hold)", "True")
    monkeypatch.setitem(LAYERS, "homes", changed.Homes)
    with pytest.raises(AssertionError):
        tests.test_a_busy_home_copies_once_per_round_trip()
