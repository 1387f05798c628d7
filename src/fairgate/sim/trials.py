"""Many runs that differ only in their seed, on all cores."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import Any

from fairgate.processes import in_processes
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result

SUMS = ("entries", "events", "measured", "overtakes", "violations", "cancelled", "lost", "hops", "backlog", "seconds")
MEANS = ("messages_per_entry", "node_max_median", "node_max_p90", "units_mean", "load_mean", "throughput", "contention")
MOSTS = ("wait_max", "max_inside", "load_max", "max_displacement", "max_overtaken")


def run_trials(
    config: Config, trials: int, workers: int, progress: Callable[[Result], None] | None = None
) -> list[Result]:
    """Run seeds seed..seed+trials-1 and return the results in that order. After Ctrl-C, only those that are done."""
    done: list[Result] = []
    try:
        for result in in_processes(simulate, [replace(config, seed=config.seed + i) for i in range(trials)], workers):
            done.append(result)
            if progress is not None:
                progress(result)
    except KeyboardInterrupt:
        pass
    return sorted(done, key=lambda result: result.seed)


def combine(results: list[Result]) -> dict[str, Any]:
    """One JSON object for all trials.

    `wait_mean`, `wait_max` and `spread` are over the requests of all trials, as they would be for one long run. Other
    measures are sums or extremes where these are meaningful, and otherwise means, as are those whose names end in
    `_mean`.
    """
    first = results[0]
    combined: dict[str, Any] = {"protocol": first.protocol, "nodes": first.nodes, "k": first.k, "seed": first.seed}
    for name in SUMS:
        combined[name] = sum(getattr(result, name) for result in results)
    for name in MEANS:
        combined[name] = fmean(getattr(result, name) for result in results)
    for name in MOSTS:
        combined[name] = max(getattr(result, name) for result in results)
    total = sum(result.wait_mean * result.measured for result in results)
    combined["wait_mean"] = total / combined["measured"] if combined["measured"] else 0.0
    combined["spread"] = combined["wait_max"] - combined["wait_mean"]
    combined["wait_max_mean"] = fmean(result.wait_max for result in results)
    combined["spread_mean"] = fmean(result.spread for result in results)
    combined["marks"] = dict(sum((Counter(result.marks) for result in results), Counter()))
    combined["trials"] = [result.as_json() for result in results]
    return combined
