"""Mutants of `fairgate run`: each breaks one rule, and a test of tests/command must notice it."""

from __future__ import annotations

from tests.mutants.copies import (  # noqa: F401 (the tests of this table)
    Mutant,
    test_each_mutant_can_be_made,
    test_each_mutant_is_noticed,
    test_each_test_passes_without_a_mutant,
)

NESTED = "command/test_nested.py::test_"
RELATIVE = f"{NESTED}only_what_keeps_the_slot_or_descends_from_its_holder_is_nested"
MUTANTS = {
    "whoever has the environment of a command is part of it": Mutant(
        "cli/run/nested.py",
        " and is_part_of(room, request, start):",
        ":",
        f"{NESTED}an_environment_that_was_passed_on_does_not_make_a_process_part_of_a_command",
    ),
    "a daemon is part of the command that it has left": Mutant(
        "cli/run/nested.py",
        " and is_part_of(room, request, start):",
        ":",
        f"{RELATIVE}[steps7-1]",
    ),
    "a later process with the id of the holder is taken for it": Mutant(
        "cli/run/nested.py",
        "any((pid, str(began)) == holder for pid, began in system.ancestors())",
        "any(pid == request.pid for pid, began in system.ancestors())",
        f"{RELATIVE}[steps8-1]",
    ),
    "descendants are not part of the command": Mutant(
        "cli/run/nested.py",
        " or any((pid, str(began)) == holder for pid, began in system.ancestors())",
        "",
        f"{RELATIVE}[steps4-0]",
    ),
    "the process group does not count": Mutant(
        "cli/run/nested.py",
        "os.getpgrp() == request.group or ",
        "",
        f"{RELATIVE}[steps5-0]",
    ),
    "an inherited bell does not count": Mutant(
        "room/system.py",
        "            if os.path.samestat(os.fstat(int(name)), wanted):\n",
        "            if False:\n",
        f"{RELATIVE}[steps6-0]",
    ),
    "ids of other pid namespaces count": Mutant(
        "cli/run/nested.py",
        "    if request.namespace != system.pid_namespace():",
        "    if False:",
        f"{NESTED}ids_of_another_pid_namespace_do_not_count",
    ),
    "whoever has the id of a dead parent is taken for it": Mutant(
        "room/system.py",
        "        if not fields or start_in(fields) > born:",
        "        if not fields:",
        f"{NESTED}the_chain_of_parents_ends_where_an_id_was_used_again",
    ),
}
