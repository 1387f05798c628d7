"""Mutants of the simulator's clock, files and options, of the checks for authors of protocols, and of sweeps' plots."""

from __future__ import annotations

from tests.mutants.copies import (  # noqa: F401 (the tests of this table)
    Mutant,
    test_each_mutant_can_be_made,
    test_each_mutant_is_noticed,
    test_each_test_passes_without_a_mutant,
)

BEYOND = "sim/test_large_times.py::test_a_run_beyond_the_end_of_the_clock_is_refused"
AGREE = "core/test_authors.py::test_simulator_checker_and_scenarios_find_the_same_mistake"

MUTANTS = {
    "a run ends silently when the clock does": Mutant(
        "sim/engine.py",
        "if self.size() > 0:\n                    raise",
        "if False:\n                    raise",
        f"{BEYOND}[change0]",
    ),
    "the loop goes on beyond the end of the clock": Mutant(
        "sim/loop.py", "END: Event = (NEVER - 1, ", "END: Event = (NEVER * 4, ", f"{BEYOND}[change2]"
    ),
    "a clock that runs ahead passes its end": Mutant(
        "sim/engine.py",
        "if reading >= NEVER:",
        "if False:",
        "sim/test_large_times.py::test_a_clock_that_runs_ahead_ends_earlier",
    ),
    "a draw may be later than any moment": Mutant(
        "sim/stream.py",
        "min(int(-mean * log(1.0 - self.random())), NEVER)",
        "int(-mean * log(1.0 - self.random()))",
        "sim/test_large_times.py::test_draws_are_cut_off_at_the_end_of_time",
    ),
    "a mean is rounded twice": Mutant(
        "sim/summary.py",
        "found.wait_total / (len(found.waits) * SECOND)",
        "found.wait_total / len(found.waits) / SECOND",
        "sim/test_large_times.py::test_a_mean_wait_is_rounded_once",
    ),
    "the values of a sweep may be equal": Mutant(
        "lab/sweeps.py",
        "if twice is not None:",
        "if False:",
        "cli/test_sweep.py::test_equal_values_are_refused_not_pooled",
    ),
    "a product of two options exceeds 64 bits": Mutant(
        "protocols/sigma/protocol.py",
        "NEVER // max(self.retry, 1)",
        "NEVER // 100",
        "paper/test_sigma_times.py::test_no_percentage_of_a_wait_is_later_than_any_moment",
    ),
    "a percentage takes units of time": Mutant(
        "cli/values.py",
        "is_time=not 0 < known < LEAST_TIME",
        "is_time=True",
        "cli/test_durations.py::test_counts_and_percentages_take_no_units",
    ),
    "the counters of a room never begin again": Mutant(
        "room/links.py",
        "if m[WAITED] >= LIMIT - waited:",
        "if False:",
        "room/test_metrics.py::test_the_counters_begin_again_before_the_sum_of_the_waits_is_too_large",
    ),
    "a latency file is read to its end": Mutant(
        "sim/latency_files.py",
        ".read(LARGEST + 1)",
        ".read()",
        "sim/test_latency.py::test_a_file_that_unpacks_to_very_much_is_refused_without_reading_all_of_it",
    ),
    "the checker does not look at slots where there are none": Mutant(
        "check/model.py",
        "if not self.slots and (slot != NIL or fence != NIL):",
        "if False:",
        f"{AGREE}[slots without slots=True]",
    ),
    "a message without a handler is ignored": Mutant(
        "core/derive.py", '"    self.unhandled(msg)"', '"    pass"', f"{AGREE}[no handler]"
    ),
    "a message may have a float for an integer": Mutant(
        "core/declare.py", 'if part.name != "__init__":', "if True:", f"{AGREE}[a float for an integer]"
    ),
    "a field may have any type": Mutant(
        "core/authors.py",
        "if not (known or kind.is_declared or kind.base is Any):",
        "if False:",
        "core/test_authors.py::test_a_wrong_declaration_is_refused_in_one_line[a float field]",
    ),
    "what is no class becomes a Python object": Mutant(
        "core/kinds.py",
        "if not (isinstance(base, type) or base is Any):",
        "if False:",
        "core/test_authors.py::test_a_wrong_declaration_is_refused_in_one_line[an option that is no class]",
    ),
    "an unknown mark is ignored": Mutant(
        "core/kinds.py",
        "if mark not in MARKS]",
        "if False]",
        "core/test_authors.py::test_a_wrong_declaration_is_refused_in_one_line[an unknown mark]",
    ),
    "a plot averages runs with different parameters": Mutant(
        "lab/sweep_plot.py",
        "if name != x and len(set(values)) > 1]",
        'if name == "protocol"]',
        "lab/test_sweep_plot.py::test_each_combination_of_the_other_parameters_has_a_line",
    ),
}
