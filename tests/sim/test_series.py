"""The raw series of a run, from which figures are drawn: waits, longest waits of the nodes, and permits in use."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from fairgate.cli.app import run
from fairgate.errors import BadInput
from fairgate.sim import tables
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result
from fairgate.sim.tables import check_file, usage_of, waits_of, write_table
from fairgate.sim.trials import run_trials

SATURATED = Config(nodes=20, k=3, rate=0.5, cs=10, latency="1", requests=20, waits=True)


def longest_by_node(result: Result) -> list[float]:
    longest: dict[float, float] = defaultdict(float)
    for node, wait in zip(result.waits["node"], result.waits["wait"], strict=True):
        longest[node] = max(longest[node], wait)
    return sorted(longest.values())


def table(path: Path) -> tuple[list[str], list[list[float]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, [[float(cell) for cell in row] for row in rows]


# Waits.


@pytest.mark.parametrize("config", [SATURATED, replace(SATURATED, warmup=5), replace(SATURATED, seconds=200)])
def test_the_waits_are_those_that_were_measured(config: Config) -> None:
    result = simulate(config)
    waits = list(result.waits["wait"])
    assert len(waits) == result.measured
    assert max(waits) == result.wait_max
    assert sum(waits) / len(waits) == pytest.approx(result.wait_mean)
    assert longest_by_node(result) == sorted(result.node_maxima)
    assert simulate(replace(config, waits=False)).waits == {}


def test_the_warm_up_in_seconds_counts_by_the_time_of_entry() -> None:
    result = simulate(replace(SATURATED, seconds=200, warmup_seconds=150))
    assert len(result.waits["wait"]) == result.measured < result.entries
    ended = [asked + wait for asked, wait in zip(result.waits["asked"], result.waits["wait"], strict=True)]
    assert min(ended) >= 150
    assert ended == sorted(ended)


def test_waits_at_several_gates_name_the_gate() -> None:
    config = Config("sigma", nodes=10, k=1, resources=3, rate=5, cs=0.5, latency="0.1", requests=2, waits=True)
    waits = simulate(config).waits
    pairs = list(zip(waits["node"], waits["gate"], strict=True))
    assert {gate for _, gate in pairs} == {0, 1, 2}
    assert {node for node, _ in pairs} == set(range(10))
    assert len(pairs) == 60  # every node twice at every gate


def test_raw_series_are_not_part_of_the_json_object() -> None:
    found = simulate(replace(SATURATED, usage=True)).as_json()
    assert not {"waits", "usage", "node_maxima"} & set(json.loads(json.dumps(found)))


# Contention, by Little's law.


@pytest.mark.parametrize("rate", [1, 0.01, 0.001])
def test_contention_is_what_the_paper_computes(rate: float) -> None:
    """FK section 4: N times the share of its time that a node spends waiting or inside."""
    result = simulate(Config(rate=rate, requests=10_000, seconds=30_000, warmup_seconds=2_000))
    there = result.wait_mean + 10
    assert result.contention == pytest.approx(100 * there / (there + 1 / rate), rel=0.05)


def test_contention_is_the_mean_number_that_wait_or_are_inside() -> None:
    """Counted from the requests themselves, while all nodes are still busy."""
    config = replace(SATURATED, requests=400, exponential_cs=True, rate=0.02)
    result = simulate(config)
    end = 2000.0
    waits = zip(result.waits["asked"], result.waits["wait"], strict=True)
    there = sum(max(0.0, min(asked + wait, end) - asked) for asked, wait in waits if asked < end) / end
    assert result.contention == pytest.approx(there + result.units_mean, rel=0.1)


# Files.


def test_waits_of_trials_are_written_with_their_seeds(tmp_path: Path) -> None:
    path = tmp_path / "waits.csv"
    arguments = "sim fair_k --nodes 20 --requests 6 --warmup 2 --trials 3 --workers 1 --json --waits"
    assert run([*arguments.split(), str(path)]) == 0
    header, rows = table(path)
    assert header == ["seed", "node", "gate", "asked", "wait"]
    results = run_trials(Config(nodes=20, requests=6, warmup=2, waits=True), 3, workers=1)
    assert len(rows) == sum(result.measured for result in results) == 3 * 20 * 4
    for result in results:
        longest: dict[float, float] = defaultdict(float)
        for seed, node, _, _, wait in rows:
            if seed == result.seed:
                longest[node] = max(longest[node], wait)
        assert sorted(longest.values()) == sorted(result.node_maxima)


def test_usage_is_written(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    assert run(["sim", "raymond", "--nodes", "5", "--k", "2", "--requests", "10", "--usage", str(path)]) == 0
    header, rows = table(path)
    assert header == ["seed", "time", "inside"]
    result = simulate(Config("raymond", nodes=5, k=2, requests=10, usage=True))
    assert [(time, inside) for _, time, inside in rows] == list(result.usage)
    held = sum(inside * (end - start) for (_, start, inside), (_, end, _) in pairwise(rows))
    assert held == pytest.approx(50 * 10)


def test_parquet_has_the_same_columns(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    results = run_trials(replace(SATURATED, usage=True), 2, workers=1)
    for columns in (waits_of(results), usage_of(results)):
        path = str(tmp_path / "table.parquet")
        write_table(path, columns)
        found = import_module("pyarrow.parquet").read_table(path)
        assert found.column_names == list(columns)
        assert {name: found[name].to_pylist() for name in columns} == {
            name: list(column) for name, column in columns.items()
        }


def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, line in {
        "waits.txt": "cannot write a table to waits.txt: its name must end in .csv or .parquet",
        f"{tmp_path}/no/waits.csv": f"cannot write {tmp_path}/no/waits.csv: No such file or directory",
    }.items():
        with pytest.raises(BadInput) as wrong:
            check_file(path)
        assert str(wrong.value) == line
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    with pytest.raises(BadInput, match=r"waits.parquet needs pyarrow: pip install 'fairgate\[parquet\]'"):
        check_file(f"{tmp_path}/waits.parquet")
    assert run(["sim", "fair_k", "--usage", "usage.txt"]) == 2
