"""How commands end: journals that do not match, Ctrl-C, closed pipes, and output that is not a terminal."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from fairgate.cli import main
from fairgate.cli.app import run
from fairgate.cli.demo import simulated
from fairgate.cli.sim import command as sim
from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result
from tests.mutants.mutate import mutant, speak

FAIRGATE = (sys.executable, "-c", "from fairgate.cli import main; main()")
SMALL = ("--nodes", "6", "--requests", "4")
SOON = 60  # seconds; a test that waits this long has failed


def start(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen([*FAIRGATE, *arguments], **options)


@pytest.fixture
def journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "run.ndjson"
    assert run(["sim", "fair_k", *SMALL, "--journal", str(path)]) == 0
    capsys.readouterr()
    return path


# sim.


def failing(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Replace naimi_trehel by a version with an error, until the end of the test."""
    module = mutant("protocols.naimi_trehel", old, new)
    speak(module, monkeypatch)
    monkeypatch.setitem(PROTOCOLS, "naimi_trehel", module.NaimiTrehel)


@pytest.mark.parametrize("trials", ["1", "2"])
def test_an_exception_in_a_protocol_is_one_line(
    trials: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, "self.next = m.r  # NT:PR2", "self.next = {}[m.r]")
    assert run(["sim", "naimi_trehel", *SMALL, "--trials", trials]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    place = r"\(node \d at \d+\.\d{6} s, \S+naimi_trehel\.py:\d+\)"
    assert re.fullmatch(rf"fairgate: KeyError: \d {place}: try `fairgate check naimi_trehel`.*\n", err)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    def release_cs", "    def release", r"NotImplementedError: .* \(node \d at \S+ s, .*\): try .*"),
        ("self.me in setup.holders", "setup.none", r"AttributeError: .* \(creating node 0, \S+naimi_trehel\.py:\d+\)"),
    ],
)
def test_a_missing_method_and_an_error_in_initialize_are_one_line(
    old: str, new: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, old, new)
    assert run(["sim", "naimi_trehel", *SMALL]) == 1
    assert re.fullmatch(rf"fairgate: {said}\n", capsys.readouterr().err)


def test_an_error_of_the_simulator_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*_: Any) -> Result:
        raise KeyError("not a protocol's")

    monkeypatch.setattr(sim, "simulate", defective)
    with pytest.raises(KeyError):
        run(["sim", "fair_k", *SMALL])


# replay.


def test_a_journal_is_replayed_and_drawn(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(journal)]) == 0
    out, err = capsys.readouterr()
    steps = len(journal.read_bytes().splitlines()) - 1
    assert err == ""
    assert out.startswith("fair_k: 6 nodes, k = 3, seed 1, from sim\n")
    assert "┃ inside" in out
    assert out.endswith(f"{steps} steps replayed: all came out the same\n")
    assert max(map(len, out.splitlines())) <= 100


def test_part_of_a_journal_is_drawn_but_all_of_it_compared(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(journal), "--nodes", "0,2-3", "--from", "10", "--to", "20", "--ascii"]) == 0
    _, _, heading, *rows, last = capsys.readouterr().out.splitlines()
    assert heading.split() == ["0", "2", "3"]
    assert rows
    assert all(10 <= int(row.split()[0]) <= 20 and row.isascii() for row in rows)
    assert last.startswith(f"{len(journal.read_bytes().splitlines()) - 1} steps")


def test_check_only_draws_nothing(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(journal), "--check-only"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "old", "new", "code", "said"),
    [
        (5, b'"n":', b'"n":x', 2, ":5: broken JSON"),
        (5, b'"e":"start"', b'"e":"stare"', 2, ":5: unknown event 'stare'"),
        (1, b"fairgate-journal", b"diary", 2, ":1: schema 'diary'"),
        (1, b'"fair_k"', b'"fairk"', 2, ":1: there is no protocol 'fairk': did you mean fair_k?"),
        (1, b'"k":3', b'"k":7', 2, ":1: broken header: its setup is invalid (k must be 1..6"),
        (9, b'"k":[1,', b'"k":[2,', 1, ":9: node "),
    ],
)
def test_a_corrupted_journal_is_reported_with_its_line(
    journal: Path, capsys: pytest.CaptureFixture[str], line: int, old: bytes, new: bytes, code: int, said: str
) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    journal.write_bytes(b"".join(lines))
    assert run(["replay", str(journal)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"fairgate: {journal}{said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--nodes 9", "there is no node 9: nodes are 0..5"),
        ("--nodes one", "cannot read --nodes one: write it as 1,2,5 or 0-4"),
        ("--from 9 --to 8", "--from and --to are line numbers of the journal"),
    ],
)
def test_replay_rejects_bad_options_in_one_line(
    journal: Path, capsys: pytest.CaptureFixture[str], options: str, said: str
) -> None:
    assert run(["replay", str(journal), *options.split()]) == 2
    assert capsys.readouterr().err.startswith(f"fairgate: {said}")


