"""`fairgate run`: leases, revoked permits, and processes that outlive fairgate or their command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command.gates import holders, requests, revoke, until_waiting
from tests.live.commands import SOON, Watched, end, inside, line, run, start, until

# A command that leaves a process behind. It prints the pid of that process and its own.
LEAVES = "sleep 1000 > /dev/null 2>&1 & echo $! $$; "


@pytest.fixture
def left() -> Iterator[list[Watched]]:
    """Processes to kill at the end of the test."""
    found: list[Watched] = []
    yield found
    for one in found:
        if not one.has_ended(0):
            os.kill(one.pid, signal.SIGKILL)
        one.close()


def leaving(left: list[Watched], *words: str, then: str) -> tuple[subprocess.Popen[bytes], Watched, Watched]:
    """The fairgate process, the background process of its command, and the command."""
    process = start("run", *words, "--", "sh", "-c", LEAVES + then)
    behind, command = [Watched(int(pid)) for pid in line(process).split()]
    left += [behind, command]
    return process, behind, command


# Killed with -9.


def test_processes_that_outlive_a_killed_fairgate_keep_the_slot(left: list[Watched]) -> None:
    process, behind, command = leaving(left, "report", then="wait")
    fence = holders("report")[0].fence
    process.kill()
    process.communicate()
    assert command.has_ended()
    assert run("run", "report", "-n", "--", "echo", "in").returncode == 1
    waiter = start("run", "report", "--", "echo", "in")
    until_waiting("report")
    [held] = holders("report")
    assert (held.slots, held.group, held.fence) == ((0,), command.pid, fence)
    assert held.note.startswith("sh -c 'sleep 1000")
    assert not behind.has_ended(0)
    os.kill(behind.pid, signal.SIGKILL)
    assert line(waiter) == "in"
    assert end(waiter) == 0


CLOSES = "import os, time; os.closerange(3, 1000); time.sleep(1000)"


def test_a_process_that_closes_its_files_keeps_the_slot_through_its_group(left: list[Watched]) -> None:
    """As many daemons do: they close the inherited descriptor too."""
    words = (sys.executable, "-c", f"'{CLOSES}'", "> /dev/null 2>&1 & echo $!; wait")
    process = start("run", "report", "--", "sh", "-c", " ".join(words))
    left.append(behind := Watched(int(line(process))))
    until(lambda: len(os.listdir(f"/proc/{behind.pid}/fd")) == 3 and "closerange" in cmdline(behind.pid))
    process.kill()
    process.communicate()
    assert run("run", "report", "-n", "--", "echo", "in").returncode == 1
    os.kill(behind.pid, signal.SIGKILL)
    assert run("run", "report", "--", "echo", "in").stdout == "in\n"


def cmdline(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_the_slot_of_a_killed_fairgate_is_free_when_its_lease_expires(left: list[Watched]) -> None:
    script = 'echo "$FAIRGATE_DEADLINE"; wait'
    process, behind, _ = leaving(left, "report", "--lease", "3", then=script)
    deadline = int(line(process))
    process.kill()
    process.communicate()
    waiter = start("run", "report", "--", "echo", "in")
    assert line(waiter) == "in"
    assert time.time() >= deadline
    assert not behind.has_ended(0)
    assert end(waiter) == 0


def test_a_killed_waiter_leaves_no_trace(folder: Path) -> None:
    holder = inside("report")
    first, second = start("run", "report", "--", "echo", "first"), start("run", "report", "--", "echo", "second")
    until_waiting("report", 2)
    first.kill()
    first.communicate()
    end(holder)
    assert line(second) == "second"
    assert end(second) == 0


# Background processes.


def test_background_processes_keep_the_slot(left: list[Watched]) -> None:
    process, behind, _ = leaving(left, "report", then="read x; exit 3")
    assert end(process) == 3
    assert run("run", "report", "-n", "--", "echo", "in").returncode == 1
    os.kill(behind.pid, signal.SIGKILL)
    assert run("run", "report", "--", "echo", "in").stdout == "in\n"


def test_background_processes_do_not_keep_the_slot_with_dash_o(left: list[Watched]) -> None:
    process, behind, _ = leaving(left, "report", "-o", then="read x; exit 3")
    assert end(process) == 3
    assert run("run", "report", "-n", "--", "echo", "in").stdout == "in\n"
    assert not behind.has_ended(0)


def test_a_lease_ends_background_processes(left: list[Watched]) -> None:
    process, behind, _ = leaving(left, "report", "--lease", "1", then="read x; exit 3")
    assert end(process) == 3
    assert behind.has_ended()
    assert run("run", "report", "-n", "--", "echo", "in").stdout == "in\n"


def test_a_killed_fairgate_with_dash_o_leaves_nothing_inside(left: list[Watched]) -> None:
    process, behind, command = leaving(left, "report", "-o", then="wait")
    process.kill()
    process.communicate()
    assert command.has_ended()
    assert run("run", "report", "-n", "--", "echo", "in").stdout == "in\n"
    assert not behind.has_ended(0)


def test_a_daemon_that_keeps_the_bell_keeps_the_slot(left: list[Watched]) -> None:
    """It leaves the process group, but inherits the bell."""
    process = start("run", "report", "--", "sh", "-c", "setsid -f sh -c 'echo $$; exec sleep 1000 2> /dev/null' 2>&1")
    left.append(daemon := Watched(int(line(process))))
    assert process.wait(timeout=SOON) == 0
    [held] = holders("report")
    assert (held.pid, held.note[:9]) == (process.pid, "sh -c 'se")
    assert run("run", "report", "-n", "--", "echo", "in").returncode == 1
    os.kill(daemon.pid, signal.SIGKILL)
    process.communicate()
    assert run("run", "report", "--", "echo", "in").stdout == "in\n"


# Revoked permits.


@pytest.mark.parametrize(("words", "code"), [((), 128 + signal.SIGTERM), (("--on-lost", "kill"), 128 + signal.SIGKILL)])
def test_a_revoked_permit_ends_the_command(words: tuple[str, ...], code: int) -> None:
    holder = start("run", "report", *words, "--", "sh", "-c", "echo in; exec sleep 1000")
    assert line(holder) == "in"
    waiter = start("run", "report", "--", "echo", "in")
    until_waiting("report")
    revoke("report", 0)
    assert line(waiter) == "in"
    _, err = holder.communicate(timeout=SOON)
    assert (holder.returncode, err) == (
        code,
        b"fairgate: gate report: the permit for slot 0 was lost: it was revoked\n",
    )
    assert end(waiter) == 0
    assert requests("report") == []


def test_a_revoked_permit_ends_the_command_after_its_grace() -> None:
    script = "trap 'echo term' TERM; echo in; while :; do sleep 0.01; done"
    holder = start("run", "report", "--grace", "0.2", "--", "sh", "-c", script)
    assert line(holder) == "in"
    revoke("report", 0)
    assert line(holder) == "term"
    assert holder.wait(timeout=SOON) == 128 + signal.SIGKILL
    holder.communicate()


def test_a_revoked_slot_of_a_killed_fairgate_is_free(left: list[Watched]) -> None:
    process, behind, _ = leaving(left, "report", then="wait")
    process.kill()
    process.communicate()
    revoke("report", 0)
    assert run("run", "report", "-n", "--", "echo", "in").stdout == "in\n"
    assert not behind.has_ended(0)


# Stopped with SIGSTOP, as by a debugger.


def test_a_stopped_fairgate_keeps_its_slot_and_nothing_else() -> None:
    holder = inside("gpu", "-k", "2")
    holder.send_signal(signal.SIGSTOP)
    assert run("run", "gpu", "-k", "2", "--", "echo", "in").stdout == "in\n"
    other = inside("gpu", "-k", "2")
    assert run("run", "gpu", "-k", "2", "-n", "--", "true").returncode == 1
    holder.send_signal(signal.SIGCONT)
    assert (end(holder), end(other)) == (1, 1)


# Leases.


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exec sleep 1000", 128 + signal.SIGTERM),
        ("trap 'exit 5' TERM; while :; do sleep 0.01; done", 5),
        ("trap '' TERM; while :; do sleep 0.01; done", 128 + signal.SIGKILL),
    ],
)
def test_a_lease_ends_the_command(script: str, code: int) -> None:
    started = time.monotonic()
    done = run("run", "report", "--lease", "1", "--grace", "0.5", "--", "sh", "-c", script)
    assert done.returncode == code
    assert time.monotonic() - started >= 0.5
    told = re.findall(r"^fairgate: the lease ends in [\d.]+ s: sent (\w+) to the command$", done.stderr, re.MULTILINE)
    assert told == ["SIGTERM", "SIGKILL"][: 2 if code == 128 + signal.SIGKILL else 1]


def test_no_process_of_the_group_is_left_when_the_lease_expires(left: list[Watched]) -> None:
    process, behind, _ = leaving(left, "report", "--lease", "1", then="trap '' TERM; wait; wait; sleep 1000")
    waiter = start("run", "report", "--", "echo", "in")
    assert line(waiter) == "in"
    assert behind.has_ended(0)
    assert process.wait(timeout=SOON) == 128 + signal.SIGKILL
    assert end(waiter) == 0
    process.communicate()


def test_with_on_lost_warn_the_command_outlives_its_lease() -> None:
    words = ("--lease", "0.3", "--on-lost", "warn", "--", "sh", "-c", "echo in; read x; exit 4")
    holder = start("run", "report", *words)
    assert line(holder) == "in"
    assert run("run", "report", "--", "echo", "in").stdout == "in\n"
    _, err = holder.communicate(b"\n", timeout=SOON)
    assert (holder.returncode, err.decode()) == (
        4,
        "fairgate: gate report: the permit for slot 0 was lost: its lease has expired\n",
    )
    assert requests("report") == []
