"""What `fairgate check` prints: its progress, its result, and the verdict."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fairgate.check.case import Case
from fairgate.check.explore import CheckReport
from fairgate.cli.screen import counted, number, plain_table, seconds, stderr
from fairgate.registry import find_protocol
from fairgate.sim.run import kind_of_build

Told = Callable[[int, int, int], None]  # states seen, depth, states still to be explored


@contextmanager
def exploring(title: str) -> Iterator[Told]:
    """Yields a function that reports progress. The progress line is drawn only on a terminal."""
    console = stderr()
    hidden = not sys.stderr.isatty() or console.is_dumb_terminal
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False, disable=hidden) as progress:
        task = progress.add_task(title)
        progress.refresh()
        started = time.monotonic()

        def told(states: int, depth: int, queue: int) -> None:
            rate = states / max(time.monotonic() - started, 1e-9)
            said = f"{title}: {states:,} states, depth {depth}, queue {queue:,}, {rate:,.0f}/s"
            progress.update(task, description=said)
            progress.refresh()

        yield told


def report_table(report: CheckReport) -> Table:
    case = report.case
    table = plain_table(f"{case.protocol}: {counted(case.nodes, 'node')}, k = {case.k}{circumstances(case)}")
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim")
    table.add_row("complete", "yes" if report.complete else "no", completeness(report))
    table.add_row("states", number(report.states), "distinct states")
    table.add_row("transitions", number(report.transitions), "steps from one state to another")
    table.add_row("depth", number(report.depth), "levels of states that were explored, one per step")
    if report.complete:
        table.add_row("on cycles", number(report.cyclic), cycles(report))
    rate = report.states / max(report.seconds, 1e-9)
    table.add_row("states per second", number(round(rate)), f"in {seconds(report.seconds)}, {kind_of_build()}")
    return table


def circumstances(case: Case) -> str:
    """The bounds of the case, for the title of the table."""
    said = [counted(case.requests, "request") + " each"]
    said.append({"any": "messages in any order", "fifo": "FIFO channels"}.get(case.network, ""))
    if case.network == "lossy":
        said.append(f"up to {counted(case.losses, 'message')} lost")
    if case.network == "dup":
        said.append(f"up to {counted(case.dups, 'message')} duplicated")
    if case.ticks:
        said.append(f"{case.ticks} ticks" + (f", skew {case.skew}" if case.skew else ""))
    if any(case.rates):
        said.append("clocks fast by " + ", ".join([f"{rate / 10_000:g} %" for rate in case.rates]))
    for name, count in (("cancel", case.cancels), ("crash", case.crashes), ("reset", case.resets)):
        ending = "" if count == 1 else "es" if name == "crash" else "s"
        said.append(f"{count} {name}{ending}" if count else "")
    return "".join(f", {words}" for words in said if words)


def completeness(report: CheckReport) -> str:
    if report.complete:
        return "every reachable state of this case was explored"
    if report.interrupted:
        return "interrupted: the remaining states were not explored"
    if report.violations:
        return "the search stops at the first violation, a shortest one"
    return "cut off by --depth: deeper states were not explored"


def cycles(report: CheckReport) -> str:
    if report.cyclic:
        return "states on a cycle or reachable from one: a run may go on forever"
    return "none: every run ends"


def verdict_of(report: CheckReport) -> Text:
    """The last line: green, red for a violation, or yellow if the search is not complete."""
    if report.violations:
        return Text(f"violation: {report.violations[0].what}", style="bold red")
    if not report.complete:
        far = "until it was interrupted" if report.interrupted else f"in runs of up to {report.depth} steps"
        return Text(f"no violation {far}; there is more to explore", style="bold yellow")
    kept = [f"at most {report.case.k} inside"]
    if find_protocol(report.case.protocol).about.slots:
        kept.append("fences rise, no token is lost or duplicated")
    if report.cyclic:
        kept.append("every waiting node enters in every fair run")
    else:
        kept.append("nobody is left waiting" + (" before the clocks end" if report.case.ticks else ""))
    return Text(f"no violation: {', '.join(kept)}", style="bold green")
