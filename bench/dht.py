"""EE's experiment at its full size, and a ring of a million nodes: hops, loads and speed."""

from __future__ import annotations

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.speed import measure

NODES = 6_500
PROTOCOLS = ("sigma routed", "sigma direct", "e2e", "non_e2e")


def rounds(console: Console) -> None:
    found = {
        name: measure(name, NODES, False)
        for name in track(PROTOCOLS, description=f"{NODES:,} nodes", console=console, transient=True)
    }
    table = Table("6,500 nodes, 65 resources", "hops", "times fewer", "load: mean", "p90", "max", "events/s")
    for name, one in found.items():
        load = one["load"]
        table.add_row(
            name,
            f"{one['hops']:,}",
            f"{found['sigma routed']['hops'] / one['hops']:.2f}",
            f"{load['mean']:.0f}",
            f"{load['p90']:.0f}",
            f"{load['max']:.0f}",
            f"{one['events'] / one['seconds']:,.0f}",
        )
    console.print(table)


def million(console: Console) -> None:
    found = measure("million", 1_000_000, False)
    hops = found["hops"] / found["messages"]
    console.print(
        f"1,000,000 nodes: built in {found['built']:.1f} s, with a run of {found['entries']:,} requests"
        f" {found['seconds']:.1f} s and {found['gigabytes']:.2f} GB; {hops:.2f} hops a message"
    )


if __name__ == "__main__":
    output = Console()
    rounds(output)
    million(output)
