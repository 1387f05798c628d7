"""Plots of sweeps: one line per protocol, the mean of the trials with its 95 % interval. Needs matplotlib."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairgate.errors import BadInput
from fairgate.lab.statistics import mean_and_margin

# Colours that people with any kind of colour vision can tell apart (Okabe and Ito), and a marker for each.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*"

Series = list[tuple[float, float, float]]  # x, mean, margin


def check_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise BadInput("plots need matplotlib: pip install 'fairgate[lab]'")


def series_by(
    rows: Sequence[Mapping[str, Any]], x: str, y: str, lines: Sequence[str] = ("protocol",)
) -> dict[str, Series]:
    """For each line, the mean of y and its margin at every x."""
    for name in (x, y, *lines):
        if any(name not in row for row in rows):
            known = sorted(rows[0]) if rows else []
            raise BadInput(f"cannot plot {name!r}: the columns are {', '.join(known)}")
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        label = ", ".join(str(row[name]) for name in lines)
        found.setdefault(label, {}).setdefault(number(x, row[x]), []).append(number(y, row[y]))
    return {
        label: [(at, *mean_and_margin(values)) for at, values in sorted(by_x.items())] for label, by_x in found.items()
    }


def number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"cannot plot {name!r}: {value!r} is not a number")
    return float(value)


def draw(
    path: Path, series: Mapping[str, Series], x: str, y: str, title: str = "", log_x: bool = False, log_y: bool = False
) -> None:
    """Draws the lines into a file, whose name says the format: .svg, .png or .pdf."""
    check_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import, and only needed here)

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for place, (label, points) in enumerate(series.items()):
        xs, means, margins = zip(*points, strict=True)
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        bars = axes.errorbar(
            xs, means, yerr=margins, color=colour, marker=marker, markersize=4, capsize=2, linewidth=1.3
        )
        bars.set_label(label)
    axes.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "), title=title)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as wrong:  # ValueError: an unknown format
        raise BadInput(f"cannot draw {path}: {wrong}") from wrong
