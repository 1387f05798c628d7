"""Tables of simulation results: each measure with its value and its meaning, and the verdict below them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairgate.cli.screen import counted, number, plain_table, seconds
from fairgate.registry import find_protocol
from fairgate.sim.config import Config
from fairgate.sim.run import kind_of_build
from fairgate.sim.summary import Result

SHOWN_VIOLATIONS = 10


def result_table(result: Result) -> Table:
    title = f"{result.protocol}: {counted(result.nodes, 'node')}, k = {result.k}, seed {result.seed}"
    table = plain_table(title + (" (interrupted)" if result.interrupted else ""))
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim")
    for section in (waits, fairness, gate, messages, run):
        for row in section(result):
            table.add_row(*row)
        table.add_section()
    return table


Row = tuple[str, str, str]


def waits(result: Result) -> Iterable[Row]:
    yield "mean wait", seconds(result.wait_mean), "from request to entry"
    yield "p50", seconds(result.wait_p50), "half of the requests waited at most this long"
    yield "p90", seconds(result.wait_p90), "nine of ten requests"
    yield "p99", seconds(result.wait_p99), "99 of 100 requests"
    yield "longest wait", seconds(result.wait_max), "of all requests"
    yield "  per node, median", seconds(result.node_max_median), "half of the nodes never waited longer"
    yield "  per node, p90", seconds(result.node_max_p90), "nine of ten nodes never waited longer"


def fairness(result: Result) -> Iterable[Row]:
    yield "spread", seconds(result.spread), "longest wait minus the mean: small means fair"
    yield "overtakes", number(result.overtakes), overtaking(result)


def overtaking(result: Result) -> str:
    if not result.overtakes:
        return "no node entered before one that had asked earlier"
    most, times = number(result.max_displacement), number(result.max_overtaken)
    return f"an entry overtook at most {most} earlier requests; a request was overtaken at most {times} times"


def gate(result: Result) -> Iterable[Row]:
    yield "requests", number(result.requests), "made"
    yield "entries", number(result.entries), f"in {seconds(result.simulated)} of simulated time"
    yield "entries per second", number(result.throughput), "after the warm-up"
    yield "contention", number(result.contention), "nodes that wait or are inside, on average (Little's law)"
    if result.backlog:
        yield "backlog", number(result.backlog), "requests still waiting when the run ended"
    together = "at the same time" if result.resources == 1 else "one gate at the same time"
    yield "most inside", f"{result.max_inside} of {result.k}", together
    permits = result.k * result.resources
    yield "permits in use", f"{number(result.units_mean)} of {number(permits)}", "on average"
    if result.cancelled:
        yield "cancelled", number(result.cancelled), "requests that gave up while waiting"
    if result.lost:
        yield "lost", number(result.lost), "permits that ended before their holder left"


def messages(result: Result) -> Iterable[Row]:
    entries = max(1, result.entries)
    yield "messages per entry", number(result.messages_per_entry), "of all kinds"
    for kind, count in sorted(result.messages.items(), key=lambda item: -item[1]):
        yield f"  {kind}", number(count / entries), f"{number(count)} in all"
    if result.hops > sum(result.messages.values()):
        yield "hops per entry", number(result.hops / entries), f"{number(result.hops)} in all"
    load = f"messages received, on average; p90 {number(result.load['p90'])}, at most {number(result.load_max)}"
    yield "load per node", number(result.load_mean), load


def run(result: Result) -> Iterable[Row]:
    yield "events", number(result.events), f"in {seconds(result.seconds)}: {speed(result)}"
    for mark, count in result.marks.items():
        yield "  mark", number(count), mark


def speed(result: Result) -> str:
    rate = result.events / max(result.seconds, 1e-9)
    return f"{rate / 1e6:.1f} million per second, {kind_of_build()}"


Measure = tuple[str, Callable[[Result], float], Callable[[float], str]]
TRIAL_MEASURES: tuple[Measure, ...] = (
    ("mean wait", lambda result: result.wait_mean, seconds),
    ("p99", lambda result: result.wait_p99, seconds),
    ("longest wait", lambda result: result.wait_max, seconds),
    ("  per node, median", lambda result: result.node_max_median, seconds),
    ("  per node, p90", lambda result: result.node_max_p90, seconds),
    ("spread", lambda result: result.spread, seconds),
    ("overtakes", lambda result: result.overtakes, number),
    ("messages per entry", lambda result: result.messages_per_entry, number),
    ("load per node", lambda result: result.load_mean, number),
    ("contention", lambda result: result.contention, number),
    ("permits in use", lambda result: result.units_mean, number),
    ("most inside", lambda result: result.max_inside, number),
)


def trials_table(results: Sequence[Result], combined: dict[str, Any]) -> Group:
    first, last = results[0], results[-1]
    seeds = f"{len(results)} trials, seeds {first.seed} to {last.seed}"
    table = plain_table(f"{first.protocol}: {counted(first.nodes, 'node')}, k = {first.k}, {seeds}")
    for name in ("measure", "mean", "minimum", "maximum"):
        table.add_column(name, justify="left" if name == "measure" else "right", no_wrap=True)
    for name, measure, shown in TRIAL_MEASURES:
        values = [measure(result) for result in results]
        table.add_row(name, shown(float(sum(values)) / len(values)), shown(min(values)), shown(max(values)))
    sums = [("entries", "entries"), ("events", "events"), ("cancelled", "requests cancelled"), ("lost", "permits lost")]
    said = [f"{number(combined[name])} {word}" for name, word in sums if combined[name] or name == "entries"]
    notes = [f"\n{number(times)} times: {mark}" for mark, times in sorted(combined["marks"].items())]
    return Group(table, Text(f"\n{', '.join(said)} in all; {kind_of_build()}{''.join(notes)}", style="dim"))


def verdict(results: Sequence[Result], config: Config, interrupted: bool = False) -> Text:
    """The last line: green if no property was violated, red if one was, yellow if none was checked."""
    until = " until it was interrupted" if interrupted or any(result.interrupted for result in results) else ""
    broken = [words for result in results for words in result.broken]
    count = sum(result.violations for result in results)
    if count:
        more = count - len(broken[:SHOWN_VIOLATIONS])
        lines = [f"{counted(count, 'violation')}{until}:", *broken[:SHOWN_VIOLATIONS]]
        return Text("\n  ".join(lines + [f"... and {more:,} more"] * (more > 0)), style="bold red")
    if not config.check:
        return Text(f"not checked{until}", style="yellow")
    kept = [f"at most {config.k} inside"]
    if find_protocol(config.protocol).about.slots:
        kept.append("fences rose" if config.stack else "fences rose, no token was lost or duplicated")
    if not until and not config.seconds and not config.rounds:
        kept.append("nobody was left waiting")
    return Text(f"no violation{until}: {', '.join(kept)}", style="bold green")
