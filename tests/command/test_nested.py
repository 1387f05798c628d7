"""`fairgate run` in a command that already runs inside the same gate."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from fairgate.cli.run import nested
from fairgate.room import system
from fairgate.room.room import Room
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


# Who is part of a command. FAIRGATE_HELD can be inherited by processes that are not.

FAMILY = shlex.join([sys.executable, str(Path(__file__).with_name("family.py"))])
FULL, INSIDE = 1, 0


def relative(*steps: str, outer: tuple[str, ...] = ()) -> int:
    """The exit code of `fairgate run report -n` of a relative of the outer command, which is inside all the time."""
    words = [shlex.join(steps), "--", RUN, "report", "-n", "--", "true"]
    return in_shell("report", *outer, script=f"{FAMILY} {' '.join(words)}; exit $?")[0]


def is_root() -> bool:
    return os.geteuid() == 0


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ((), INSIDE),
        (("close",), INSIDE),
        (("session",), INSIDE),
        (("orphan",), INSIDE),
        (("close", "session"), INSIDE),  # as with subprocess.run(..., start_new_session=True)
        (("close", "orphan"), INSIDE),  # its process group keeps the slot
        (("session", "orphan"), INSIDE),  # the descriptor that it has inherited keeps the slot
        (("close", "session", "orphan"), FULL),  # a daemon, which can outlive the command
        (("close", "session", "aged"), FULL),  # the pid of the holder is that of another process now
    ],
)  # fmt: skip
def test_only_what_keeps_the_slot_or_descends_from_its_holder_is_nested(steps: tuple[str, ...], code: int) -> None:
    assert relative(*steps) == code


@pytest.mark.parametrize(("steps", "code"), [((), INSIDE), (("session",), INSIDE), (("session", "orphan"), FULL)])
def test_with_close_only_descendants_of_the_holder_are_nested(steps: tuple[str, ...], code: int) -> None:
    assert relative(*steps, outer=("-o",)) == code


@pytest.mark.skipif(not is_root(), reason="only root can create pid namespaces here")
@pytest.mark.parametrize(("steps", "code"), [(("pids",), INSIDE), (("pids", "close"), FULL)])
def test_in_another_pid_namespace_only_the_descriptor_counts(steps: tuple[str, ...], code: int) -> None:
    assert relative(*steps) == code


def test_an_environment_that_was_passed_on_does_not_make_a_process_part_of_a_command() -> None:
    """Services and cron jobs get it from those that start or configure them."""
    outer = start("run", "report", "--", "sh", "-c", 'echo "$FAIRGATE_HELD"; read x')
    held = line(outer)
    done = run("run", "report", "-n", "--", "true", env=os.environ | {"FAIRGATE_HELD": held})
    assert (done.returncode, done.stderr) == (FULL, "")
    for strange in (held.rpartition(":")[0], f"{held}x", f"{held}:0", "x", ":::"):
        done = run("run", "report", "-n", "--", "true", env=os.environ | {"FAIRGATE_HELD": strange})
        assert (done.returncode, done.stderr) == (FULL, "")
    end(outer)


def test_ids_of_another_pid_namespace_do_not_count(tmp_path: Path) -> None:
    """The holder there may have the id of our parent, or of our process group, here."""
    start = str(system.started(os.getppid()))
    with Room(str(tmp_path), "report", k=1) as room:
        assert room.acquire(0)
        [request] = room.requests()
        of_parent = request._replace(pid=os.getppid(), owner=1)
        of_group = request._replace(group=os.getpgrp(), pid=0, owner=1)
        assert nested.is_part_of(room, of_parent, start)
        assert nested.is_part_of(room, of_group, "0")
        assert not nested.is_part_of(room, of_parent._replace(namespace=1), start)
        assert not nested.is_part_of(room, of_group._replace(namespace=1), "0")


def test_the_chain_of_parents_ends_where_an_id_was_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has the id of a dead parent was started after its child."""
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    processes = {os.getpid(): (-5, 900), -5: (-4, 800), -4: (-3, 800), -3: (-2, 801), -2: (1, 10), 1: (0, 0)}

    def stat(pid: int) -> list[bytes]:
        parent, began = processes[pid]
        return [b"S", b"%d" % parent, *[b"0"] * 17, b"%d" % began]

    monkeypatch.setattr(system, "stat", stat)
    assert list(system.ancestors()) == [(-5, 800 * tick), (-4, 800 * tick)]
    processes[-3] = (-2, 799)
    assert [pid for pid, _ in system.ancestors()] == [-5, -4, -3, -2, 1]
