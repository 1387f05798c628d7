"""Sweeps give the same table wherever they run, and never run anything twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairgate.errors import BadInput
from fairgate.lab import sweeps as module
from fairgate.lab.sweeps import sweep
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

GRID: dict[str, Any] = {"nodes": [4, 6], "k": 2, "requests": 5, "rate": [0.5, 5.0]}


def test_a_sweep_has_one_row_per_run_in_the_order_of_the_grid() -> None:
    rows = sweep("fair_k", "raymond", trials=2, workers=1, **GRID)
    assert [(row["protocol"], row["nodes"], row["rate"], row["seed"]) for row in rows[:3]] == [
        ("fair_k", 4, 0.5, 1),
        ("fair_k", 4, 0.5, 2),
        ("fair_k", 4, 5.0, 1),
    ]
    assert len(rows) == 16
    assert all(row["entries"] == row["nodes"] * 5 and row["violations"] == 0 for row in rows)


def test_the_numbers_do_not_depend_on_the_workers() -> None:
    alone = sweep("fair_k", trials=3, workers=1, **GRID)
    assert sweep("fair_k", trials=3, workers=2, **GRID) == alone
    with ThreadPoolExecutor(1) as executor:
        assert sweep("fair_k", trials=3, executor=executor, **GRID) == alone


def test_what_was_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = sweep("fair_k", workers=1, cache=cache, **GRID)
    ran: list[Config] = []
    real = module.row_of

    def counted(config: Config, series: Sequence[str]) -> dict[str, Any]:
        ran.append(config)
        return real(config, series)

    monkeypatch.setattr(module, "row_of", counted)
    assert sweep("fair_k", workers=1, cache=cache, **GRID) == first
    assert ran == []
    more = sweep("fair_k", workers=1, cache=cache, **{**GRID, "nodes": [4, 6, 7]})
    assert [config.nodes for config in ran] == [7, 7]
    assert more[:4] == first
    monkeypatch.setattr("fairgate.lab.cache.code_version", lambda _: "other code")
    sweep("fair_k", workers=1, cache=cache, **GRID)
    assert len(ran) == 2 + 4


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sweep("fair_k", workers=1, **GRID)
    ran: list[Config] = []
    real = module.row_of

    def interrupted(config: Config, series: Sequence[str]) -> dict[str, Any]:
        ran.append(config)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return real(config, series)

    monkeypatch.setattr(module, "row_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep("fair_k", workers=1, cache=tmp_path / "cache", **GRID)
    assert sweep("fair_k", workers=1, cache=tmp_path / "cache", **GRID) == whole
    assert len(ran) == 3 + 2  # the third one was not finished


def test_a_run_that_was_interrupted_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "simulate", lambda config: replace(simulate(config), interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        sweep("fair_k", workers=1, cache=tmp_path / "cache", nodes=4, k=2, requests=5)
    monkeypatch.undo()
    rows = sweep("fair_k", workers=1, cache=tmp_path / "cache", nodes=4, k=2, requests=5)
    assert rows == sweep("fair_k", workers=1, nodes=4, k=2, requests=5)


def test_series_are_kept_if_they_are_asked_for(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert "node_maxima" not in sweep("fair_k", cache=cache, workers=1, nodes=4, k=2, requests=5)[0]
    row = sweep("fair_k", cache=cache, workers=1, series=["node_maxima"], nodes=4, k=2, requests=5)[0]
    assert max(row["node_maxima"]) == row["wait_max"]


@pytest.mark.parametrize(
    ("protocols", "grid", "words"),
    [
        ((), {}, "at least one protocol"),
        (("fair_q",), {}, "fair_q"),
        (("fair_k",), {"trials": 0}, "trials must be"),
        (("fair_k",), {"nodes": [2], "k": 3}, "k"),
        (("fair_k",), {"colour": [2]}, "no parameter 'colour'"),
        (("fair_k",), {"option.colour": [2]}, "fair_k has no option 'colour': its options are parent_on_child"),
        (("raymond",), {"option.colour": [2]}, "raymond has no option 'colour'"),
        (("fair_k",), {"seed": -1}, "the seed must be a whole number, 0 or more"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    protocols: tuple[str, ...], grid: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        sweep(*protocols, **grid)


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"not a database, and long enough to be read as one" * 100)
    with pytest.raises(BadInput, match="remove the file"):
        sweep("fair_k", nodes=4, k=2, cache=tmp_path / "cache")


def test_a_cache_that_another_run_has_locked_is_not_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairgate.lab.cache.LOCKED_SECONDS", 0.01)
    sweep("fair_k", nodes=4, k=2, requests=5, workers=1, cache=tmp_path / "cache")
    with closing(sqlite3.connect(tmp_path / "cache")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BadInput, match="wait for the other run"):
            sweep("fair_k", nodes=4, k=2, requests=5, workers=1, cache=tmp_path / "cache")


def test_the_columns_of_numbers_are_known_before_a_run() -> None:
    row = sweep("fair_k", nodes=4, k=2, requests=5, workers=1)[0]
    numbers = {name for name, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    assert set(module.number_columns()) == numbers
