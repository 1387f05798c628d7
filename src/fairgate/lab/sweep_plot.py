"""The plot of a sweep: a line for each protocol and each combination of the other swept parameters.

Only trials are averaged, never runs with different parameters: what a line leaves open would be noise in its intervals.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from fairgate.errors import BadInput
from fairgate.lab.grid import OPTION
from fairgate.lab.plot import COLOURS, LINES, Picture, series_by
from fairgate.lab.sweeps import Row

MOST_LINES = len(COLOURS) * len(LINES)  # that differ in colour or dashes
SPOKEN = ("protocol", "layers")  # their values need no name beside them
WIDE = 50  # a ratio of the largest x to the smallest from which the axis is logarithmic

SECONDS = (
    "cs",
    "give_up_after",
    "node_max_median",
    "node_max_p90",
    "replica_life",
    "round_seconds",
    "seconds",
    "simulated",
    "spread",
    "wait_max",
    "wait_mean",
    "wait_p50",
    "wait_p90",
    "wait_p99",
    "warmup_seconds",
)
UNITS = {
    **dict.fromkeys(SECONDS, "s"),
    **dict.fromkeys(("load_mean", "load_max", "load.mean", "load.p50", "load.p90", "load.max"), "messages per node"),
    "contention": "nodes",
    "give_up": "share of requests",
    "hops": "messages, counted per hop",
    "leave": "share of nodes",
    "rate": "requests per second and node",
    "throughput": "entries per second",
    "units_mean": "permits",
}  # all other columns are counts of what their names say


def lines_of(grid: Mapping[str, Sequence[Any]], x: str) -> list[str]:
    """The columns whose values make a line, for a plot against x: those that vary in the grid."""
    varied = [name for name, values in grid.items() if name != x and len(set(values)) > 1]
    return ["layers" if name == "stack" else name for name in varied] or ["protocol"]


def check_lines(grid: Mapping[str, Sequence[Any]], x: str) -> None:
    """Raise BadInput if there would be more lines than anyone can tell apart."""
    count = 1
    for name, values in grid.items():
        count *= len(set(values)) if name != x else 1
    if count > MOST_LINES:
        raise BadInput(
            f"a plot against {x} would have {count:,} lines, one per combination of the other parameters, and at most"
            f" {MOST_LINES} can be told apart: sweep fewer values, or plot against another parameter"
        )


def picture_of(rows: Sequence[Row], x: str, y: str, lines: Sequence[str]) -> Picture:
    """The means of y over the trials, with their 95 % intervals, as far as these are not below 0."""
    labelled = [row | {"line": ", ".join(said(name, row[name]) for name in lines)} for row in rows]
    values = sorted({row[x] for row in rows if isinstance(row.get(x), int | float)})
    wide = len(values) > 2 and values[0] > 0 and values[-1] / values[0] > WIDE
    protocols = {row["protocol"] for row in rows}
    title = protocols.pop() if len(protocols) == 1 else ""
    series = series_by(labelled, x, y, ("line",))
    return Picture(title, axis(x), axis(y), series, log_x=wide, limits=(0, inf))


def said(name: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    unit = " s" if name in SECONDS else ""
    return text if name in SPOKEN else f"{plain(name)} {text}{unit}"


def axis(name: str) -> str:
    return f"{plain(name)} ({UNITS[name]})" if name in UNITS else plain(name)


def plain(name: str) -> str:
    return name.removeprefix(OPTION).replace("_", " ").replace(".", " ")
