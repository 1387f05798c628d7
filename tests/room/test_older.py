"""Files of the version before today's, in both directions: refused in one line while in use, converted afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.room import host, older, system
from fairgate.room.layout import (
    BECKON,
    BOOT,
    FENCE,
    GRANTS,
    IS_A_ROOM,
    IS_BEING_MADE,
    KEPT,
    KEPT_FROM,
    KEPT_SEAT,
    LAST_FENCE,
    MAGIC,
    NEXT_TICKET,
    PERMITS,
    PID,
    SLOT,
    STATE,
    VERSION,
    K,
)  # fmt: skip
from fairgate.room.opening import FIRST_SIZE
from fairgate.room.room import Room
from fairgate.room.sweep import DAY, sweep
from fairgate.room.words import copied
from tests.room.files import gate, refusal, store
from tests.room.test_sweep import age
from tests.support import earlier

IN_USE = "processes of an older version of fairgate are using it; end them first, or use that version"
OPENS = """
import sys
from fairgate.room.room import Room

room = Room(sys.argv[1], "g", int(sys.argv[2]))
print("open", flush=True)
"""
ENTERS = f"""{OPENS}
for _ in range(3):
    room.acquire().release()
permit = room.acquire(note="from before")
print(permit.fence, flush=True)
"""
DEAD = 1 << 23  # no process has this id
STAYS = "sys.stdin.read()\n"
RUNS = """
import sys
from fairgate.cli import main
sys.argv = ["fairgate", "run", "g", "--", "true"]
sys.exit(main())
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the last state with version 3."""
    folder = tmp_path_factory.mktemp("before")
    return earlier.source_before("THIS_VERSION: Final = 4", "src/fairgate/room/layout.py", folder)


@contextmanager
def running(source: Path, code: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = earlier.start(source, code, *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_an_older_process_inside(folder: str, before: Path) -> None:
    """It is seen, and kept from nothing; its gate is converted when it has ended, however it did."""
    with running(before, ENTERS + STAYS, folder, "2") as process:
        assert line(process) == "open"
        fence = int(line(process))
        whole = gate(folder).read_bytes()
        assert refusal(folder) == f"cannot use {gate(folder)}: {IN_USE}"
        assert gate(folder).read_bytes() == whole
        seen = host.look_at(folder, "g")
        assert seen is not None
        assert (seen.k, seen.counters.grants) == (2, 4)
        [holder] = seen.inside
        assert (holder.request.pid, holder.request.fence, holder.request.slots) == (process.pid, fence, (0,))
        assert holder.request.note == "from before"
        sweep(folder, False)
        assert gate(folder).exists()
    with Room(folder, "g", 0) as room:  # it was killed inside
        permit = room.acquire(timeout=0)
        assert permit is not None
        assert permit.fence > fence
        assert (room.file.m[K], room.file.m[GRANTS]) == (2, 5)
        assert gate(folder).stat().st_size == FIRST_SIZE


def test_an_older_process_that_has_the_gate_open(folder: str, before: Path) -> None:
    """It has asked for nothing yet, but it has the table mapped."""
    with running(before, OPENS + STAYS, folder, "3") as process:
        assert line(process) == "open"
        assert refusal(folder) == f"cannot use {gate(folder)}: {IN_USE}"
        assert process.poll() is None
        process.communicate("", timeout=20)
    with Room(folder, "g", 7) as room:  # nobody uses it, so it may have another k
        assert room.acquire(timeout=0) is not None
        assert room.file.m[K] == 7


def test_an_older_process_refuses_a_file_of_today(folder: str, before: Path) -> None:
    expected = f"cannot use {gate(folder)}: it has version 4, and this fairgate uses version 3; use another name"
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=0) is not None
        for _ in range(2):
            whole = gate(folder).read_bytes()
            with running(before, OPENS, folder, "1") as process:
                said, wrong = process.communicate(timeout=20)
            assert (process.returncode, said) == (1, "")
            assert f"fairgate.errors.BadInput: {expected}" in wrong.splitlines()[-1]
            assert gate(folder).read_bytes() == whole
            room.close()  # the second time nobody uses it: an older process cannot convert it back


def test_one_line_for_commands(folder: str, before: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both versions."""
    monkeypatch.setenv("FAIRGATE_DIR", folder)
    now = Path(older.__file__).parents[2]
    with running(before, OPENS + STAYS, folder, "1") as process:
        assert line(process) == "open"
        for source, code in ((now, 2), (before, 0)):
            with running(source, RUNS) as run:
                assert run.wait(20) == code
                assert run.stderr is not None
                assert run.stderr.read() == (f"fairgate: cannot use {gate(folder)}: {IN_USE}\n" if code else "")
    for source, code in ((now, 0), (before, 2)):
        with running(source, RUNS) as run:
            assert run.wait(20) == code
            assert run.stderr is not None
            assert run.stderr.read().count("\n") == (1 if code else 0)


# Without a history.


