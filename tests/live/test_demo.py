"""`fairgate demo`: its counts, its end, and that it leaves nothing behind."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
from pathlib import Path

import pytest

from fairgate.cli.demo.processes import INSIDE, THINKS, WAITS, DemoPeer, most_at_once, outcome
from fairgate.room.system import is_populated
from fairgate.sim.run import kind_of_build
from tests.live.commands import SOON, Say, line, start, until

# The same with a shorter duration.
SHORT = """
import sys
from fairgate.cli import app
from fairgate.cli.demo import command
command.PLAY = 0.5
sys.exit(app.run(["demo", *sys.argv[1:]]))
"""
EACH = pytest.mark.parametrize("words", [[], ["--protocol", "fair_k"]], ids=["room", "cluster"])


@pytest.mark.parametrize(
    ("stays", "most"),
    [
        ([], 0),
        ([(1.0, 2.0), (3.0, 4.0)], 1),
        ([(1.0, 4.0), (2.0, 3.0), (3.5, 5.0)], 2),
        ([(1.0, 2.0), (2.0, 3.0)], 2),  # one enters as the other leaves: count both
        ([(1.0, 5.0), (2.0, 5.0), (3.0, 5.0), (4.0, 6.0)], 4),
    ],
)
def test_most_inside_is_counted_from_the_stays(stays: list[tuple[float, float]], most: int) -> None:
    assert most_at_once(stays) == most


def test_reports_of_the_processes_become_entries() -> None:
    one, two = DemoPeer(1, 0, 0), DemoPeer(2, 0, 0)
    for peer, shift in ((one, 0.0), (two, 0.5)):
        peer.told(THINKS, 1.0 + shift)
        peer.told(WAITS, 2.0 + shift)
        peer.told(INSIDE, 3.0 + shift, slot=1)
        peer.told(THINKS, 4.0 + shift, messages=7)
    one.told(WAITS, 5.0)
    assert one.entries == [(2.0, 3.0, 4.0)]
    found = outcome([one, two])
    assert (found.entries, found.most_inside, found.waits, found.messages) == ([1, 1], 2, [1.0, 1.0], 14)


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which it creates its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@EACH
def test_it_ends_by_itself_and_cleans_up(left: Path, words: list[str]) -> None:
    process = start(*words, command=[sys.executable, "-c", SHORT], start_new_session=True)
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (0, b"")
    assert b"8 processes share a gate that admits 3 at a time" in out
    assert f"fairgate's {kind_of_build()} modules" in " ".join(out.decode().split())
    assert b"no violation: never more than 3 inside" in out
    assert (b"messages per entry" in out) == bool(words)
    assert b"Try next:" in out
    assert list(left.iterdir()) == []
    assert is_empty(process.pid)


@EACH
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("when", "told"), [("8 processes", b""), (" s  inside", b"until it was interrupted")])
def test_a_signal_ends_it_with_a_summary(left: Path, when: str, told: bytes, signum: int, words: list[str]) -> None:
    """If nothing was counted yet, there is no summary."""
    process = start("demo", *words, start_new_session=True)
    while when not in line(process):
        pass
    os.killpg(process.pid, signum)  # to the whole group, as a terminal does
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (130, b"")
    assert told in out
    assert list(left.iterdir()) == []
    assert is_empty(process.pid)


@EACH
def test_its_processes_end_with_it(left: Path, words: list[str]) -> None:
    process = start("demo", *words, start_new_session=True)
    while " s  inside" not in line(process):
        pass
    process.kill()
    process.communicate()
    assert until(lambda: is_empty(process.pid))


def test_a_terminal_gets_a_table(left: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", SHORT])
    seen = b""

    def ended() -> bool:
        nonlocal seen
        try:
            if select.select([terminal], [], [], 0.01)[0]:
                seen += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            return True
        return False

    until(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"of 3 inside, " in seen
    assert b"never more than 3 inside" in seen
    os.close(terminal)


def is_empty(group: int) -> bool:
    """Whether the group has no living process; zombies may wait for process 1."""
    return not is_populated(group)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--protocol", "fair"], "there is no protocol 'fair': did you mean fair_k?"),
        (["--protocol", "leased"], "leased cannot run live: it depends on the clock"),
        (["--protocol", "fair_k", "--simulated"], "--protocol is for the live demo, which --simulated replaces"),
    ],
)
def test_bad_options(words: list[str], expected: str, say: Say, left: Path) -> None:
    code, out, err = say("demo", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"fairgate: {expected}")
    assert list(left.iterdir()) == []


def test_a_mutex_admits_one() -> None:
    """Protocols for k=1 alone can be watched too."""
    process = start("--protocol", "naimi_trehel", command=[sys.executable, "-c", SHORT])
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (0, b"")
    assert b"never more than 1 inside" in out
