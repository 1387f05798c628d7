"""EE's experiment at full size, and a ring of a million nodes: hops, loads and speed."""

from __future__ import annotations

from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.speed import measure

NODES = 6_500
SERIES = 5
PROTOCOLS = ("sigma routed", "sigma direct", "e2e", "non_e2e")

Series = dict[str, dict[str, Any]]  # by protocol


def rounds(console: Console) -> None:
    series = [
        {name: measure(name, NODES, False) for name in PROTOCOLS}
        for _ in track(range(SERIES), description=f"{NODES:,} nodes", console=console, transient=True)
    ]
    costs(console, series[0])
    speeds(console, series)


def costs(console: Console, found: Series) -> None:
    table = Table("6,500 nodes, 65 resources", "hops", "times fewer", "load: mean", "p90", "max")
    for name, one in found.items():
        load = one["load"]
        table.add_row(
            name,
            f"{one['hops']:,}",
            f"{found['sigma routed']['hops'] / one['hops']:.2f}",
            f"{load['mean']:.0f}",
            f"{load['p90']:.0f}",
            f"{load['max']:.0f}",
        )
    console.print(table)


def speeds(console: Console, series: list[Series]) -> None:
    table = Table(f"M events/s, {SERIES} series: median, best", "one process, CPU time", "all processors, real time")
    for name in PROTOCOLS:
        runs = [each[name] for each in series]
        table.add_row(
            name,
            speed([run["events"] / run["seconds"] for run in runs]),
            speed([run["events"] / run["shared_seconds"] for run in runs]),
        )
    console.print(table)


def speed(found: list[float]) -> str:
    return f"{median(found) / 1e6:.2f}, {max(found) / 1e6:.2f}"


def million(console: Console) -> None:
    found = measure("million", 1_000_000, False)
    hops = found["hops"] / found["messages"]
    console.print(
        f"1,000,000 nodes: built in {found['built']:.1f} s, with a run of {found['entries']:,} requests"
        f" {found['seconds']:.1f} s and {found['gigabytes']:.2f} GB; {hops:.2f} hops per message"
    )


if __name__ == "__main__":
    output = Console()
    rounds(output)
    million(output)
