"""Mutation tests of what users hold in their hands: each mutant breaks one rule, and a test must notice it."""

from __future__ import annotations

from tests.mutants.copies import (  # noqa: F401 (the tests of this table)
    Mutant,
    test_each_mutant_can_be_made,
    test_each_mutant_is_noticed,
    test_each_test_passes_without_a_mutant,
)

LAZY = "./test_on_first_use.py::test_"
MISUSE = "live/test_misuse.py::test_"
FORGOTTEN = "live/test_forgotten.py::test_"
MUTANTS = {
    "a forked child uses what its parent has opened": Mutant(
        "on_first_use.py",
        "os.register_at_fork(after_in_child=peers.clear)\n",
        "",
        f"{LAZY}a_forked_child_opens_its_own",
    ),
    "a gate is opened when it is created": Mutant(
        "on_first_use.py",
        "        self.gate: Any = None\n",
        "        self.gate: Any = None\n        self.opened()\n",
        f"{LAZY}nothing_is_opened_before_the_first_use",
    ),
    "every object opens the gate for itself": Mutant(
        "on_first_use.py",
        "peers.get(self.kind) or peers.setdefault(self.kind, self.kind())",
        "self.peer or self.kind()",
        f"{LAZY}two_objects_of_a_name_share_what_the_process_has_open",
    ),
    "a gate is opened to be closed": Mutant(
        "on_first_use.py",
        "return self.gate.close() if self.is_open else NOTHING",
        "self.closed_in = 0; return self.opened().close()",
        f"{LAZY}closing_an_unused_gate_opens_nothing",
    ),
    "an unused gate that was closed is opened": Mutant(
        "on_first_use.py",
        "            self.check_not_closed()\n            self.gate = peer",
        "            self.closed_in = 0; self.gate = peer",
        f"{LAZY}closing_an_unused_gate_opens_nothing",
    ),
    "a gate stays open if it is closed while it is opened": Mutant(
        "on_first_use.py",
        "            self.check_not_closed()  # by another thread meanwhile\n",
        "",
        f"{LAZY}a_gate_that_is_closed_while_it_is_opened_stays_closed",
    ),
    "a gate is pickled with what it has opened": Mutant(
        "interface.py",
        "        if isinstance(self.gate, OnFirstUse):\n",
        "        if False:\n",
        f"{LAZY}a_gate_is_pickled_by_name",
    ),
    "a forked child ends with ForkedPeer, not with the exception of its body": Mutant(
        "sync.py",
        "            if error is None:\n                raise\n            return\n",
        "            raise\n",
        f"{MISUSE}the_bodys_exception_wins_in_a_forked_child[SystemExit(0)-room]",
    ),
    "a child that a task forked ends with an error of asyncio": Mutant(
        "api.py",
        "            if not self.is_forked():\n",
        "            if True:\n",
        f"{MISUSE}the_bodys_exception_wins_in_a_child_forked_by_a_task[SystemExit(0)-room]",
    ),
    "a permit that has ended warns": Mutant(
        "forgotten.py",
        "    if one.held.is_valid():\n",
        "    if True:\n",
        f"{FORGOTTEN}closing_is_no_cause[room]",
    ),
    "a released permit is watched": Mutant(
        "interface.py",
        "        watches.pop(id(self.held), None)\n",
        "",
        f"{FORGOTTEN}a_permit_that_has_ended_is_no_cause[released-room]",
    ),
    "a forked child warns of permits of its parent": Mutant(
        "forgotten.py",
        "os.register_at_fork(after_in_child=watches.clear)",
        "",
        f"{FORGOTTEN}a_forked_child_does_not_answer_for_its_parent[cluster]",
    ),
    "what cannot be read hides the timeout": Mutant(
        "interface.py",
        "        with suppress(FairgateError, OSError):",
        "        with suppress():",
        "live/test_timeouts.py::test_what_cannot_be_read_does_not_hide_the_timeout[room]",
    ),
    "one that is late waits for the lock": Mutant(
        "room/host.py",
        "snapshot(path, GLANCE)",
        "snapshot(path)",
        "live/test_timeouts.py::test_a_table_that_is_locked_is_read_without_the_lock[room]",
    ),
}
