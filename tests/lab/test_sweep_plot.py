"""Plots of sweeps: runs with different parameters are never averaged, axes have units, and intervals end at 0."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest

from fairgate.errors import BadInput
from fairgate.lab.plot import draw, figure_of
from fairgate.lab.sweep_plot import MOST_LINES, UNITS, check_lines, lines_of, picture_of
from fairgate.lab.sweeps import number_columns, sweep

pytest.importorskip("matplotlib")

COUNTS = {  # columns without a unit: they count what their names say
    "askers", "backlog", "cancelled", "churn", "entries", "events", "k", "lost", "max_displacement", "max_inside",
    "max_overtaken", "measured", "messages_per_entry", "nodes", "outsiders", "overtakes", "replicas", "requesters",
    "requests", "resources", "rounds", "seed", "violations", "warmup",
}  # fmt: skip


def row(protocol: str, nodes: int, rate: float, wait: float) -> dict[str, Any]:
    return {"protocol": protocol, "nodes": nodes, "rate": rate, "wait_max": wait}


ROWS = [
    row(protocol, nodes, rate, nodes / rate + trial)
    for protocol in ("fair_k", "bv95")
    for nodes in (50, 100)
    for rate in (0.25, 0.5)
    for trial in (0, 2)
]
Grid = dict[str, Sequence[Any]]
GRID: Grid = {
    "protocol": ["fair_k", "bv95"],
    "nodes": [50, 100],
    "rate": [0.25, 0.5],
    "cs": [10.0],
    "seed": [1],
}


def test_each_combination_of_the_other_parameters_has_a_line() -> None:
    lines = lines_of(GRID, "rate")
    assert lines == ["protocol", "nodes"]
    picture = picture_of(ROWS, "rate", "wait_max", lines)
    assert list(picture.series) == ["fair_k, nodes 50", "fair_k, nodes 100", "bv95, nodes 50", "bv95, nodes 100"]
    for name, points in picture.series.items():
        nodes = int(name.rpartition(" ")[2])
        assert [(x, mean) for x, mean, _ in points] == [(0.25, nodes / 0.25 + 1), (0.5, nodes / 0.5 + 1)]
        assert [margin for *_, margin in points] == [pytest.approx(12.706)] * 2  # of two trials that differ by 2


def test_one_combination_is_one_line_with_the_protocol_as_the_title() -> None:
    grid: Grid = {"protocol": ["fair_k"], "nodes": [50, 100], "seed": [1]}
    assert lines_of(grid, "nodes") == ["protocol"]
    picture = picture_of([each for each in ROWS if each["protocol"] == "fair_k"], "nodes", "wait_max", ["protocol"])
    assert (list(picture.series), picture.title) == (["fair_k"], "fair_k")


def test_lines_name_options_layers_and_units() -> None:
    rows = [row("sigma", 10, 1.0, 3.0) | {"layers": "settled_chord", "option.retry": 50, "cs": 0.5}]
    grid: Grid = {
        "protocol": ["sigma"],
        "stack": [("a",), ("b",)],
        "option.retry": [0, 50],
        "cs": [0.5, 1],
        "nodes": [10],
    }
    picture = picture_of(rows, "nodes", "wait_max", lines_of(grid, "nodes"))
    assert list(picture.series) == ["settled_chord, retry 50, cs 0.5 s"]


def test_a_plot_against_a_result_pools_nothing_either() -> None:
    assert lines_of(GRID, "load_mean") == ["protocol", "nodes", "rate"]


def test_axes_have_units() -> None:
    picture = picture_of(ROWS, "rate", "wait_max", ["protocol", "nodes"])
    assert (picture.x, picture.y) == ("rate (requests per second and node)", "wait max (s)")


def test_every_column_of_numbers_has_a_unit_or_is_a_count() -> None:
    assert set(number_columns()) <= set(UNITS) | COUNTS
    assert not set(UNITS) & COUNTS
    assert set(UNITS) <= set(number_columns())


def test_intervals_end_at_0() -> None:
    rows = [row("fair_k", nodes, 1.0, wait) for nodes in (4, 8) for wait in (nodes, 3.0 * nodes)]
    picture = picture_of(rows, "nodes", "wait_max", ["protocol"])
    assert picture.limits == (0, inf)
    assert all(mean < margin for _, mean, margin in picture.series["fair_k"])
    axes = figure_of(picture).axes[0]
    lows = [y for bars in axes.collections for segment in bars.get_segments() for _, y in segment]
    assert min(lows) == 0


def test_trials_of_a_sweep_are_what_its_intervals_average(tmp_path: Path) -> None:
    rows = sweep("fair_k", nodes=[4, 8], rate=[0.5, 2], requests=5, trials=3, workers=1)
    picture = picture_of(rows, "nodes", "wait_mean", lines_of({"nodes": [4, 8], "rate": [0.5, 2]}, "nodes"))
    assert list(picture.series) == ["rate 0.5", "rate 2"]
    means = [each["wait_mean"] for each in rows if (each["nodes"], each["rate"]) == (4, 2)]
    assert picture.series["rate 2"][0][1] == pytest.approx(sum(means) / 3)
    draw(tmp_path / "x.svg", picture)
    text = (tmp_path / "x.svg").read_text()
    assert all(said in text for said in ("rate 2", "wait mean (s)", "fair_k"))


def test_more_lines_than_can_be_told_apart_are_refused() -> None:
    grid: Grid = {"protocol": ["a"], "nodes": range(MOST_LINES), "rate": range(9)}
    check_lines(grid, "rate")
    with pytest.raises(BadInput) as wrong:
        check_lines({**grid, "k": [1, 2]}, "rate")
    assert str(wrong.value) == (
        "a plot against rate would have 48 lines, one per combination of the other parameters, and at most 24 can be"
        " told apart: sweep fewer values, or plot against another parameter"
    )
