"""`fairgate demo --simulated`: what fairness is, in a few seconds."""

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

# FK section 4's local network. The number of requests takes a few seconds either way.
LAN = Config(protocol="fair_k", nodes=100, k=3, rate=0.5, cs=10.0, latency="1", requests=6000 if COMPILED else 500)
PROTOCOLS = ("fair_k", "bv95")


def simulated_demo() -> int:
    """A gate of k=3 for 100 nodes, by a fair protocol and by one that is not."""
    console = stdout()
    console.print(
        f"{LAN.nodes} nodes share a gate that lets {LAN.k} in at a time. Each thinks for {1 / LAN.rate:g} s, asks,"
        f" stays {LAN.cs:g} s inside, and asks again: {LAN.requests:,} times."
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

    row("mean wait", [seconds(result.wait_mean) for result in results], "from asking to entering")
    row("longest wait", [seconds(result.wait_max) for result in results], "of all requests")
    row("spread", [seconds(result.spread) for result in results], "longest less mean: small is fair")
    row("overtakes", [number(result.overtakes) for result in results], "came in before one who asked earlier")
    row("messages an entry", [number(result.messages_per_entry) for result in results], "")
    row("most inside", [f"{result.max_inside} of {result.k}" for result in results], "never more than k")
    row("took", [seconds(result.seconds) for result in results], "")
    return table


def explanation(fair: Result, other: Result) -> Group:
    seen = (
        f"Both keep the gate equally busy, so the mean is nearly the same. Fair means that all wait about as long:"
        f" under {fair.protocol} the unluckiest request took {fair.wait_max / fair.wait_mean:.1f} times the mean,"
        f" under {other.protocol} {other.wait_max / other.wait_mean:.1f} times: others who asked later came in first."
    )
    hints = (
        "fairgate sim fair_k --nodes 1000 --k 10 --latency wan",
        "fairgate sim fair_k --nodes 5 --requests 2 --journal run.ndjson",
        "fairgate replay run.ndjson",
        "fairgate protocols",
    )
    return Group(f"\n{seen}\n\nTry next:", Padding(Text("\n".join(hints), style="cyan"), (0, 0, 0, 2)))
