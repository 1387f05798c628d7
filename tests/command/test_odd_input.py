"""`fairgate run` under odd conditions: one clear line or the right result, and never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from fairgate import sync
from tests.command.gates import requests, waiters
from tests.live.commands import FAIRGATE, SOON, end, inside, run, start, until


def in_shell(script: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a script in which $RUN is `fairgate run`."""
    words = ["bash", "-c", script.replace("$RUN", " ".join([*FAIRGATE, "run"]))]
    return subprocess.run(words, capture_output=True, timeout=SOON, check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_stay_closed(closed: str, tmp_path: Path) -> None:
    """None of our files gets such a number: an error message would be written into it."""
    done = in_shell(f"$RUN g -- sh -c 'ls -l /proc/self/fd > {tmp_path}/fds; exit 4' {closed}")
    assert (done.returncode, done.stdout, done.stderr) == (4, b"", b"")
    files = {row.split()[8]: row.split()[-1] for row in (tmp_path / "fds").read_text().splitlines()[1:]}
    numbers = {"<&-": "0", ">&-": "1", "2>&-": "2"}
    for each in closed.split():
        assert not files.get(numbers[each], "").endswith((".gate", ".bell", "null"))
    assert len([1 for path in files.values() if path.endswith(".bell")]) == 1
    assert not [path for path in files.values() if path.endswith(".gate")]


@pytest.mark.parametrize("script", ["$RUN g -- no-such-command 2>/dev/full", "$RUN g -- no-such-command 2>&-"])
def test_messages_that_cannot_be_printed(script: str) -> None:
    assert in_shell(script).returncode == 127


def test_the_output_of_the_command_is_its_own_affair() -> None:
    done = in_shell("$RUN g -- sh -c 'echo text; exit 6' > /dev/full")
    assert done.returncode == 6
    assert b"Traceback" not in done.stderr


def test_help_that_cannot_be_printed() -> None:
    done = in_shell("$RUN --help > /dev/full")
    assert (done.returncode, done.stderr) == (1, b"fairgate: No space left on device\n")


def test_arguments_that_are_not_utf8(tmp_path: Path) -> None:
    holder = inside("g")
    name = bytes(tmp_path / "out") + b"\xff"
    words = [*map(os.fsencode, FAIRGATE), b"run", b"g", b"--", b"touch", name]
    waiter = subprocess.Popen(words)
    [waiting] = until(lambda: waiters("g"))
    assert waiting.note.startswith("touch '")
    end(holder)
    assert waiter.wait(timeout=SOON) == 0
    assert os.path.exists(name)
    gate = subprocess.run([*words[:4], b"\xff", *words[5:]], capture_output=True, timeout=SOON, check=False)
    assert gate.returncode == 2
    assert gate.stderr.count(b"\n") == 1


def test_a_long_command_is_cut_off_in_its_note() -> None:
    holder = inside("g")
    waiter = start("run", "g", "--", "true", "é" * 1000)
    [waiting] = until(lambda: waiters("g"))
    assert waiting.note.startswith("true 'éé")
    end(holder)
    assert end(waiter) == 0


@pytest.mark.parametrize(("files", "works"), [(6, False), (7, False), (8, None), (16, True)])
def test_few_open_files(files: int, works: bool | None) -> None:
    """With 8 it depends on how many Python itself needs."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    holder = inside("g")
    waited = run("run", "g", "-w", "0.05", "-E", "9", "--", "true", preexec_fn=limit)
    end(holder)
    entered = run("run", "g", "--", "true", preexec_fn=limit)
    for done, code in ((waited, 9), (entered, 0)):
        assert done.returncode in ((code,) if works else (1, 2) if works is False else (code, 1, 2))
        assert (done.stderr == "") == (done.returncode == code)
        assert done.stderr.count("\n") <= 1
    assert requests("g") == []


def test_a_program_that_cannot_be_executed_after_all(tmp_path: Path) -> None:
    """Only the kernel can tell: the file is executable, but there is no interpreter to execute it."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = run("run", "g", "--", str(script))
    assert (done.returncode, done.stderr) == (127, f"fairgate: cannot run {script}: No such file or directory\n")
    script.write_text("no shebang")
    done = run("run", "g", "--", str(script))
    assert (done.returncode, done.stderr) == (126, f"fairgate: cannot run {script}: Exec format error\n")
    assert requests("g") == []


def test_a_removed_working_directory(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = in_shell(f"cd {gone}; rmdir {gone}; PATH=.:$PATH; $RUN g -- echo in")
    assert (done.returncode, done.stdout) == (0, b"in\n")


def test_an_empty_path() -> None:
    done = in_shell("PATH= $RUN g -- no-such-command")
    assert (done.returncode, done.stderr) == (127, b"fairgate: cannot run no-such-command: command not found\n")


def test_a_number_is_no_name_of_a_gate(tmp_path: Path) -> None:
    """For flock(1) it is a descriptor. A script that was translated from it would lock nothing that it means to."""
    for words in (("run", "4", "--", "true"), ("peer", "x", "4")):
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "fairgate: 4 would be a file descriptor for flock(1), and fairgate takes none: write ./4 for the file 4 in"
            " this directory, or use a name with a letter\n"
        )
    assert not (tmp_path / "run").exists()
    done = run("run", "./4", "--", "sh", "-c", 'echo "$FAIRGATE_GATE"', cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/4\n")
    for name in ("4a", "-", "4.5", "٤"):
        assert run("run", name, "--", "true").returncode == 0


def test_a_gate_that_a_program_has_named_by_a_number_can_be_looked_at(tmp_path: Path) -> None:
    with sync.join() as peer, peer.lock("4"):
        assert run("who", "4").returncode == 0
        path = run("where", "4").stdout.strip()
        assert run("run", path, "-n", "--", "true").returncode == 1
    assert run("run", path, "-n", "--", "true").returncode == 0
