"""`fairgate sweep`, as its users run it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fairgate.cli.app import run
from tests.cli.test_lab import local_cluster

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
        (["fair_k", "--option", "nope=1", "--out", "x.csv"], "fair_k has no option 'nope'"),
        (["fair_k", "--rate", "0", "--out", "x.csv"], "rate must be above 0"),
        (["fair_k", "--trials", "0", "--out", "x.csv"], "trials must be at least 1"),
        (["fair_k", "--plot", "rate", "--out", "x.csv"], "write it as X:Y"),
        (["fair_k", "--plot", "rate:wait_mx", "--out", "x.csv"], "cannot plot 'wait_mx': did you mean wait_max"),
        (["fair_k", "--plot", "rate:protocol", "--out", "x.csv"], "cannot plot 'protocol'"),
        (["fair_k", "--quorum", "3", "--out", "x.csv"], "fair_k has no option 'quorum'"),
        (["fair_k", "--nodes", "5", "--nodes", "6", "--out", "x.csv"], "--nodes was given twice"),
        (["fair_k", "--rate", ",", "--out", "x.csv"], "cannot read rate"),
        (["fair_k", "--seed", "-1", "--out", "x.csv"], "the seed must be a whole number, 0 or more"),
        (["sigma", "--nodes", "20", "--backups", "2", "--out", "x.csv"], "handles failures by itself"),
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


def test_equal_values_are_refused_not_pooled(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["fair_k", "--rate", "0.1,0.2,0.10"], "rate has 0.1"),
        (["fair_k", "fair_k"], "protocol has fair_k"),
        (["bv95", "--option", "cache=none,none"], "option.cache has none"),
        (["sigma", "--overlay", "pastry,pastry"], "stack has settled_pastry"),
    ):
        assert run(["sweep", *words, *SMALL, "--json"]) == 2
        end = "twice: name each value once, and use trials for several runs"
        assert capsys.readouterr().err == f"fairgate: {said} {end}\n"


def test_a_directory_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "fair_k", *SMALL, "--out", str(tmp_path / "x.csv")]) == 0
    (tmp_path / "y.csv").mkdir()
    assert run(["sweep", "fair_k", *SMALL, "--out", str(tmp_path / "y.csv")]) == 2
    assert "it is a directory" in capsys.readouterr().err


def test_backups_are_swept_with_the_layers_that_keep_them(tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    assert run(["sweep", "fair_k", *SMALL, "--backups", "0,2", "--option", "hold=false", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["layers"] for row in rows} == {"regenerate+channel+homes+full"}
    none, two = ([row["messages_per_entry"] for row in rows if row["option.backups"] == p] for p in (0, 2))
    assert min(two) > 2 * max(none)


def test_rows_of_different_overlays_differ_in_their_layers(tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    words = ["--nodes", "12", "--requests", "2", "--overlay", "chord,pastry", "--workers", "1"]
    assert run(["sweep", "sigma", *words, "--out", str(out)]) == 0
    assert [json.loads(line)["layers"] for line in out.read_text().splitlines()] == ["settled_chord", "settled_pastry"]


def test_a_cluster_gives_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path))  # of its workers
    distributed = pytest.importorskip("distributed")
    tables = [tmp_path / name for name in ("cluster.csv", "alone.csv")]
    words = ["sweep", "fair_k", "bv95", *SMALL, "--trials", "3"]
    with local_cluster(distributed, tmp_path) as address:
        assert run([*words, "--dask", address, "--out", str(tables[0])]) == 0
    assert run([*words, "--out", str(tables[1])]) == 0
    assert tables[0].read_bytes() == tables[1].read_bytes()
