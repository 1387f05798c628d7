"""`fairgate demo --simulated`: show what fairness means, in a few seconds."""

from dataclasses import replace

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairgate.cli.screen import number, plain_table, progress_bar, seconds, stdout
from fairgate.cli.sim.view import verdict
from fairgate.core.numbers import COMPILED
from fairgate.sim.config import Config
from fairgate.sim.run import kind_of_build, simulate
from fairgate.sim.summary import Result

# The local network of FK section 4. The number of requests is chosen to take a few seconds, compiled or not.
LAN = Config(protocol="fair_k", nodes=100, k=3, rate=0.5, cs=10.0, latency="1", requests=6000 if COMPILED else 500)
PROTOCOLS = ("fair_k", "bv95")


def simulated_demo() -> int:
    """Simulate a gate with k=3 and 100 nodes, under a fair and an unfair protocol. Returns the exit code."""
    console = stdout()
    console.print(
        f"{LAN.nodes} nodes share a gate that admits {LAN.k} at a time. Each thinks for {1 / LAN.rate:g} s, waits for"
        f" the gate, stays inside for {LAN.cs:g} s, and starts again: {LAN.requests:,} times."
        f" A message takes {LAN.latency} s. There is no server.\n"
    )
    results: list[Result] = []
    for name in PROTOCOLS:
        config = replace(LAN, protocol=name)
        with progress_bar(name, config.total) as done:
            results.append(simulate(config, done))
        if results[-1].interrupted:
            break
    console.print(side_by_side(results), "", verdict(results, LAN), sep="\n")
    if results[-1].interrupted:
        return 130
    console.print(explanation(*results))
    return 1 if any(result.violations for result in results) else 0


def side_by_side(results: list[Result]) -> Table:
    table = plain_table(f"{results[0].entries:,} entries each, {kind_of_build()} modules")
    table.add_column("")
    for result in results:
        table.add_column(result.protocol, justify="right", no_wrap=True)
    table.add_column("", style="dim")

    def row(name: str, values: list[str], meaning: str) -> None:
        table.add_row(name, *values, meaning)

    row("mean wait", [seconds(result.wait_mean) for result in results], "from request to entry")
    row("longest wait", [seconds(result.wait_max) for result in results], "of all requests")
    row("spread", [seconds(result.spread) for result in results], "longest minus mean: small means fair")
    row("overtakes", [number(result.overtakes) for result in results], "entered before one that had asked earlier")
    row("messages per entry", [number(result.messages_per_entry) for result in results], "")
    row("most inside", [f"{result.max_inside} of {result.k}" for result in results], "never more than k")
    row("run time", [seconds(result.seconds) for result in results], "")
    return table


def explanation(fair: Result, other: Result) -> Group:
    seen = (
        f"Both keep the gate equally busy, so the mean wait is nearly the same. Fair means that all requests wait about"
        f" equally long. Under {fair.protocol} the longest wait is {fair.wait_max / fair.wait_mean:.1f} times the mean;"
        f" under {other.protocol} it is {other.wait_max / other.wait_mean:.1f} times the mean, because nodes that asked"
        " later entered first."
    )
    hints = (
        "fairgate sim fair_k --nodes 1000 --k 10 --latency wan",
        "fairgate sim fair_k --nodes 5 --requests 2 --journal run.ndjson",
        "fairgate replay run.ndjson",
        "fairgate protocols",
    )
    return Group(f"\n{seen}\n\nTry next:", Padding(Text("\n".join(hints), style="cyan"), (0, 0, 0, 2)))
