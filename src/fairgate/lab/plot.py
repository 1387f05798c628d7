"""Pictures of sweeps: one line per protocol, the mean of the trials with its 95 % interval. Needs matplotlib."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from math import ceil, floor, inf, log10
from pathlib import Path
from textwrap import fill
from typing import Any

from fairgate.errors import BadInput
from fairgate.lab.statistics import mean_and_margin

# Colours that people with any kind of colour vision can tell apart (Okabe and Ito), and a marker for each.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#A6761D")
MARKERS = "osD^vPX*"
INK = "#010203"  # of axes and words; in a page it becomes the colour of its text, light or dark

INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")  # of matplotlib's settings

WIDTH, HEIGHT = 4.8, 3.2  # inches, without the legend: letters stay readable when a phone shrinks the figure
LEGEND_LINE = 0.18  # inches
LABEL_HEIGHT = 34  # characters of the label of the y axis on one line
LEGEND_WIDTH = 74  # characters that fit beside each other, with about eight for the marker of each label
LINES = ("-", "--", "-.")
LEVEL_LINES: Any = (":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))  # dash patterns of matplotlib
# Widths: the last line, by how much an earlier one is thicker, and the most. So a line below another one shows.
THIN, THICKER, THICK = 1.4, 0.6, 3.6
DECADES = 12  # a logarithmic axis with more has ticks at every 10th or 20th power

Series = list[tuple[float, float, float]]  # x, mean, margin


@dataclass(frozen=True)
class Picture:
    title: str
    x: str  # what the axis shows, with its unit
    y: str
    series: Mapping[str, Series]  # by the name of the line
    log_x: bool = False
    log_y: bool = False
    steps: bool = False  # the value stays until the next point, as in distributions
    levels: Mapping[str, float] | None = None  # horizontal lines, such as the value that a law predicts
    limits: Sequence[float] | None = None  # the least y and the most that make sense, such as 0 and 1 for a share

    def _repr_svg_(self) -> str:
        """How notebooks show it."""
        return svg_of(self, self.title)


def check_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise BadInput("plots need matplotlib: pip install 'fairgate[lab]'")


def no_column(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 3)
    advice = f"did you mean {' or '.join(near)}?" if near else f"the columns are {', '.join(known)}"
    return f"cannot plot {name!r}: {advice}"


def series_by(
    rows: Sequence[Mapping[str, Any]], x: str, y: str, lines: Sequence[str] = ("protocol",)
) -> dict[str, Series]:
    """For each line, the mean of y and its margin at every x."""
    for name in (x, y, *lines):
        if any(name not in row for row in rows):
            raise BadInput(no_column(name, sorted(rows[0]) if rows else []))
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


def shares(values: Sequence[float], most: int = 400) -> Series:
    """The cumulative distribution: the share of the values up to each of them, at about so many and at both ends."""
    ordered = sorted(values)
    points = [(value, (place + 1) / len(ordered), 0.0) for place, value in enumerate(ordered)]
    return [*points[: -1 : max(1, len(points) // most)], points[-1]]


def draw(path: Path, picture: Picture) -> None:
    """Draws the picture into a file, whose name says the format: .svg, .png or .pdf."""
    figure = figure_of(picture)
    try:
        if path.suffix == ".svg":
            write_svg(figure, path, path.stem)
        else:
            figure.savefig(path)
    except (OSError, ValueError) as wrong:  # ValueError: an unknown format
        raise BadInput(f"cannot draw {path}: {wrong}") from wrong


def svg_of(picture: Picture, name: str) -> str:
    """The picture as an SVG element for a page, in the page's own font and colours. `name` makes its ids unique."""
    figure = figure_of(picture)
    figure.patch.set_visible(False)
    file = io.StringIO()
    write_svg(figure, file, name)
    text = file.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor").replace("<svg ", '<svg role="img" ', 1)


