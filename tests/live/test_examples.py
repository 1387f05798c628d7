"""The examples, run as real processes: they print what they should, and would notice a failure."""

from __future__ import annotations

import http.client
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from examples import downloads

EXAMPLES = Path(__file__).parents[2] / "examples"
SOON = 60  # seconds: an example that takes this long has failed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    return tmp_path


def run(name: str, *words: str) -> str:
    """The output of an example."""
    command = [sys.executable, str(EXAMPLES / name), *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        said, complaints = process.communicate(timeout=SOON)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # and everything that it started
        raise
    assert process.returncode == 0, complaints
    return said


@pytest.mark.parametrize(
    ("page", "kinds"), [("README.md", "py sh ipynb"), ("docs/recipes.md", "py sh"), ("docs/lab.md", "ipynb")]
)
def test_every_example_is_documented(page: str, kinds: str) -> None:
    text = (EXAMPLES.parent / page).read_text(encoding="utf-8")
    examples = [one.name for kind in kinds.split() for one in EXAMPLES.glob(f"*.{kind}") if one.name != "__init__.py"]
    assert [name for name in examples if f"examples/{name}" not in text] == []


def test_no_more_than_k_download_at_once() -> None:
    *clients, server = run("downloads.py").splitlines()
    assert len(clients) == downloads.CLIENTS
    found = re.fullmatch(r"the server sent (\d+) files, at most (\d+) at once; k is 3", server)
    assert found is not None
    assert int(found[1]) == downloads.CLIENTS * downloads.DOWNLOADS
    assert 1 <= int(found[2]) <= downloads.K


def test_the_server_rejects_a_client_without_a_permit() -> None:
    """Otherwise the example would prove nothing. A client that does not read keeps its download open."""
    with downloads.Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        patient = [ask(server.server_address[1]) for _ in range(downloads.K)]
        late = ask(server.server_address[1])
        assert [answer.status for answer in (*patient, late)] == [200, 200, 200, 503]
        for answer in (*patient, late):
            answer.close()
        server.shutdown()


def ask(port: int) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON)
    connection.sock = socket.socket()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sock.connect(("127.0.0.1", port))
    connection.request("GET", "/file")
    return connection.getresponse()


def test_every_job_has_a_card_to_itself() -> None:
    lines = run("gpus.py").splitlines()
    assert sorted([line.split()[1] for line in lines]) == list("01234")
    assert {line.split()[-1] for line in lines} <= {"0", "1"}


def test_a_job_detects_that_its_card_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "card0").touch()
    (tmp_path / "card1").touch()
    with pytest.raises(AssertionError, match="FileExistsError"):
        run("gpus.py", str(tmp_path), "7")


def test_a_stale_holder_cannot_write() -> None:
    assert run("fenced.py").splitlines() == [
        "slow is inside",
        "quick has written",
        "slow was rejected: its permit was lost",
        "the report says: quick was here",
    ]


@pytest.mark.skipif(find_spec("fairgate.cli.run.command") is None, reason="there is no `fairgate run` here")
def test_the_nightly_job_runs_once_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the environment of cron, whose PATH does not include the directory of the command."""
    command = tmp_path / ".local" / "bin" / "fairgate"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairgate "$@"\n')
    command.chmod(0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    script = str(EXAMPLES / "cron.sh")
    pipe = subprocess.PIPE
    with subprocess.Popen([script, "sh", "-c", "echo begun; read line"], stdin=pipe, stdout=pipe, text=True) as first:
        assert first.stdout is not None
        assert select.select([first.stdout], [], [], SOON)[0]
        assert first.stdout.readline() == "begun\n"
        second = subprocess.run([script, "echo", "twice"], capture_output=True, text=True, timeout=SOON, check=False)
        assert (second.returncode, second.stdout) == (0, "")
        first.communicate("\n", timeout=SOON)
    assert subprocess.run([script, "echo", "again"], capture_output=True, timeout=SOON, check=True).stdout == b"again\n"
