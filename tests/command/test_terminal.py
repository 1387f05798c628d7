"""`fairgate run` in a real terminal, with a shell that has job control."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.command.gates import holders, requests, until_inside, until_waiting, waiters
from tests.live.commands import SOON, Watched, end, end_by, inside, line, run, standing, start, until

CTRL_C, CTRL_Z = b"\x03", b"\x1a"
FAIRGATE = f"{sys.executable} -m fairgate"


class Shell:
    """bash in its own terminal. Marks are quoted when typed, so that their echo is not mistaken for output."""

    def __init__(self) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.seen = b""
        self.open = True
        self.type("PS1=; stty -echo; echo re''ady\n")
        self.until("ready")

    def type(self, text: str | bytes) -> None:
        os.write(self.file, text.encode() if isinstance(text, str) else text)

    def until(self, mark: str) -> str:
        """The output up to this text; what follows is kept for the next call."""
        deadline = time.monotonic() + SOON
        while mark.encode() not in self.seen:
            ready, _, _ = select.select([self.file], [], [], deadline - time.monotonic())
            assert ready, f"no {mark!r} in {self.seen!r}"
            self.seen += os.read(self.file, 4096)
        before, self.seen = self.seen.split(mark.encode(), 1)
        return before.decode()

    def number(self, mark: str) -> int:
        """The number that follows this mark on its line."""
        self.until(mark)
        return int(self.until("\n"))

    def close(self) -> None:
        """Closes the terminal, as when its window is closed."""
        if self.open:
            self.open = False
            os.close(self.file)


@pytest.fixture
def shell() -> Iterator[Shell]:
    shell = Shell()
    watched = Watched(shell.pid)
    yield shell
    shell.close()
    assert watched.has_ended()  # and its jobs got SIGHUP
    watched.close()
    os.waitpid(shell.pid, 0)


def test_the_command_has_the_terminal_and_ctrl_c(shell: Shell) -> None:
    shell.type(f"{FAIRGATE} run report -- sh -c 'echo pid=$$; read line; echo got $line; cat'; echo code=$?\n")
    pid = shell.number("pid=")
    assert os.tcgetpgrp(shell.file) == pid
    shell.type("something\n")
    shell.until("got something")
    shell.type("more\n")
    shell.until("more")  # now cat has the terminal
    shell.type(CTRL_C)
    assert shell.number("code=") == 128 + signal.SIGINT
    shell.type("echo ag''ain\n")  # the shell has its terminal back
    shell.until("again")
    assert requests("report") == []


def test_ctrl_c_ends_a_waiter(shell: Shell) -> None:
    shell.type(f"{FAIRGATE} run report -- sh -c 'echo in; sleep 1000' &\n")
    shell.until("in")
    shell.type(f"{FAIRGATE} run report -- echo in; echo code=$?\n")
    until_waiting("report")
    shell.type(CTRL_C)
    assert shell.number("code=") == 128 + signal.SIGINT
    shell.type("kill %1; wait %1; echo code=$?\n")
    assert shell.number("code=") == 128 + signal.SIGTERM


def test_ctrl_z_stops_the_command_and_the_gate_goes_on(shell: Shell) -> None:
    """Its slot stays taken while the other one is granted as before; fg continues it."""
    shell.type(f"{FAIRGATE} run gpu -k 2 -- sh -c 'echo pid=$$; read line; echo got $line; exit 6'; echo code=$?\n")
    shell.number("pid=")
    shell.type(CTRL_Z)
    shell.until("Stopped")
    shell.number("code=")
    assert [one.slots for one in holders("gpu")] == [(0,)]
    assert run("run", "gpu", "-k", "2", "--", "echo", "in").stdout == "in\n"
    other = inside("gpu", "-k", "2")
    assert run("run", "gpu", "-k", "2", "-n", "--", "true").returncode == 1
    end(other)
    shell.type("fg; echo code=$?\n")
    shell.until("fairgate run gpu")  # bash prints the command that it continues
    shell.type("something\n")
    shell.until("got something")
    assert shell.number("code=") == 6
    assert run("run", "gpu", "-k", "1", "--", "echo", "in").stdout == "in\n"  # the gate is closed, so k may differ


def test_ctrl_z_between_hosts_keeps_the_slot(shell: Shell) -> None:
    """Nobody else could keep the slot, so the peer itself stops, with a warning that others may have to wait."""
    keeper, seed = standing("--create", "--listen", "127.0.0.1:0")
    shell.type(
        f"{FAIRGATE} run report --join {seed} -- sh -c 'echo pid=$$; read line; echo got $line; exit 6'; echo code=$?\n"
    )
    shell.number("pid=")
    shell.type(CTRL_Z)
    shell.until("gate report may block until this job is continued")
    shell.until("Stopped")
    shell.number("code=")
    waiter = start("run", "report", "--join", seed, "--", "echo", "in")
    shell.type("fg; echo code=$?\n")
    shell.until("fairgate run report")
    shell.type("something\n")
    shell.until("got something")
    assert shell.number("code=") == 6
    assert waiter.communicate(timeout=SOON) == (b"in\n", b"")
    assert end_by(signal.SIGTERM, keeper)[0] == 0


def test_ctrl_z_while_waiting_keeps_the_ticket(shell: Shell) -> None:
    """The others pass it while it is stopped. Continued, it is ahead of those that asked after it."""
    holder = inside("report")
    shell.type(f"{FAIRGATE} run report -- sh -c 'echo let''in; read line'\n")
    [stopped] = until_waiting("report")
    shell.type(CTRL_Z)
    shell.until("Stopped")
    second = start("run", "report", "--", "sh", "-c", "echo second; read line")
    until_waiting("report", 2)
    third = start("run", "report", "--", "echo", "third")
    until_waiting("report", 3)
    end(holder)
    assert line(second) == "second"  # it passed the stopped one
    assert waiters("report")[0].ticket == stopped.ticket
    shell.type("fg; echo code=$?\n")
    until(lambda: not waiters("report")[0].stopped)
    assert end(second) == 1  # from `read` at end of file
    shell.until("letin")
    assert third.poll() is None
    shell.type("x\n")
    assert shell.number("code=") == 0
    assert line(third) == "third"
    assert end(third) == 0


def test_in_a_pipeline_it_gets_the_terminal_on_demand(shell: Shell) -> None:
    shell.type(f"{FAIRGATE} run report -- sh -c 'read line < /dev/tty; echo got $line' | cat; echo code=$?\n")
    until_inside("report")
    shell.type("something\n")
    shell.until("got something")
    assert shell.number("code=") == 0


def test_a_closed_terminal_leaves_no_process_behind(shell: Shell) -> None:
    shell.type(f"{FAIRGATE} run report -- sh -c 'echo pid=$$; sleep 1000'\n")
    command = Watched(shell.number("pid="))
    fairgate = Watched(holders("report")[0].pid)
    shell.close()
    assert command.has_ended()
    assert fairgate.has_ended()
    assert run("run", "report", "-w", "10", "--", "echo", "in").stdout == "in\n"  # its sleep may end a little later
    command.close()
    fairgate.close()
