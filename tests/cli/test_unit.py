"""`fairgate peer --print-unit`: a unit that systemd accepts, and that runs the same peer from anywhere."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from fairgate.cli import unit
from fairgate.cli.app import run

ME = pwd.getpwuid(os.geteuid()).pw_name
Unit = Callable[..., list[str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Unit:
    """The rows of the unit for `fairgate peer WORDS`, printed in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [sysconfig.get_path("scripts") + "/fairgate"])
    for name in ("FAIRGATE_DIR", "FAIRGATE_SECRET"):
        monkeypatch.delenv(name, raising=False)

    def do(*words: str) -> list[str]:
        code = run(["peer", *words, "--print-unit"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out.splitlines()

    return do


def value(rows: list[str], name: str) -> str:
    [found] = [row.partition("=")[2] for row in rows if row.startswith(f"{name}=")]
    return found


HOST = ("gpu", "-k", "3", "--metrics", "9150")
TCP = ("--create", "--listen", "10.0.0.5:7400", "--insecure")


def test_a_unit_waits_for_the_drain(printed: Unit) -> None:
    assert value(printed(*TCP), "TimeoutStopSec") == "30"
    assert value(printed(*TCP, "--drain", "5m"), "TimeoutStopSec") == "330"
    assert value(printed(*TCP, "--drain", "0.5"), "TimeoutStopSec") == "31"
    assert value(printed(*TCP, "--drain", "1234567.25"), "TimeoutStopSec") == "1234598"
    assert " --drain 1234567.25 " in value(printed(*TCP, "--drain", "1234567.25"), "ExecStart")
    assert " --lease 1234567.25 " in value(printed(*TCP, "--lease", "1234567.25"), "ExecStart")


def test_a_description_is_one_line(printed: Unit) -> None:
    for cluster, shown in (("x\\", "x\\\\"), ("x\\\\", "x\\\\\\\\"), ("50%", "50%%")):
        rows = printed(*TCP, "--cluster", cluster)
        assert value(rows, "Description") == f"fairgate, standing peer of cluster {shown}"


def test_a_unit_keeps_the_keys_that_the_environment_chooses(
    printed: Unit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Under systemd, HOME is that of the unit's user, and XDG_CONFIG_HOME is not set."""
    words = TCP[:3]
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd((ME, "x", 1, 1, "", str(tmp_path / "home"), "")))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert " --keys " not in value(printed(*words), "ExecStart")
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    assert value(printed(*words), "ExecStart").endswith(f" --keys {tmp_path}/other/.config/fairgate/keys")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert value(printed(*words), "ExecStart").endswith(f" --keys {tmp_path}/xdg/fairgate/keys")
    assert value(printed(*words, "--keys", "mine"), "ExecStart").endswith(f" --keys {tmp_path}/mine")
    assert " --keys " not in value(printed(*words, "--insecure"), "ExecStart")
    assert " --keys " not in value(printed("--create", "--listen", "unix:/x"), "ExecStart")


def test_a_unit_has_no_relative_paths(printed: Unit, tmp_path: Path) -> None:
    words = (*TCP[:3], "--keys", "keys", "--state", "./state", "--journal", "run.ndjson")
    command = value(printed(*words), "ExecStart")
    for name in ("keys", "state", "run.ndjson"):
        assert f" {tmp_path}/{name}" in command
    assert f" {tmp_path}/gpu.gate " in value(printed("./gpu.gate", "-k", "2"), "ExecStart") + " "


def test_a_unit_keeps_what_the_environment_says(printed: Unit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = ("--create", "--listen", "127.0.0.1:7400")
    monkeypatch.setenv("FAIRGATE_SECRET", "secret")
    assert f" --secret {tmp_path}/secret" in value(printed(*local), "ExecStart")
    assert f" --secret {tmp_path}/other" in value(printed(*local, "--secret", "other"), "ExecStart")
    assert "secret" not in value(printed(*HOST), "ExecStart")
    assert "secret" not in value(printed("--create", "--listen", "unix:/x"), "ExecStart")  # it would be refused
    assert not [row for row in printed(*HOST) if row.startswith("Environment=")]
    monkeypatch.setenv("FAIRGATE_DIR", "my gates")
    assert value(printed(*HOST), "Environment") == f'"FAIRGATE_DIR={tmp_path}/my gates"'


def name_of(rows: list[str]) -> str:
    commands = "systemctl daemon-reload && systemctl enable --now (.*)"
    found = re.fullmatch(rf"# Save this as /etc/systemd/system/(.*)\.service, then: {commands}", rows[0])
    assert found is not None
    assert found[1] == found[2]
    return found[1]


def test_every_unit_has_a_readable_name(printed: Unit) -> None:
    assert name_of(printed(*HOST)) == f"fairgate-{ME}-gpu"
    assert name_of(printed("my-gpu")) == f"fairgate-{ME}-my-gpu"
    assert name_of(printed("--metrics", "9150")) == f"fairgate-{ME}-metrics"
    assert name_of(printed(*TCP)) == "fairgate-cluster-fairgate"
    assert name_of(printed(*TCP, "--cluster", "my-lab")) == "fairgate-cluster-my-lab"
    for words, readable in (
        (("gpu", "disk"), f"{ME}-gpu-disk"),
        (("/srv/x/a.gate",), f"{ME}-srv-x-a.gate"),
        (("gpu", "./a.gate"), f"{ME}-gpu-{os.getcwd()[1:].replace('/', '-')}-a.gate"),
        ((*TCP, "--cluster", "my lab"), "cluster-my-lab"),
    ):
        assert re.fullmatch(f"fairgate-{re.escape(readable)}-[0-9a-f]{{8}}", name_of(printed(*words)))


def test_every_unit_has_a_name_of_its_own(printed: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the readable parts of the names are equal. The same peer always has the same name."""
    peers: list[tuple[str, ...]] = [
        ("a", "b"), ("a-b",), ("a b",), ("b", "a"), ("a", "b-c"), ("a-b", "c"), ("/a/b",), ("metrics",),
        ("--metrics", "9150"), ("x" * 199 + "1",), ("x" * 199 + "2",), ("x" * 200, "a"), ("x" * 200, "b"),
        TCP, (*TCP, "--cluster", "my lab"), (*TCP, "--cluster", "my-lab"),
    ]  # fmt: skip
    names = []
    for folder in ("", "/srv/a", "/srv/b"):
        monkeypatch.setenv("FAIRGATE_DIR", folder)
        names += [name_of(printed(*words)) for words in peers]
        assert names[-len(peers) :] == [name_of(printed(*words)) for words in peers]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 255 - len(".service")


def test_only_a_unit_that_creates_a_cluster_speaks_of_that(printed: Unit) -> None:
    def speaks(*words: str) -> tuple[bool, bool]:
        rows = "\n".join(printed(*words))
        return "creates the cluster" in rows, "cluster" in rows

    assert speaks(*TCP) == (True, True)
    assert speaks("--join", "10.0.0.5:7400", "--insecure") == (False, True)
    assert speaks(*HOST) == (False, False)


def test_the_command_of_a_unit_is_the_one_that_was_given(printed: Unit) -> None:
    words = ("gpu", "disk", "-k", "3", "--group", "users", "--drain", "60", "--protocol", "one_line",
             *TCP, "--lease", "5", "--drift", "0.02", "--join-timeout", "20", "--metrics", "0")  # fmt: skip
    command = value(printed(*words), "ExecStart").split()
    start = command.index("peer")
    assert sorted([*words, "peer"]) == sorted(word for word in command[start:] if "/" not in word and word != "--state")
    assert command[start + 1 : start + 3] == ["gpu", "disk"]
    assert value(printed(*HOST), "ExecStart").endswith(" peer gpu -k 3 --metrics 9150")
    joined = value(printed("--join", "h:1", "--join", "h:2", "--insecure"), "ExecStart")
    assert " --join h:1 --join h:2 " in joined
    assert "--print-unit" not in joined


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("4",), "4 would be a file descriptor"),
        (("gpu", "--drain", "5"), "--group and --drain are for peers of a cluster"),
        (("gpu", "--protocol", "fair_k"), "--protocol is only for clusters"),
        ((), "nothing to do"),
        ((*TCP, "--group", "no-such-group"), "there is no group 'no-such-group'"),
    ],
)
def test_there_is_no_unit_of_a_command_that_is_refused(
    words: tuple[str, ...], wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for unit_or_not in ((), ("--print-unit",)):
        assert run(["peer", *words, *unit_or_not]) == 2
        out, err = capsys.readouterr()
        assert (out, err.startswith(f"fairgate: {wrong}")) == ("", True)


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("plain-1.5:%h", "plain-1.5:%%h"),
        ("two words", '"two words"'),
        ("$HOME", '"$$HOME"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("it's", '"it\'s"'),
        ("", '""'),
        (";", '";"'),
    ],
)
def test_words_are_quoted_as_systemd_reads_them(word: str, quoted: str) -> None:
    assert unit.quoted(word) == quoted


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
@pytest.mark.parametrize(
    "words", [HOST, ("a $HOME %h 'gate' \"x\"",), TCP, (*TCP, "--cluster", "my lab", "--drain", "1h")]
)
def test_systemd_accepts_it(printed: Unit, tmp_path: Path, words: tuple[str, ...]) -> None:
    rows = printed(*words)
    file = tmp_path / rows[0].partition("/system/")[2].partition(",")[0]
    file.write_text("\n".join(rows))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert [row for row in done.stderr.splitlines() if file.name in row] == []
    assert done.returncode == 0, done.stderr
