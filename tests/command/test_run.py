"""`fairgate run`: mutual exclusion, exit codes, and what the command sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command.gates import requests, until_waiting
from tests.live.commands import SOON, end, inside, line, run, start

FORWARDED = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")


# Entering.


def test_commands_exclude_each_other_with_no_set_up(tmp_path: Path) -> None:
    script = f"echo + >> {tmp_path}/log; sleep 0.01; echo - >> {tmp_path}/log"
    processes = [start("run", "report", "--", "sh", "-c", script) for _ in range(5)]
    assert [process.wait(timeout=SOON) for process in processes] == [0] * 5
    assert (tmp_path / "log").read_text() == "+\n-\n" * 5
    for process in processes:
        process.communicate()


def test_k_commands_run_at_once_each_in_its_own_slot() -> None:
    first, second = [start("run", "gpu", "-k2", "--", "sh", "-c", "echo $FAIRGATE_SLOT; read x") for _ in range(2)]
    assert sorted([line(first), line(second)]) == ["0", "1"]
    assert run("run", "gpu", "-k2", "-n", "--", "echo", "in").returncode == 1
    third = start("run", "gpu", "-k2", "--", "echo", "in")
    until_waiting("gpu")
    assert end(first) == 1  # from `read` at end of file
    assert line(third) == "in"
    assert (end(third), end(second)) == (0, 1)


def test_the_exit_code_says_that_no_permit_was_granted() -> None:
    holder = inside("report")
    for words, code in ((("-n",), 1), (("-n", "-E", "9"), 9), (("-w", "0"), 1), (("-w", "0.05", "-E", "0"), 0)):
        done = run("run", "report", *words, "--", "echo", "in")
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    end(holder)
    done = run("run", "report", "-n", "--", "echo", "in")
    assert (done.returncode, done.stdout) == (0, "in\n")


def test_another_k_is_bad_input() -> None:
    holder = inside("gpu", "-k", "3")
    done = run("run", "gpu", "-k", "2", "--", "true")
    assert (done.returncode, done.stderr) == (
        2,
        "fairgate: gate gpu is open with k=3, not k=2: everyone must give the same k\n",
    )
    end(holder)


def test_a_terminated_waiter_leaves_the_queue(folder: Path) -> None:
    holder = inside("report")
    for signum in (signal.SIGTERM, signal.SIGINT):
        waiter = start("run", "report", "--", "echo", "in")
        until_waiting("report")
        waiter.send_signal(signum)
        out, err = waiter.communicate(timeout=SOON)
        assert (waiter.returncode, out, err) == (128 + signum, b"", b"")
    assert [one.pid for one in requests("report")] == [holder.pid]
    end(holder)
    assert requests("report") == []
    assert list(folder.glob("*.bell")) == []


# Exit codes.


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["sh", "-c", "exit 7"], 7, ""),
        (["sh", "-c", "kill -USR1 $$"], 128 + signal.SIGUSR1, ""),
        (["no-such-command"], 127, "fairgate: cannot run no-such-command: command not found\n"),
        (["/dev/null"], 126, "fairgate: cannot run /dev/null: it is not executable\n"),
        (["/dev"], 126, "fairgate: cannot run /dev: it is a directory\n"),
        (
            [],
            2,
            "fairgate: no command given: write it after --, as in fairgate run GATE -- COMMAND"
            " (see fairgate run --help)\n",
        ),
    ],
)
def test_exit_code(words: list[str], code: int, complaint: str) -> None:
    done = run("run", "report", "--", *words)
    assert (done.returncode, done.stderr) == (code, complaint)


@pytest.mark.parametrize(
    "words", [["-k", "0"], ["-k", "x"], ["-w", "-1"], ["-E", "256"], ["-n", "-w", "1"], ["--lease", "0"],
              ["--lease", "5e-10"], ["--lease", "1", "--grace", "2"], ["--on-lost", "no"], ["--permits", "2"],
              ["-k", "2", "--permits", "0"], ["--nope"], ["-x"], ["--close=1"], ["--wait"], ["--lease", "1e10"],
              ["--lease", "nan"], ["-k", "1001"], ["--protocol", "fair_k"], ["--journal", "j"], ["--metrics", "0"],
              ["--metrics", "x"], ["--listen", "127.0.0.1:0"]],
)  # fmt: skip
def test_bad_input_is_reported_in_one_line(words: list[str]) -> None:
    done = run("run", "report", *words, "--", "echo", "in")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fairgate: ")
    assert done.stderr.count("\n") == 1


def test_a_command_without_dashes_is_explained() -> None:
    done = run("run", "report", "echo", "in")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fairgate: unrecognized arguments: echo in: write the command after --, as in")


# What the command sees.


def test_open_files_are_passed_on_untouched(tmp_path: Path) -> None:
    with (tmp_path / "three").open("w") as three:
        words = f"cat; echo bad >&2; echo more > /dev/fd/{three.fileno()}; exit 3"
        process = start("run", "report", "--", "sh", "-c", words, pass_fds=[three.fileno()])
        data = os.urandom(200_000)
        assert process.communicate(data, timeout=SOON) == (data, b"bad\n")
    assert process.returncode == 3
    assert (tmp_path / "three").read_text() == "more\n"


def test_the_environment_describes_the_permit() -> None:
    script = 'echo "$FAIRGATE_GATE $FAIRGATE_SLOT ${FAIRGATE_DEADLINE-none} $FAIRGATE_FENCE"'
    *first, fence = run("run", "my gate", "--", "sh", "-c", script).stdout.split()
    *second, higher = run("run", "my gate", "--lease", "60", "--", "sh", "-c", f"date +%s; {script}").stdout.split()
    assert first == ["my", "gate", "0", "none"]
    assert 58 <= int(second[4]) - int(second[0]) <= 60
    assert int(higher) > int(fence) > 0


def test_several_slots_at_once() -> None:
    """A request for more slots than are free is not overtaken by those for fewer."""
    words = ("gpu", "-k", "3")
    script = "echo $FAIRGATE_SLOT $FAIRGATE_SLOTS; read x"
    first = start("run", *words, "--permits", "2", "--", "sh", "-c", script)
    assert line(first) == "0 0,1"
    assert run("run", *words, "--permits", "2", "-n", "--", "true").returncode == 1
    large = start("run", *words, "--permits", "2", "--", "sh", "-c", script)
    until_waiting("gpu")
    assert run("run", *words, "-n", "--", "true").returncode == 1
    end(first)
    assert line(large) == "0 0,1"
    assert run("run", *words, "-n", "--", "sh", "-c", script).stdout == "2 2\n"
    end(large)


def test_signals_are_passed_on() -> None:
    script = f"""
import signal
wanted = [getattr(signal, "SIG" + name) for name in {FORWARDED}]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("ready", flush=True)
for _ in wanted:
    print(signal.sigwait(wanted).name, flush=True)
"""
    process = start("run", "report", "--", sys.executable, "-c", script)
    assert line(process) == "ready"
    for name in FORWARDED:
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert line(process) == f"SIG{name}"
    assert end(process) == 0


def test_ignored_signals_stay_ignored() -> None:
    """As with nohup."""
    words = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-m", "fairgate", "run", "report", "--"]
    process = subprocess.Popen(
        [*words, "sh", "-c", "echo in; read x; kill -HUP $$; echo still; exit 0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert line(process) == "in"
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=SOON)[0] == b"still\n"
    assert process.returncode == 0


def test_the_note_of_a_waiter_is_its_command() -> None:
    holder = inside("report")
    waiter = start("run", "report", "--", "echo", "a b")
    [found] = until_waiting("report")
    assert (found.pid, found.note) == (waiter.pid, "echo 'a b'")
    end(holder)
    assert end(waiter) == 0
