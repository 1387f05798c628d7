"""Metrics and journals of `fairgate run` and `fairgate peer` in a cluster."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.live.commands import SOON, Say, end, end_by, inside, line, standing, start, until_waiting
from tests.live.test_hosts import free_port
from tests.support.scrape import scrape

HERE = "127.0.0.1"
URL = re.compile(r"metrics are at http://127\.0\.0\.1:(\d+)/metrics\n?")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))


def told_port(text: str) -> int:
    found = URL.fullmatch(text)
    assert found is not None
    return int(found[1])


def test_metrics_of_a_standing_peer() -> None:
    peer = start("peer", "gpu", "-k", "3", "--create", "--listen", f"{HERE}:0", "--metrics", "0")
    port = told_port(line(peer))
    seed = line(peer).split(" at ")[1].split()[0]
    holder = inside("gpu", "-k", "3", "--join", seed)
    found = scrape(port)
    assert (found["k", "gpu"], found["peers", ""]) == (3, 2)
    assert found["inside", "gpu"] == 0  # its own values: it holds no permit
    end(holder)
    assert end_by(signal.SIGINT, peer) == (130, "SIGINT: leaving\n", "")


def test_metrics_of_a_command_in_a_cluster() -> None:
    """The port is printed to stderr, because stdout belongs to the command, and only if the system chose it."""
    keeper, seed = standing("--create", "--listen", f"{HERE}:0")
    port = free_port()
    holder = inside("report", "--join", seed, "--metrics", str(port))
    waiter = start("run", "report", "--join", seed, "--metrics", "0", "--", "echo", "in")
    assert waiter.stderr is not None
    other = told_port(waiter.stderr.readline().decode().removeprefix("fairgate: "))
    until_waiting("report", 1, seed)
    assert (scrape(port)["inside", "report"], scrape(port)["entries_total", "report"]) == (1, 1)
    assert (scrape(other)["inside", "report"], scrape(other)["waiting", "report"]) == (0, 1)
    holder.communicate(timeout=SOON)
    assert waiter.communicate(timeout=SOON) == (b"in\n", b"")
    end_by(signal.SIGTERM, keeper)


def test_journals_of_a_cluster_are_replayed(tmp_path: Path, say: Say) -> None:
    keeper, seed = standing("report", "--create", "--listen", f"{HERE}:0", "--journal", str(tmp_path / "peer-{gate}"))
    holder = inside("report", "--join", seed, "--journal", str(tmp_path / "one"))
    waiter = start("run", "report", "--join", seed, "--journal", str(tmp_path / "two"), "--", "echo", "in")
    until_waiting("report", 1, seed)
    end(holder)
    assert waiter.communicate(timeout=SOON) == (b"in\n", b"")
    end_by(signal.SIGTERM, keeper)
    for name, entries in (("one", 1), ("two", 1), ("peer-report", 0)):
        code, out, err = say("replay", str(tmp_path / name), "--ascii")
        assert (code, err) == (0, "")
        assert out.startswith("bv95 over regenerate: one peer's nodes, k = 1, from net\n")
        assert out.endswith("replayed: all came out the same\n")
        assert (tmp_path / name).read_text().count('["granted",') == entries


def test_the_journal_of_an_interrupted_command_is_complete(tmp_path: Path, say: Say) -> None:
    keeper, seed = standing("--create", "--listen", f"{HERE}:0")
    journal = ("--journal", str(tmp_path / "j"))
    process = start("run", "report", "--join", seed, *journal, "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(process) == "in"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGINT
    code, out, err = say("replay", str(tmp_path / "j"), "--check-only")
    assert (code, err) == (0, "")
    assert out.endswith("replayed: all came out the same\n")
    end_by(signal.SIGTERM, keeper)
