"""Sweeping: what nobody uses any more is removed, and nothing else."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairgate.room import calls, system
from fairgate.room import sweep as sweeping
from fairgate.room.bell import Bell
from fairgate.room.file import HOUR, LAST_SWEPT, SECOND
from fairgate.room.layout import BOOT, MACHINE, SWEPT, VERSION
from fairgate.room.opening import UNFINISHED
from fairgate.room.room import Room
from fairgate.room.sweep import DAY, MINUTE, sweep
from tests.room.children import Child
from tests.room.files import bell, gate, store
from tests.room.others import ALICE, BOB, TEAM, as_user, needs_root

DIGITS = "0123456789abcdef"


def age(path: str | Path, seconds: float) -> None:
    """Make a file look as if it had not been used for so long."""
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)


def old_gate(folder: str, name: str = "g") -> Path:
    Room(folder, name, 1).close()
    path = Path(folder) / f"{name}.gate"
    age(path, 2 * DAY)
    return path


def dead_bell(folder: str) -> Path:
    """One that a killed process has left behind, some time ago."""

    def work(me: Child) -> None:
        me.say(Bell(folder).path)
        me.hear()

    with Child(work) as child:
        path = Path(child.hear())
    age(path, 2 * MINUTE)
    return path


def holder(folder: str, name: str = "g") -> Callable[[Child], None]:
    def work(me: Child) -> None:
        room = Room(folder, name, 1)
        permit = room.acquire()
        assert permit
        me.say(bell(folder))
        me.hear()

    return work


# Gates.


def test_a_gate_that_was_not_used_for_a_day_is_removed(folder: str) -> None:
    path = old_gate(folder)
    age(path, DAY - 60)
    sweep(folder, False)
    assert path.exists()
    age(path, DAY + 60)
    sweep(folder, False)
    assert not path.exists()


def test_a_gate_that_a_process_has_open_stays(folder: str) -> None:
    """A service may use it once a week."""
    with Room(folder, "g", 1) as room:
        age(gate(folder), 2 * DAY)
        sweep(folder, False)
        assert room.acquire(timeout=0)


def test_a_gate_with_a_living_owner_stays(folder: str, children: ExitStack) -> None:
    """The children of a killed process have its bell, and not the file."""

    def work(me: Child) -> None:
        room = Room(folder, "g", 1)
        permit = room.acquire()
        assert permit
        permit.share()
        os.close(room.file.fd)
        me.say("inside")
        me.hear()

    child = children.enter_context(Child(work))
    child.hear()
    age(gate(folder), 2 * DAY)
    sweep(folder, False)
    assert gate(folder).exists()
    child.end()
    sweep(folder, False)
    assert not gate(folder).exists()


def test_a_gate_whose_lock_is_taken_stays(folder: str) -> None:
    path = old_gate(folder)
    fd = os.open(path, os.O_RDONLY)
    assert calls.try_lock(fd)
    sweep(folder, False)
    os.close(fd)
    assert path.exists()


def test_a_gate_that_was_created_again_meanwhile_stays(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = old_gate(folder)
    try_lock = calls.try_lock

    def too_late(fd: int) -> bool:
        monkeypatch.undo()
        path.unlink()
        Room(folder, "g", 1).close()
        return try_lock(fd)

    monkeypatch.setattr(calls, "try_lock", too_late)
    sweep(folder, False)
    assert path.exists()


def test_a_gate_of_an_earlier_boot_is_removed_unless_somebody_lives(folder: str, children: ExitStack) -> None:
    child = children.enter_context(Child(holder(folder)))
    child.hear()
    store(gate(folder), BOOT, 12345)
    age(gate(folder), 2 * DAY)
    copy = Path(folder) / "copy.gate"  # nobody has it open
    shutil.copy2(gate(folder), copy)
    sweep(folder, False)
    assert copy.exists()
    child.end()
    sweep(folder, False)
    assert not copy.exists()


def test_a_gate_of_another_machine_stays(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "machine_id", lambda: "f" * 32)
    path = old_gate(folder)
    store(path, BOOT, 12345)
    store(path, MACHINE, 67890)
    age(path, 2 * DAY)
    sweep(folder, False)
    assert path.exists()


def test_files_that_are_not_ours_stay(folder: str) -> None:
    other = Path(folder)
    (other / "noise.gate").write_bytes(b"noise" * 10_000)
    (other / "empty.gate").write_bytes(b"")
    (other / "my.lock").write_bytes(old_gate(folder, "a").read_bytes())
    (other / "dir.gate").mkdir()
    (other / "link.gate").symlink_to("my.lock")
    (other / f"{DIGITS}.bell").write_text("")
    for name in (
        f"{DIGITS}{UNFINISHED}",
        f"{DIGITS[1:]}.bell",
        f"{DIGITS.upper()}.bell",
        f"{DIGITS}.pipe",
        "docker.bell",
    ):
        os.mkfifo(other / name)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"{folder}/{DIGITS[::-1]}.bell")
    before = sorted(os.listdir(folder))
    for path in other.iterdir():
        age(path, 2 * DAY)
    sweep(folder, False)
    assert sorted([*os.listdir(folder), "a.gate"]) == before


def test_a_gate_of_another_version_stays(folder: str) -> None:
    path = old_gate(folder)
    store(path, VERSION, 99)
    age(path, 2 * DAY)
    sweep(folder, False)
    assert path.exists()


def test_a_gate_that_was_named_by_a_path_stays(folder: str) -> None:
    path = old_gate(folder)
    sweep(folder, True)
    assert path.exists()


def test_opening_and_closing_count_as_use(folder: str) -> None:
    path = old_gate(folder)
    with Room(folder, "g", 1):
        assert time.time() - path.stat().st_mtime < HOUR
        age(path, 2 * DAY)
    assert time.time() - path.stat().st_mtime < HOUR


# Bells.


def test_a_bell_that_nobody_has_is_removed(folder: str) -> None:
    path = dead_bell(folder)
    age(path, MINUTE / 2)
    sweep(folder, True)
    assert path.exists()  # its owner may not have opened it yet
    age(path, 2 * MINUTE)
    sweep(folder, True)
    assert not path.exists()


def test_a_bell_that_somebody_has_stays(folder: str) -> None:
    made = Bell(folder)
    age(made.path, DAY)
    sweep(folder, False)
    assert os.path.exists(made.path)
    made.close()


@pytest.mark.parametrize("name", ["g.gate", "my.lock"])
def test_a_bell_that_a_seat_has_stays(folder: str, name: str, children: ExitStack) -> None:
    """There it shows that its owner is dead, also to processes that cannot see that one."""
    child = children.enter_context(Child(holder(folder, f"{folder}/{name}")))
    path = child.hear()
    child.end()
    age(path, DAY)
    sweep(folder, False)
    assert os.path.exists(path)
    with Room(folder, f"{folder}/{name}", 1) as room:
        assert room.acquire(timeout=0)
    sweep(folder, False)
    assert not os.path.exists(path)


def test_no_bell_is_removed_if_a_gate_cannot_be_read(folder: str) -> None:
    Room(folder, "g", 1).close()
    path = dead_bell(folder)
    store(gate(folder), VERSION, 99)
    sweep(folder, False)
    assert path.exists()


@needs_root
def test_no_bell_is_removed_if_a_gate_may_not_be_read(shared: str) -> None:
    os.chown(shared, 0, TEAM)
    os.chmod(shared, 0o2770)
    Room(shared, "g", 1).close()
    path = dead_bell(shared)
    gate(shared).chmod(0o600)
    assert as_user(ALICE, lambda: sweep(shared, False), [TEAM]) == "None"
    assert path.exists()
    gate(shared).chmod(0o660)
    assert as_user(ALICE, lambda: sweep(shared, False), [TEAM]) == "None"
    assert not path.exists()


@needs_root
def test_what_only_another_user_may_remove_stays(shared: str) -> None:
    os.chown(shared, 0, TEAM)
    os.chmod(shared, 0o3770)
    path = dead_bell(shared)
    assert as_user(BOB, lambda: sweep(shared, False), [TEAM]) == "None"
    assert path.exists()


def test_a_file_whose_creator_died_is_removed(folder: str) -> None:
    path = Path(folder) / f"{DIGITS}{UNFINISHED}"
    path.write_bytes(b"")
    sweep(folder, True)
    assert path.exists()
    age(path, 2 * MINUTE)
    sweep(folder, True)
    assert not path.exists()


# When.


def test_named_gates_are_swept_once_an_hour(folder: str) -> None:
    os.mkdir(f"{folder}/other", 0o700)
    path = old_gate(f"{folder}/other", "b").rename(f"{folder}/b.gate")
    Room(folder, "a", 1).close()  # the first one only notes when it was
    assert path.exists()
    assert (Path(folder) / LAST_SWEPT).stat().st_mode & 0o777 == 0o600
    Room(folder, "a", 1).close()
    assert path.exists()
    age(f"{folder}/{LAST_SWEPT}", HOUR + 60)
    Room(folder, "a", 1).close()
    assert not path.exists()
    path = old_gate(folder, "b")
    Room(folder, "a", 1).close()
    assert path.exists()


def test_the_directory_of_a_path_is_swept_once_an_hour(folder: str) -> None:
    name = f"{folder}/my.lock"
    path = dead_bell(folder)
    for _ in range(2):
        Room(folder, name, 1).close()  # a new gate does not begin with it: a program may have thousands
        assert path.exists()
    with Room(folder, name, 1) as room:
        room.file.m[SWEPT] -= (HOUR + 60) * SECOND
    Room(folder, name, 1).close()
    assert not path.exists()
    assert os.listdir(folder) == ["my.lock"]
    path = dead_bell(folder)
    Room(folder, name, 1).close()
    assert path.exists()


@needs_root
def test_the_users_of_a_group_sweep_in_turn(shared: str) -> None:
    os.chown(shared, 0, TEAM)
    os.chmod(shared, 0o2770)
    assert as_user(ALICE, lambda: Room(shared, "a", 1).close(), [TEAM]) == "None"
    path = dead_bell(shared)
    age(f"{shared}/{LAST_SWEPT}", 2 * HOUR)
    assert as_user(BOB, lambda: Room(shared, "a", 1).close(), [TEAM]) == "None"
    assert not path.exists()


def test_a_large_directory_that_a_user_has_named_is_not_read(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = dead_bell(folder)
    (Path(folder) / "data").write_text("")
    monkeypatch.setattr(sweeping, "MOST_FILES", 1)
    sweep(folder, True)
    assert path.exists()
    monkeypatch.setattr(sweeping, "MOST_FILES", 2)
    sweep(folder, True)
    assert not path.exists()


def test_a_sweep_does_not_take_long(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left is swept the next time."""
    paths = [old_gate(folder, str(number)) for number in range(3)]
    paths.append(dead_bell(folder))
    monkeypatch.setattr(sweeping, "BUDGET", 0)
    sweep(folder, False)
    assert all(path.exists() for path in paths)
    monkeypatch.undo()
    sweep(folder, False)
    assert not any(path.exists() for path in paths)


def test_a_directory_that_cannot_be_read_is_not_swept(folder: str) -> None:
    sweep(f"{folder}/none", False)


# Other programs that sweep.


@pytest.mark.skipif(not shutil.which("systemd-tmpfiles") or os.geteuid() != 0, reason="there is no systemd-tmpfiles")
def test_systemd_leaves_our_files_alone(shared: str, tmp_path: Path) -> None:
    """It removes files from /tmp that were not changed for some days, also those that are in use."""
    (tmp_path / "clean.conf").write_text(f"d {shared} - - - 1s\n")
    other = Path(shared) / "other"
    other.write_text("")
    with Room(shared, "g", 1) as room:
        assert room.acquire()
        time.sleep(1.1)  # the change time of a file cannot be set
        subprocess.run(["systemd-tmpfiles", "--clean", str(tmp_path / "clean.conf")], check=True)
        assert not other.exists()
        assert bell(shared)
        assert gate(shared).exists()
