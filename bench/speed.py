"""Speed as ratios, measured together in one run: medians of 5, interleaved, each in its own process.

The machine may be shared, so absolute times mean little, and CPU time is measured rather than real time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROUNDS = 5
RUNS = {  # name -> (measurement, requests per node, pure Python?)
    "SimPy": ("simpy", 400, False),
    "SimPy, same metrics": ("simpy_measured", 400, False),
    "fairgate, interpreted": ("fairgate", 400, True),
    "fairgate, compiled": ("fairgate", 6000, False),
}
LARGEST = 100_000
SIZES = (100, 1_000, 10_000, LARGEST)


def measure(name: str, argument: int, pure: bool) -> dict[str, Any]:
    env = (
        {**os.environ, "FAIRGATE_PURE": "1"} if pure else {k: v for k, v in os.environ.items() if k != "FAIRGATE_PURE"}
    )
    command = [sys.executable, "-m", "bench.one", name, str(argument)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def against_simpy(console: Console) -> None:
    speeds: dict[str, list[float]] = {name: [] for name in RUNS}
    events: dict[str, list[float]] = {name: [] for name in RUNS}
    for _ in track(range(ROUNDS), description="Fair-k, N=100, k=3, rate 0.5", console=console, transient=True):
        for name, (what, requests, pure) in RUNS.items():
            found = measure(what, requests, pure)
            speeds[name].append(found["entries"] / found["seconds"])
            events[name].append(found["events"] / found["seconds"])
    table = Table("medians of 5", "entries/s", "events/s", "times SimPy", "times SimPy, same metrics")
    for name in RUNS:
        ratios = [f"{ratio(speeds[name], speeds[other]):.2f}" for other in ("SimPy", "SimPy, same metrics")]
        table.add_row(name, f"{median(speeds[name]):,.0f}", f"{median(events[name]):,.0f}", *ratios)
    console.print(table)


def ratio(own: list[float], other: list[float]) -> float:
    """The median of the ratios of each round: whatever slows the machine down for a while affects both."""
    return median(a / b for a, b in zip(own, other, strict=True))


def large_against_simpy(console: Console) -> None:
    speeds: dict[str, list[float]] = {"large": [], "simpy_large": []}
    for _ in track(range(ROUNDS), description=f"Fair-k, N={LARGEST:,}", console=console, transient=True):
        for name, found in speeds.items():
            run = measure(name, LARGEST, False)
            found.append(run["entries"] / run["seconds"])
    times = ratio(speeds["large"], speeds["simpy_large"])
    console.print(f"{LARGEST:,} nodes, compiled: {times:.2f} times SimPy (median of {ROUNDS})")


def large(console: Console) -> None:
    table = Table("nodes", "k", "events/s", "entries/s", "messages/entry", "bytes/node", "mean wait", "predicted wait")
    for nodes in track(SIZES, description="large systems", console=console, transient=True):
        found = measure("large", nodes, False)
        table.add_row(
            f"{nodes:,}",
            f"{nodes // 100:,}",
            f"{found['events'] / found['seconds']:,.0f}",
            f"{found['entries'] / found['seconds']:,.0f}",
            f"{found['messages_per_entry']:.2f}",
            f"{found['bytes_per_node_peak']:,.0f}",
            f"{found['wait_mean']:.2f} s",
            f"{100 * 10.001 - 10 - 2:.2f} s",
        )
    console.print(table)


if __name__ == "__main__":
    output = Console()
    against_simpy(output)
    large(output)
    large_against_simpy(output)
