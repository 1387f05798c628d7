"""`fairgate run` in a command that already runs inside the same gate."""

from __future__ import annotations

import shlex
import signal
import time
from pathlib import Path

from tests.command.gates import holders, requests, revoke, until_waiting
from tests.live.commands import FAIRGATE, SOON, end, inside, line, run, start

RUN = shlex.join([*FAIRGATE, "run"])
PERMIT = 'echo "$FAIRGATE_GATE $FAIRGATE_SLOTS $FAIRGATE_FENCE ${FAIRGATE_DEADLINE-none}"'
NOTE = "fairgate: note: this command already runs inside gate report (slot 0), so it does not wait\n"


def in_shell(*words: str, script: str) -> tuple[int, str, str]:
    """Runs the script inside a gate."""
    done = run("run", *words, "--", "sh", "-c", script)
    return done.returncode, done.stdout, done.stderr


def test_a_nested_command_runs_in_the_slot_of_the_outer_one() -> None:
    code, out, err = in_shell("report", script=f"{PERMIT}; {RUN} report -- sh -c '{PERMIT}; exit 5'")
    outer, nested = out.splitlines()
    assert (code, err) == (5, NOTE)
    assert outer == nested
    assert requests("report") == []


def test_it_is_refused_with_no_nested() -> None:
    code, out, err = in_shell("report", script=f"{RUN} report --no-nested -- echo in")
    assert (code, out) == (2, "")
    assert err == "fairgate: this command already runs inside gate report (slot 0), and --no-nested was given\n"


def test_it_takes_no_second_slot() -> None:
    """Otherwise three such scripts could wait for each other forever."""
    words = ("gpu", "-k", "2")
    script = f"{RUN} gpu -k 2 -n -- {RUN} gpu -k 2 -n -- sh -c 'echo in; read x'"
    processes = [start("run", *words, "--", "sh", "-c", script) for _ in range(2)]
    assert [line(process) for process in processes] == ["in", "in"]
    assert [one.slots for one in holders("gpu")] == [(0,), (1,)]
    for process in processes:
        end(process)


def test_a_nested_command_cannot_ask_for_more_than_the_outer_one_has() -> None:
    script = f"{RUN} gpu -k 3 --permits 2 -- echo in && {RUN} gpu -k 3 --permits 3 -- echo in"
    code, out, err = in_shell("gpu", "-k", "3", "--permits", "2", script=script)
    assert (code, out) == (2, "in\n")
    note, refusal = err.splitlines()
    assert note == NOTE.strip().replace("report (slot 0)", "gpu (slot 0, 1)")
    assert refusal.endswith("already runs inside gate gpu (slot 0, 1), and cannot wait for 3 slots as well")


def test_other_gates_in_between_are_entered() -> None:
    """The environment describes the innermost gate again, and its lease is not passed on."""
    script = f"{RUN} data --lease 60 -- sh -c '{PERMIT}; {RUN} report -- sh -c \"$INNER\"'"
    done = run("run", "report", "--", "env", f"INNER={PERMIT}", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, NOTE)
    between, innermost = done.stdout.splitlines()
    assert between.startswith("data 0 ")
    assert not between.endswith(" none")
    assert innermost.startswith("report 0 ")
    assert innermost.endswith(" none")


def test_a_gate_is_recognised_by_its_file_not_by_its_name(folder: Path) -> None:
    code, out, err = in_shell("report", script=f"cd {folder}; {RUN} ./report.gate -- echo in")
    assert (code, out) == (0, "in\n")
    assert "already runs inside gate ./report.gate (slot 0)" in err


def test_after_the_outer_permit_was_lost_it_waits() -> None:
    script = f"echo in; read x; {RUN} report -- echo again"
    outer = start("run", "report", "--on-lost", "warn", "--", "sh", "-c", script)
    assert line(outer) == "in"
    revoke("report", 0)
    holder = inside("report")
    assert outer.stdin is not None
    outer.stdin.write(b"\n")
    until_waiting("report")
    end(holder)
    assert line(outer) == "again"
    _, err = outer.communicate(timeout=SOON)
    assert (outer.returncode, err.decode()) == (
        0,
        "fairgate: gate report: the permit for slot 0 was lost: it was revoked\n",
    )


def test_the_lease_of_a_nested_command_is_enforced() -> None:
    began = time.monotonic()
    code, _, err = in_shell("report", script=f"{RUN} report --lease 0.6 --grace 0.3 -- sleep 1000; exit $?")
    assert code == 128 + signal.SIGTERM
    assert time.monotonic() - began >= 0.3
    assert err.startswith(NOTE)
    assert "sent SIGTERM to the command" in err


def test_a_killed_nested_command_leaves_the_slot_to_the_outer_one() -> None:
    script = f"{RUN} report -- sh -c 'kill -KILL $PPID'; echo outer; read x"
    outer = start("run", "report", "--", "sh", "-c", script)
    assert line(outer) == "outer"
    assert len(holders("report")) == 1
    assert run("run", "report", "-n", "--", "true").returncode == 1
    end(outer)
    assert requests("report") == []