def write_svg(figure: Any, file: Path | io.StringIO, name: str) -> None:
    """With words as text, and the same bytes for the same picture."""
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None})


def figure_of(picture: Picture) -> Any:
    check_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415 (slow to import, and only needed here)
    from matplotlib.figure import Figure  # noqa: PLC0415

    style: Any = {
        **dict.fromkeys(INKED, INK),
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        labels = [*picture.series, *(picture.levels or {})]
        columns = max(1, min(len(labels), 3, LEGEND_WIDTH // (max(map(len, labels)) + 8)))
        height = HEIGHT + LEGEND_LINE * ceil(len(labels) / columns)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        lines = [*add_lines(axes, picture), *add_levels(axes, picture)]
        axes.set_title(picture.title, fontsize="medium")
        axes.set_xlabel(axis_label(picture.x, picture.log_x))
        axes.set_ylabel(fill(axis_label(picture.y, picture.log_y), LABEL_HEIGHT))
        for axis, logarithmic in ((axes.xaxis, picture.log_x), (axes.yaxis, picture.log_y)):
            write_plainly(axis, logarithmic)
        if not picture.log_x and all(x == int(x) for points in picture.series.values() for x, _, _ in points):
            axes.locator_params(axis="x", integer=True)  # counts, such as nodes
        axes.grid(alpha=0.25)
        if len(lines) > 1:  # below the axes, where it hides nothing
            figure.legend(handles=lines, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    return figure


def axis_label(label: str, logarithmic: bool) -> str:
    return f"{label} (log scale)" if logarithmic else label


def write_plainly(axis: Any, logarithmic: bool) -> None:
    """Ticks as 0.01 or 10,000. A logarithmic axis has some between the powers of ten if there are few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: PLC0415

    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    if logarithmic:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    if logarithmic or high >= 1_000:
        axis.set_major_formatter(plain)
    if logarithmic and high > low * 10.0**DECADES:
        step = 20 if high > low * 1e60 else 10
        powers = range(step * ceil(log10(low) / step), floor(log10(high)) + 1, step)
        axis.set_ticks([10.0**power for power in powers])
        axis.set_minor_locator(NullLocator())
    elif logarithmic:
        few = high < 300 * low
        if few:
            axis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.set_minor_formatter(plain if few else NullFormatter())


def add_lines(axes: Any, picture: Picture) -> list[Any]:
    """Returns what the legend shows. Earlier lines are thicker."""
    count = len(picture.series)
    step = min(THICKER, (THICK - THIN) / count)
    return [
        add_line(axes, place, THIN + step * (count - 1 - place), label, points, picture)
        for place, (label, points) in enumerate(picture.series.items())
    ]


def add_levels(axes: Any, picture: Picture) -> list[Any]:
    return [
        axes.axhline(level, color=INK, linestyle=LEVEL_LINES[place % len(LEVEL_LINES)], linewidth=1, label=label)
        for place, (label, level) in enumerate((picture.levels or {}).items())
    ]


def add_line(axes: Any, place: int, width: float, label: str, points: Series, picture: Picture) -> Any:
    """With error bars where there are margins. Lines without markers alternate in their dashes."""
    xs, means, margins = zip(*points, strict=True)
    style: Any = {"color": COLOURS[place % len(COLOURS)], "linewidth": width, "label": label}
    if picture.steps:
        return axes.step(xs, means, where="post", linestyle=LINES[place % len(LINES)], **style)[0]
    style |= {"linestyle": LINES[place // len(COLOURS) % len(LINES)]}
    style |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 2.5 + width}
    if any(margins):
        least, most = picture.limits or (-inf, inf)
        below = [min(margin, y - least) for y, margin in zip(means, margins, strict=True)]
        above = [min(margin, most - y) for y, margin in zip(means, margins, strict=True)]
        return axes.errorbar(xs, means, yerr=(below, above), elinewidth=1, capsize=2, **style)
    return axes.plot(xs, means, **style)[0]
