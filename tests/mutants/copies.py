"""Runs a test in a separate process against a copy of the package in which one place is changed.

The copy holds only the plain Python files, as symbolic links to all but the changed one. Processes that the test starts
use it too, through PYTHONPATH. A mutant that makes its test hang counts as caught, but its table entry must say so.

A module with a table, MUTANTS, imports the tests from here (conftest.py hands them the table of their module).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import fairgate

DEAD = (b"Z", b"X")
PACKAGE = Path(fairgate.__file__).parent
PROJECT = Path(__file__).parents[2]
FAILS, HANGS, PASSES, SKIPPED = "fails", "hangs", "passes", "is skipped"
FAILS_OR_HANGS = f"{FAILS} or {HANGS}"  # which of the two depends on the order of threads
LIMIT = 15.0  # seconds; most tests in tests/live have a timeout of 20


@dataclass(frozen=True)
class Mutant:
    file: str
    old: str
    new: str
    test: str  # a file in tests/live, or a path below tests
    end: str = FAILS


def end_of(test: str, mutant: Mutant | None = None) -> str:
    """How this test ends against this mutant; without a mutant, against an unchanged copy."""
    with TemporaryDirectory(prefix="fairgate") as name:  # the path must be short: it holds the test's sockets
        folder = Path(name).resolve()
        folder.chmod(0o711)  # one of the tests runs as another user
        copy_package(folder / "src" / "fairgate")
        if mutant is not None:
            change(folder / "src" / "fairgate" / mutant.file, mutant.old, mutant.new)
        return run(test, folder)


def copy_package(to: Path) -> None:
    for path in PACKAGE.rglob("*.py"):
        copy = to / path.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(path)


def change(path: Path, old: str, new: str) -> None:
    source = path.read_text()
    if source.count(old) != 1:
        raise ValueError(f"{old!r} occurs {source.count(old)} times in {path.name}; a mutant needs exactly one")
    path.unlink()
    path.write_text(source.replace(old, new))


def run(test: str, folder: Path) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "FAIRGATE"))}
    env |= {"PYTHONPATH": f"{folder / 'src'}:{PROJECT}", "TMPDIR": str(folder)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-p",
        "no:cacheprovider",
        path_of(test),
    ]
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=PROJECT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return HANGS
    finally:
        end_session(process.pid)
        process.wait()
    said = log.read_text()
    if code == 0:
        return PASSES if "1 passed" in said else SKIPPED
    assert code == 1, f"{test} did not run:\n{said}"
    print(said)  # shown by pytest if the mutant's test fails
    return FAILS


def path_of(test: str) -> str:
    return f"tests/{test}" if "/" in test.partition("::")[0] else f"tests/live/{test}"


def end_session(leader: int) -> None:
    """Kill every process that the test started and did not end."""
    while living := [
        pid
        for pid, state, session in map(seen, Path("/proc").glob("[0-9]*/stat"))
        if session == leader and state not in DEAD
    ]:
        for pid in living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def seen(stat: Path) -> tuple[int, bytes, int]:
    """The id, the state and the session of a process; zeros if it has just ended."""
    try:
        state, _, _, session, *_ = stat.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0, b"", 0
    return int(stat.parent.name), state, int(session)


def test_each_mutant_can_be_made(mutant: Mutant) -> None:
    """Its text is there once, and its test exists."""
    assert (PACKAGE / mutant.file).read_text().count(mutant.old) == 1
    file, _, test = path_of(mutant.test).partition("::")
    assert f"def {test.partition('[')[0]}(" in (PROJECT / file).read_text()


@pytest.mark.stress
def test_each_mutant_is_noticed(mutant: Mutant) -> None:
    assert not_skipped(end_of(mutant.test, mutant)) in mutant.end.split(" or ")


@pytest.mark.stress
def test_each_test_passes_without_a_mutant(node: str) -> None:
    assert not_skipped(end_of(node)) == PASSES


def not_skipped(end: str) -> str:
    if end == SKIPPED:
        pytest.skip("its test is skipped on this machine")
    return end
