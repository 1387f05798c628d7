"""Gates compared with alternatives, all in one run: `make bench-live`.

1. one lock, nothing done inside          3. k = 3, 2 ms inside
2. one lock, 2 ms inside                  4. one process alone, entering repeatedly
5. hand-over between two processes, compared with a bare ping

In each of the first three, eight processes contend for five seconds. For each entry, the *overtakes* are the later
requests that entered before it. "fairgate" is the waiting room of one host, "fair_k cluster" a cluster over Unix
sockets that runs this protocol.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench.net import bare_round_trip
from fairgate.lab.contest import Interpreter, Load, Measured, contest
from fairgate.lab.rivals import CLUSTER, INSTALL, SEMAPHORES, SERVERS, missing

PROCESSES, SECONDS = 8, 5.0
OTHER = "other checkout"
OURS = ("fairgate", f"fair_k{CLUSTER}")
LOCKS = (*OURS, *INSTALL)
HAND_OVERS = 5


class Bench:
    def __init__(self, other: str) -> None:
        self.other = other  # the interpreter of another checkout, for the row OTHER

    def run(self, kind: str, load: Load) -> Measured:
        if kind != OTHER:
            return contest(kind, [load])[0]
        python = Interpreter(self.other, Path(self.other).absolute().parents[2], ("PYTHONPATH", "FAIRGATE_PURE"))
        return contest("fairgate", [load], python)[0]


def show(console: Console, title: str, outcomes: dict[str, Measured]) -> None:
    table = Table(title=title, title_justify="left")
    columns = ("", "grants/s", "wait mean", "p99", "max", "p99/mean", "Jain", "fewest..most", "overtakes", "worst",
               "inside", "messages", "CPU")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for name, one in outcomes.items():
        table.add_row(
            name, f"{one.rate:,.0f}", ms(one.wait_mean), ms(one.wait_p99), ms(one.wait_max),
            f"{one.wait_p99 / one.wait_mean:.2f}", f"{one.jain:.3f}", f"{one.fewest:,}..{one.most:,}",
            f"{one.overtakes:.2f}", str(one.worst), str(one.most_inside),
            f"{one.messages:.2f}" if one.messages else "", f"{one.cpu * 1e6:.0f} us",
        )  # fmt: skip
    console.print(table)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def installed(console: Console, kinds: Sequence[str]) -> list[str]:
    found = []
    for kind in kinds:
        how = missing(kind)
        if how:
            console.print(f"{kind} is skipped; to include it: {how}")
        else:
            found.append(kind)
    return found


def show_hand_over(console: Console, bench: Bench, kinds: list[str]) -> None:
    """Compare with a bare ping. Rounds alternate, because the machine's speed varies."""
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    pings = []
    for _ in range(HAND_OVERS):
        for kind in kinds:
            taken[kind].append(bench.run(kind, Load(1, 0.001, processes=2, seconds=2.0)).hand_over)
        with TemporaryDirectory(prefix="fgbench") as folder:
            pings.append(bare_round_trip(Path(folder)))
    table = Table("5. hand-over: from one process leaving to the other entering", "median", "of a bare round trip")
    for kind, times in taken.items():
        ratio = median([own / ping for own, ping in zip(times, pings, strict=True)])
        table.add_row(kind, f"{median(times) * 1e6:.0f} us", f"{ratio:.2f}")
    table.add_row("a bare round trip, on our event loop and a Unix socket", f"{median(pings) * 1e6:.0f} us", "1")
    console.print(table)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long they contend (default: 5)")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="how many contend (default: 8)")
    parser.add_argument("--only", metavar="NAME", action="append", choices=LOCKS, help=f"one of: {', '.join(LOCKS)}."
                        " May be repeated (default: all that are installed)")  # fmt: skip
    parser.add_argument("--table", type=int, metavar="N", action="append", choices=range(1, 6),
                        help="which of the five tables. May be repeated (default: all)")  # fmt: skip
    parser.add_argument("--against", metavar="PYTHON", default="",
                        help="also measure the fairgate of another checkout, by the interpreter of its environment,"
                             " CHECKOUT/.venv/bin/python")  # fmt: skip
    return parser


def main() -> None:
    given = parser().parse_args()
    console = Console(width=170)
    bench = Bench(given.against)
    ours = (*OURS, OTHER) if given.against else OURS
    kinds = installed(console, [kind for kind in (*ours, *INSTALL) if kind in (given.only or LOCKS) or kind == OTHER])
    cases = [
        ("one lock, nothing inside", kinds, Load(1, 0.0, given.processes, given.seconds)),
        ("one lock, 2 ms inside", kinds, Load(1, 0.002, given.processes, given.seconds)),
        ("k = 3, 2 ms inside", [*ours, *SEMAPHORES], Load(3, 0.002, given.processes, given.seconds)),
        ("alone", [kind for kind in kinds if kind not in SERVERS[1:]], Load(1, 0.0, 1, given.seconds)),
    ]
    for number, (title, some, load) in enumerate(cases, 1):
        if number in (given.table or range(1, 6)):
            outcomes = {kind: bench.run(kind, load) for kind in some if kind in kinds}
            show(console, f"{number}. {title}", outcomes)
    if 5 in (given.table or [5]):
        show_hand_over(console, bench, [kind for kind in kinds if kind in (*ours, "flock", "posix_ipc")])


if __name__ == "__main__":
    main()
