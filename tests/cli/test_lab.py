"""`fairgate lab`, as its users run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairgate.cli import lab
from fairgate.cli.app import run
from fairgate.lab import sweeps as sweep_module
from fairgate.lab.experiment import EXPERIMENTS, Bench
from fairgate.sim.config import Config

pytest.importorskip("matplotlib")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick runs in the size for tests."""
    monkeypatch.setattr(lab, "Bench", lambda _, *rest: Bench("tiny", *rest))


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "list"]) == 0
    text = capsys.readouterr().out
    assert all(id in text for id in EXPERIMENTS)
    assert run(["lab", "list", "--json"]) == 0
    assert {each["id"] for each in json.loads(capsys.readouterr().out)} == set(EXPERIMENTS)


def test_the_list_says_which_seconds_are_estimates() -> None:
    assert [lab.lasting(*each) for each in ((None,), (2.5,), (48, True))] == ["not measured", "2.5 s", "about 48 s"]


@pytest.mark.usefixtures("tiny")
def test_a_run_writes_a_report_and_a_second_one_runs_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["lab", "run", "rf.8.2", "SG.2", "--out", str(tmp_path / "out"), "--workers", "1"]
    assert run(command) == 0
    assert "wrote" in capsys.readouterr().out
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")}
    assert set(first) == {"RF.8.2.csv", "RF.8.2.points.csv", "SG.2.csv", "SG.2.points.csv"}
    assert (tmp_path / "out" / "report.html").read_text().count("<section") == 2
    monkeypatch.setattr(sweep_module, "row_of", lambda *_: pytest.fail("it was run again"))
    assert run(command) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")} == first


@pytest.mark.usefixtures("tiny")
def test_after_ctrl_c_the_same_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["lab", "run", "RF.8.2", "--out", str(tmp_path / "out"), "--workers", "1"]
    real, ran = sweep_module.row_of, []

    def counted(config: Config, series: tuple[str, ...]) -> dict[str, object]:
        ran.append(config)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return real(config, series)

    monkeypatch.setattr(sweep_module, "row_of", counted)
    assert run(command) == 130
    assert "goes on from here" in capsys.readouterr().err
    assert run(command) == 0
    assert len(ran) == len(set(map(str, ran))) + 1  # only the run that was interrupted was begun twice


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["FK.33"], "did you mean FK.3"),
        (["FK.3", "nope"], "`fairgate lab list`"),
        (["FK.3", "--out", "/proc/nowhere"], "cannot make the directory /proc/nowhere"),
        (["all", "FK.33"], "did you mean FK.3"),
        (["FK.3", "--out", ""], "--out must be a directory"),
        (["FK.3", "--seed", "-1"], "the seed must be a whole number, 0 or more"),
        (["FK.3", "--workers", "0"], "--workers must be at least 1"),
        (["FK.3", "--latency", "nowhere.csv"], "cannot read the latency file"),
        ([], "missing argument"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["lab", "run", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_dask_the_option_says_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairgate.lab.cluster.find_spec", lambda _: None)
    assert run(["lab", "run", "SG.2", "--dask", "tcp://127.0.0.1:1", "--out", str(tmp_path)]) == 2
    assert "pip install 'fairgate[dask]'" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_a_cluster_gives_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path))  # of its workers
    distributed = pytest.importorskip("distributed")
    with local_cluster(distributed, tmp_path) as address:
        assert run(["lab", "run", "RF.8.2", "--dask", address, "--out", str(tmp_path / "cluster")]) == 0
    assert run(["lab", "run", "RF.8.2", "--workers", "1", "--out", str(tmp_path / "alone")]) == 0
    assert (tmp_path / "cluster" / "RF.8.2.csv").read_bytes() == (tmp_path / "alone" / "RF.8.2.csv").read_bytes()


@contextmanager
def local_cluster(distributed: object, folder: Path) -> Iterator[str]:
    options: dict[str, object] = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    options |= {"dashboard_address": None, "local_directory": str(folder / "dask")}
    with distributed.LocalCluster(**options) as cluster:  # type: ignore[attr-defined]
        yield cluster.scheduler_address


def test_a_scheduler_that_does_not_answer_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("fairgate.lab.cluster.PATIENCE", 1)
    assert run(["lab", "run", "SG.2", "--dask", "tcp://127.0.0.1:1", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "the Dask scheduler 'tcp://127.0.0.1:1' does not answer" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run(["lab", "run", "SG.2", "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a directory, not the file" in capsys.readouterr().err
