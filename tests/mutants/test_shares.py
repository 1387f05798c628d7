"""Mutants of runs whose gates take turns and are shared by processes: each changes the result, fails or hangs."""

from __future__ import annotations

from tests.mutants.copies import (  # noqa: F401 (the tests of this table)
    HANGS,
    Mutant,
    test_each_mutant_can_be_made,
    test_each_mutant_is_noticed,
    test_each_test_passes_without_a_mutant,
)

SAME = "sim/test_shares.py::test_the_result_is_the_same"

MUTANTS = {
    "a gate's turn runs past an event that concerns all gates": Mutant(
        "sim/loop.py",
        "first = self.queues[0].first()",
        "first = END",
        f"{SAME}[non_e2e]",
    ),
    "events at the same time as one that concerns all gates come after it": Mutant(
        "sim/loop.py",
        "else (time, order, 0, 0, 0, None)",
        "else (time, 0, 0, 0, 0, None)",
        f"{SAME}[messages that cross rounds]",
    ),
    "a round's message to one gate concerns all gates": Mutant(
        "sim/loop.py",
        "self.queues[1 + msg.gate % self.turns if isinstance(msg, Gated) else 0]",
        "self.queues[0]",
        f"{SAME}[sigma]",
    ),
    "all gates draw from one random stream": Mutant(
        "sim/build.py",
        "return choosers[gates_of(engine.nodes[engine.acting]).acting](n)",
        "return choosers[0](n)",
        f"{SAME}[non_e2e]",
    ),
    "a share does not know who is inside in other shares": Mutant(
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
    "a share that finishes tells all others to stop": Mutant(
        "sim/shares.py",
        "            if early and number not in self.found:\n",
        "            if number not in self.found:\n",
        "sim/test_shares.py::test_the_first_share_waits_for_the_others",
    ),
    "one stuck share makes the whole run count as stuck": Mutant(
        "sim/build.py",
        "        engine.patience = NIL ",
        "        pass ",
        f"{SAME}[nobody leaves for a long time]",
    ),
    "every event outside a gate's turn is counted as common to all shares": Mutant(
        "sim/engine.py",
        "            self.common += 1\n            self.plans[src](self)\n",
        "            self.plans[src](self)\n        self.common += self.turn == 0\n",
        f"{SAME}[timers that are set at a round]",
    ),
    "no share is told to stop": Mutant(
        "sim/shares.py",
        "            if early and number not in self.found:\n",
        "            if False:\n",
        "sim/test_shares.py::test_ctrl_c_ends_all_shares_and_keeps_their_results",
        HANGS,
    ),
    "every process keeps the other end of every pipe open": Mutant(
        "sim/shares.py",
        "        end.close()\n",
        "        pass\n",
        "sim/test_shares.py::test_a_worker_ends_when_the_first_process_is_gone",
    ),
}