def test_replay_of_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "nowhere.ndjson"]) == 2
    assert capsys.readouterr().err == "fairgate: cannot read the journal nowhere.ndjson: No such file or directory\n"


# Ctrl-C.


def opened(pipe: Path) -> BinaryIO:
    """Open the pipe for reading as soon as something is written to it.

    A blocking open would wait forever if the writer has failed.
    """
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    waiting = select.poll()
    waiting.register(reader, select.POLLIN)
    assert waiting.poll(1000 * SOON), "nothing was written"
    os.set_blocking(reader, True)
    return os.fdopen(reader, "rb")


@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_prints_what_was_measured_so_far(tmp_path: Path, as_json: bool) -> None:
    """The journal is a named pipe: its first lines show that the run has started."""
    pipe = tmp_path / "journal"
    os.mkfifo(pipe)
    endless = ("--nodes", "10", "--cs", "0.001", "--requests", "10000000", "--journal", str(pipe))
    process = start("sim", "fair_k", *endless, *(["--json"] if as_json else []))
    with opened(pipe) as reader:
        for _ in range(1000):
            assert reader.readline().endswith(b"\n")
        process.send_signal(signal.SIGINT)
        while reader.read(1 << 16):
            pass
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (130, b"")
    if as_json:
        found = json.loads(out)
        assert found["interrupted"] is True
        assert 0 < found["entries"] < 10 * 10_000_000
    else:
        assert b"(interrupted)" in out
        assert b"no violation until it was interrupted" in out


@pytest.mark.parametrize("done", [0, 2])
def test_ctrl_c_prints_the_finished_trials(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], done: int
) -> None:
    def stopped(config: Config, *_: object) -> list[Result]:
        return [simulate(replace(config, seed=seed)) for seed in range(done)]

    monkeypatch.setattr(sim, "run_trials", stopped)
    assert run(["sim", "fair_k", *SMALL, "--trials", "5", "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert (found["interrupted"], len(found["trials"]), found["violations"]) == (True, done, 0)
    assert {*sim.ALWAYS, "protocol", "nodes", "k", "seed", "seconds"} <= set(found)
    assert run(["sim", "fair_k", *SMALL, "--trials", "5"]) == 130


def test_ctrl_c_ends_the_simulated_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(simulated, "LAN", replace(simulated.LAN, requests=5))
    monkeypatch.setattr(simulated, "simulate", lambda *asked: replace(simulate(*asked), interrupted=True))
    assert run(["demo", "--simulated"]) == 130
    assert "Try next" not in capsys.readouterr().out


def test_ctrl_c_before_the_first_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr(sim, "simulate", interrupted)
    assert run(["sim", "fair_k"]) == 130


def test_ctrl_c_while_a_command_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "fairgate.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "fairgate.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["fairgate", "who"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


# Pipes and terminals.


def test_a_closed_pipe_ends_a_command_silently(tmp_path: Path) -> None:
    journal = str(tmp_path / "long.ndjson")
    made = start("sim", "fair_k", "--nodes", "20", "--requests", "40", "--journal", journal)
    assert made.communicate(timeout=SOON)[1] == b""
    process = start("replay", journal)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()  # most of the drawing is still to come: it is larger than the pipe's buffer
    assert process.stderr.read() == b""
    assert process.wait(timeout=SOON) == 141
    process.stderr.close()


@pytest.mark.parametrize("words", [["--help"], ["who", "--help"], ["who"], ["run", "--help"], ["keys"]])
def test_a_pipe_that_nobody_reads(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*words, stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=SOON)[1] == b""
    assert process.returncode == 141


@pytest.mark.parametrize("trials", ["1", "2"])
def test_no_progress_bar_if_stderr_is_a_pipe(trials: str) -> None:
    process = start("sim", "fair_k", "--trials", trials, env={**os.environ, "FORCE_COLOR": "1"})
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (0, b"")
    assert b"no violation" in out


def test_progress_bar_on_a_terminal() -> None:
    keyboard, screen = os.openpty()
    process = start("sim", "fair_k", *SMALL, "--json", stderr=screen, env={**os.environ, "TERM": "xterm"})
    out, _ = process.communicate(timeout=SOON)
    os.close(screen)
    shown = os.read(keyboard, 1 << 16)
    os.close(keyboard)
    assert b"fair_k, entries" in shown
    assert json.loads(out)["entries"] == 24
