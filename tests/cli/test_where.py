"""`fairgate where` and `fairgate setup`."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from fairgate.cli.app import run
from fairgate.room import clusters, place
from tests.room.others import mount, needs_root, with_own_mounts

ME = os.geteuid()


@pytest.fixture(autouse=True)
def _no_given_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRGATE_DIR", raising=False)


def test_the_directory_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["where"]) == 0
    path, why, others, *_ = capsys.readouterr().out.splitlines()
    choice = place.choose(create=False)
    assert path == choice.path
    assert f"(user {ME}) are here, because {choice.why}." in why
    assert "root is another user" in others
    assert run(["where", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    clusters = found.pop("clusters")
    assert found == {"directory": choice.path, "why": choice.why, "user": ME}
    assert all("/clusters/" in folder for folder in clusters)


def test_a_given_directory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "new"))
    assert run(["where"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        str(tmp_path / "new"),
        f"The gates of {pwd.getpwuid(ME).pw_name} (user {ME}) are here, because FAIRGATE_DIR is set.",
    ]
    assert not (tmp_path / "new").exists()


def test_the_file_of_a_gate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["where", "gpu"]) == 0
    assert run(["where", "./my.lock"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{tmp_path}/gpu.gate", f"{tmp_path}/my.lock"]
    assert run(["where", "gpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"directory": str(tmp_path), "file": f"{tmp_path}/gpu.gate", "user": ME}


@pytest.mark.parametrize("arguments", [["where"], ["where", "gpu"]])
def test_a_directory_that_cannot_be_used(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", "/proc/self")
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "proc is not known to be a local file system" in said.err


def test_setup_without_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup"]) == 2
    assert capsys.readouterr().err == "fairgate: nothing to do: use --print-tmpfiles\n"


@needs_root
@pytest.mark.skipif(not shutil.which("systemd-tmpfiles"), reason="there is no systemd-tmpfiles")
def test_systemd_creates_the_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["setup", "--print-tmpfiles"]) == 0
    file = tmp_path / "fairgate.conf"
    file.write_text(capsys.readouterr().out)

    def work() -> str:
        mount("tmpfs", "/run")
        subprocess.run(["systemd-tmpfiles", "--create", str(file)], check=True)
        return f"{place.gates_folder()} {clusters.make_folder('lab')}"

    assert with_own_mounts(work) == f"{place.RUN}/0 {place.RUN}/clusters/lab"