def as_older(data: bytes) -> bytes:
    """A table of today, as version 3 had it. Written apart from what converts it back."""
    m = copied(data)
    words = list(m)
    capacity, seats = 1024, 64
    moved = {128 + 2 * capacity + 64 * place: 64 + capacity + 56 * place for place in range(seats)}
    words[VERSION] = 3
    words[KEPT_SEAT] = moved.get(words[KEPT_SEAT], 0)
    found = words[:64] + [moved.get(seat, 0) for seat in words[128 : 128 + capacity]]
    for seat in moved:
        found += words[seat : seat + 27] + words[seat + 32 : seat + 61]
    return b"".join(word.to_bytes(8, "little", signed=True) for word in found)


@pytest.fixture
def old(folder: str) -> Path:
    """A file of version 3 that nobody uses any more."""
    room = Room(folder, "g", 5)
    for _ in range(3):
        permit = room.acquire(note="a note")
        assert permit is not None
        permit.release()
    room.close()
    path = gate(folder)
    path.write_bytes(as_older(path.read_bytes()))
    return path


def test_every_word_is_kept(folder: str) -> None:
    room = Room(folder, "g", 5)
    for note in ("x" * 232, "short"):
        assert room.acquire(lease=60, note=note) is not None
    data = gate(folder).read_bytes()
    m, again = copied(data), older.converted(copied(as_older(data)))
    links = {7, 8, 9, 11, BECKON}  # HEAD, TAIL, SPARE and DIRTY are derived; BECKON was not there
    seat_links = {128 + 2 * 1024 + 64 * place + at for place in range(64) for at in (12, 13)}
    assert [at for at in range(len(m)) if m[at] != again[at] and at not in links | seat_links] == []
    room.close()


def test_an_unused_file_is_converted(folder: str, old: Path) -> None:
    m = copied(old.read_bytes())
    fence, ticket = m[LAST_FENCE], m[NEXT_TICKET]
    with Room(folder, "g", 0) as room:
        permit = room.acquire(timeout=0)
        assert permit is not None
        assert permit.fence > fence
        assert room.file.m[NEXT_TICKET] == ticket + 1
        assert (room.file.m[K], room.file.m[GRANTS]) == (5, 4)


def test_the_fence_of_a_kept_slot_is_not_given_again(folder: str, old: Path) -> None:
    """A process that kept its slot was killed: its last fence is nowhere else."""
    m = copied(old.read_bytes())
    seat, fence = 64 + 1024, m[LAST_FENCE]
    for at, value in ((STATE, 2), (FENCE, fence), (PERMITS, 1), (SLOT, 0), (PID, DEAD)):
        store(old, seat + at, value)
    store(old, 64, seat)  # the first slot
    for at, value in ((KEPT_SEAT, seat), (KEPT_FROM, fence), (KEPT, 2 * (fence + 10**15))):
        store(old, at, value)
    with Room(folder, "g", 0) as room:
        permit = room.acquire(timeout=0)
        assert permit is not None
        assert permit.fence > fence + 10**15


def test_a_conversion_that_was_interrupted(folder: str, old: Path) -> None:
    """Its process died while it stored the new table, so nobody had used the old one; or an older process did so."""
    fence = copied(old.read_bytes())[LAST_FENCE]
    store(old, MAGIC, IS_BEING_MADE)
    with Room(folder, "g", 0) as room:
        permit = room.acquire(timeout=0)
        assert permit is not None
        assert permit.fence > fence
    assert copied(old.read_bytes())[MAGIC] == IS_A_ROOM


@pytest.mark.parametrize(("at", "value"), [(2, 0), (2, 1025), (3, 0), (3, 1 << 40), (3, 65)])
def test_a_damaged_one_is_refused_and_not_changed(folder: str, old: Path, at: int, value: int) -> None:
    store(old, at, value)
    data = old.read_bytes()
    assert "it has version 3, and this fairgate uses version 4" in refusal(folder)
    assert old.read_bytes() == data


def test_what_cannot_be_converted_here(folder: str, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A room of a cluster, and the file of another machine."""
    store(old, 28, 1)
    data = old.read_bytes()
    assert "it is a gate of a cluster" in refusal(folder)
    store(old, 28, 0)
    store(old, 22, 12345)
    store(old, BOOT, 99)
    monkeypatch.setattr(system, "machine_id", lambda: "0123456789abcdef" * 2)  # of this machine, if it has one or not
    assert "it belongs to another machine" in refusal(folder)
    assert len(old.read_bytes()) == len(data)


def test_a_full_disk_leaves_it_as_it_is(folder: str, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = old.read_bytes()

    def full(fd: int, size: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("fairgate.room.file.allocate", full)
    with pytest.raises(BadInput, match="No space left on device"):
        Room(folder, "g", 0)
    assert old.read_bytes() == data


def test_who_and_sweep(folder: str, old: Path) -> None:
    seen = host.look(folder)
    assert seen.unusable == ()
    assert [(view.name, view.k, view.in_use, view.counters.grants) for view in seen.gates] == [("g", 5, False, 3)]
    sweep(folder, False)
    assert old.exists()
    age(old, 2 * DAY)
    sweep(folder, False)
    assert not old.exists()
