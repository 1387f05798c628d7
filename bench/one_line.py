"""one_line beside the other protocols for k > 1, and how near it comes to one hop: `make bench-one-line`.

1. Protocols side by side: critical sections of equal and of exponential length; constant, uniform and wide-area latency
2. One critical section of 2,000 s, while all others last 1 s
3. one_line alone: what each option buys, as messages per entry and hops per hand-over

The measures are simulated, so they do not depend on the machine. ARGS="--latency FILE" adds the round-trip times of a
matrix in a file (sim/latency_files.py says in which formats).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from fairgate.core.units import SECOND
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result
from fairgate.sim.workload import Closed

PROTOCOLS = ("one_line", "fair_k", "bv95", "raymond", "centralised")
PAPER = Config(nodes=100, k=3, rate=0.5, cs=10.0, requests=200, warmup=5)
HOG = Config(
    nodes=30, k=3, rate=1.0, cs=1.0, latency="0.1", requests=300, exponential_cs=True
)  # so that the engine asks for the length of every stay
HOG_STAY = 2000 * SECOND
SHORT = replace(PAPER, cs=0.5, rate=10.0)  # for measured latencies, which are far below a second
TRADES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ahead=0", {"ahead": 0}),
    ("default", {}),
    ("patience=0", {"patience": 0}),
    ("patience=1", {"patience": 1}),
    ("patience=10", {"patience": 10}),
    ("ahead=2", {"ahead": 2}),
    ("ahead=4", {"ahead": 4}),
)


class OneLongStay(Closed):
    """A closed workload in which the first entry of node 7 lasts for long."""

    left_to_come = 1

    def stay(self, node: int) -> int:
        if node == 7 and self.left_to_come:
            self.left_to_come = 0
            return HOG_STAY
        return self.hold


def simulated(config: Config) -> Result:
    result = simulate(config)
    assert result.violations == 0, result.broken
    return result


def row(name: str, result: Result) -> None:
    cells = [
        f"{result.wait_mean:,.1f}",
        f"{result.wait_max:,.1f}",
        f"{result.spread:,.1f}",
        f"{result.messages_per_entry:.2f}",
        f"{result.overtakes / result.entries:.3f}",
        f"{result.max_overtaken:,}",
        f"{result.load_max / result.load_mean:.1f}",
    ]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def heading(title: str) -> None:
    columns = "mean wait | longest | spread | messages per entry | overtakes | most | load"
    print(f"\n| {title} | {columns} |\n|---|{'---|' * 7}", flush=True)


def side_by_side(latency_file: str | None) -> None:
    settings = [("1 s", PAPER, "1"), ("0.5 to 1.5 s", PAPER, "uniform:0.5,1.5"), ("synthetic WAN", PAPER, "wan")]
    if latency_file:
        settings.append(("measured, stays of 0.5 s", SHORT, latency_file))
    for random in (False, True):
        for title, base, latency in settings:
            heading(f"{'exponential' if random else 'equal'} stays, latency {title}")
            for name in PROTOCOLS:
                config = replace(base, protocol=name, latency=latency, exponential_cs=random)
                row(name, simulated(config))


def one_long_stay() -> None:
    heading("one stay of 2,000 s")
    with patch("fairgate.sim.build.Closed", OneLongStay):
        for name in PROTOCOLS:
            row(name, simulated(replace(HOG, protocol=name)))


def hops(result: Result, config: Config) -> float:
    """Hops per hand-over: while everybody waits, each slot is in use for a stay, and then idle for this long."""
    busy = result.units_mean / config.k
    return config.cs * (1 - busy) / busy / float(config.latency)


def trades() -> None:
    columns = "hops | messages per entry | mean wait | spread | overtakes | most"
    for stay, random in ((10.0, False), (10.0, True), (0.5, True)):
        kind = "exponential" if random else "equal"
        print(f"\n| {kind} stays, mean {stay:g} s, latency 1 s | {columns} |\n|---|{'---|' * 6}", flush=True)
        for name, options in TRADES:
            config = replace(PAPER, protocol="one_line", cs=stay, exponential_cs=random, options=options)
            result = simulated(config)
            print(
                f"| {name} | {hops(result, config):.2f} | {result.messages_per_entry:.2f} | {result.wait_mean:.1f} |"
                f" {result.spread:.1f} | {result.overtakes / result.entries:.3f} | {result.max_overtaken} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", metavar="FILE", help="a matrix of round-trip times")
    side_by_side(parser.parse_args().latency)
    one_long_stay()
    trades()


if __name__ == "__main__":
    main()
