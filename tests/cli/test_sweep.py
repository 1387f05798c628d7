"""`fairgate sweep`, as its users run it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fairgate.cli.app import run

SMALL = ["--nodes", "4,6", "--k", "2", "--requests", "5", "--workers", "1"]


def test_a_sweep_writes_a_table_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "waits.csv"
    assert (
        run(["sweep", "fair_k", "raymond", *SMALL, "--trials", "2", "--out", str(out), "--plot", "nodes:wait_max"]) == 0
    )
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["nodes"] for row in rows] == ["4", "4", "6", "6"] * 2
    assert {row["protocol"] for row in rows} == {"fair_k", "raymond"}
    picture = (tmp_path / "waits.svg").read_text()
    assert "fair_k" in picture or "<path" in picture
    assert "wrote 8 rows" in capsys.readouterr().out


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_other_formats_hold_the_same_rows(tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"waits{ending}"
    assert run(["sweep", "fair_k", *SMALL, "--out", str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    if ending == ".jsonl":
        assert [json.loads(line) for line in out.read_text().splitlines()] == rows
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(out).to_pylist() == rows


def test_options_of_protocols_can_be_swept(tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    assert run(["sweep", "bv95", *SMALL, "--option", "cache=none,sorted", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["nodes"], row["option.cache"]) for row in rows] == [
        (4, "none"),
        (4, "sorted"),
        (6, "none"),
        (6, "sorted"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fair_k", "--nods", "3", "--out", "x.csv"], "did you mean --nodes"),
        (["fair_k", "--colour", "3", "--out", "x.csv"], "there is no parameter --colour: choose from"),
        (["fair_q", "--out", "x.csv"], "did you mean fair_k"),
        (["fair_k", "--out", "x.txt"], "must end in"),
        (["fair_k", "--out", "/nowhere/x.csv"], "cannot write /nowhere/x.csv"),
        (["fair_k"], "where to?"),
        (["fair_k", "--nodes"], "--nodes needs a value"),
        (["fair_k", "--nodes", "5", "--k", "6", "--out", "x.csv"], "k must be 1..5"),
        (["fair_k", "--option", "nope=1", "--out", "x.csv"], "fair_k has no option nope"),
        (["fair_k", "--rate", "0", "--out", "x.csv"], "rate must be above 0"),
        (["fair_k", "--trials", "0", "--out", "x.csv"], "trials must be at least 1"),
        (["fair_k", "--plot", "rate", "--out", "x.csv"], "write it as X:Y"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["sweep", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
