"""Mutants of gates that take turns, and of processes that share them: each changes what comes out, or ends badly."""

from __future__ import annotations

import pytest

from tests.mutants.copies import HANGS, PASSES, Mutant, end_of

SAME = "sim/test_shares.py::test_the_result_is_the_same"

MUTANTS = {
    "a turn goes past what concerns all gates": Mutant(
        "sim/loop.py",
        "self.stop = self.queues[0].first() if self.turn else NEVER",
        "self.stop = NEVER",
        f"{SAME}[churn]",
    ),
    "what comes at the same moment waits for what concerns all gates": Mutant(
        "sim/loop.py",
        "else (time, order, 0, 0, 0, None)",
        "else (time, 0, 0, 0, 0, None)",
        f"{SAME}[sigma]",
    ),
    "what a round says to one gate concerns all": Mutant(
        "sim/loop.py",
        "self.queues[1 + msg.gate % self.turns if isinstance(msg, Gated) else 0]",
        "self.queues[0]",
        f"{SAME}[sigma]",
    ),
    "all gates choose from one stream": Mutant(
        "sim/build.py",
        "return choosers[gate_acting(engine.nodes[engine.acting])](n)",
        "return choosers[0](n)",
        f"{SAME}[non_e2e]",
    ),
    "who is inside in other shares is not known": Mutant(
        "sim/rounds.py",
        "sorted(self.share.meet(inside, engine.metrics.entries))",
        "(self.share.meet(inside, 0) and inside)",
        f"{SAME}[few requesters]",
    ),
    "rounds are counted in every share": Mutant(
        "sim/summary.py",
        "engine.events - (0 if first else engine.common)",
        "engine.events",
        f"{SAME}[e2e]",
    ),
    "who is through tells all others to stop": Mutant(
        "sim/shares.py",
        "            if early and number not in self.found:\n",
        "            if number not in self.found:\n",
        "sim/test_shares.py::test_the_first_share_waits_for_the_others",
    ),
    "a run is stuck if one share is": Mutant(
        "sim/build.py",
        "        engine.patience = NIL ",
        "        pass ",
        f"{SAME}[nobody leaves for a long time]",
    ),
    "all that happens in nobody's turn happens in every share": Mutant(
        "sim/engine.py",
        "            self.common += 1\n            self.plans[src](self)\n",
        "            self.plans[src](self)\n        self.common += self.turn == 0\n",
        f"{SAME}[timers that are set at a round]",
    ),
    "nobody is told to stop": Mutant(
        "sim/shares.py",
        "            if early and number not in self.found:\n",
        "            if False:\n",
        "sim/test_shares.py::test_ctrl_c_ends_all_shares_and_keeps_their_results",
        HANGS,
    ),
    "every process has the other end of every pipe": Mutant(
        "sim/shares.py",
        "        end.close()\n",
        "        pass\n",
        "sim/test_shares.py::test_a_worker_ends_when_the_first_process_is_gone",
    ),
}


@pytest.mark.stress
@pytest.mark.parametrize("rule", MUTANTS)
def test_each_mutant_is_noticed(rule: str) -> None:
    mutant = MUTANTS[rule]
    assert end_of(mutant.test, mutant) == mutant.end


@pytest.mark.stress
@pytest.mark.parametrize("test", sorted({mutant.test for mutant in MUTANTS.values()}))
def test_nothing_is_noticed_where_nothing_was_changed(test: str) -> None:
    assert end_of(test) == PASSES
