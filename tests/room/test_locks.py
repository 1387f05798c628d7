"""Who has the lock of a file, as the kernel tells it by device and inode, and what waiters do about it."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairgate.errors import GateStuck
from fairgate.room import backlog, system
from fairgate.room.aio import AsyncRoom
from fairgate.room.calls import clock, try_lock
from fairgate.room.file import LOOK_PAUSE, NOT_LOOKED, STUCK, LockWatch
from fairgate.room.layout import LOOK_AT, TURNS
from fairgate.room.room import Room
from fairgate.room.system import is_alive, lock_owner, mark_open
from fairgate.room.table import Change
from tests.room.children import Child, until
from tests.room.others import mount, needs_root, with_own_mounts


def opened(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    mark_open(fd)
    return fd


def test_the_owner_of_a_lock_is_found(folder: str) -> None:
    fd, other = opened(Path(folder) / "gate"), opened(Path(folder) / "gate")
    assert lock_owner(fd) == 0
    assert try_lock(other)
    assert not try_lock(fd)
    assert lock_owner(fd) == os.getpid()
    fcntl.flock(other, fcntl.LOCK_UN)
    assert lock_owner(fd) == 0
    os.close(fd)
    os.close(other)


@needs_root
def test_a_file_with_the_same_inode_on_another_device_is_another_one(folder: str) -> None:
    def work() -> str:
        fds = []
        for name in ("one", "two"):
            (Path(folder) / name).mkdir()
            mount("tmpfs", f"{folder}/{name}")
            fds.append(opened(Path(folder) / name / "gate"))
        assert try_lock(fds[1])
        same = os.fstat(fds[0]).st_ino == os.fstat(fds[1]).st_ino
        return f"{same} {lock_owner(fds[0])} {lock_owner(fds[1]) == os.getpid()}"

    assert with_own_mounts(work) == "True 0 True"


def on_overlay(folder: str) -> None:
    for name in ("lower", "upper", "work", "merged"):
        (Path(folder) / name).mkdir()
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    mount("overlay", f"{folder}/merged", options)


def on_tmpfs(folder: str) -> None:
    (Path(folder) / "merged").mkdir()
    mount("tmpfs", f"{folder}/merged")


@needs_root
@pytest.mark.parametrize("prepare", [on_overlay, on_tmpfs])
def test_the_owner_is_found_on_other_file_systems(folder: str, prepare: Callable[[str], None]) -> None:
    """On an overlay, as containers have it, stat tells another device than the list of locks."""

    def work() -> str:
        try:
            prepare(folder)
        except OSError:
            return "cannot be mounted"
        fd, other = opened(Path(folder) / "merged" / "gate"), opened(Path(folder) / "merged" / "gate")
        assert try_lock(other)
        return str(lock_owner(fd) == os.getpid())

    said = with_own_mounts(work)
    if said == "cannot be mounted":
        pytest.skip("this kernel has no such file system")
    assert said == "True"


def owner_of_lock(folder: str) -> Callable[[Child], None]:
    """Takes the lock of a gate, and keeps it until it is told not to."""

    def work(me: Child) -> None:
        with Room(folder, "g", 1) as room:

            def keep(change: Change) -> None:
                me.say("locked")
                me.hear()

            room.change(keep)
            me.say("unlocked")
            me.hear()

    return work


def test_waiters_take_turns_to_look_who_has_the_lock(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look holds up all file locks of the machine."""
    looks = 0

    def count(fd: int) -> int:
        nonlocal looks
        looks += 1
        return 0

    with ExitStack() as rooms:
        files = [rooms.enter_context(Room(folder, "g", 1)).file for _ in range(50)]
        monkeypatch.setattr(system, "lock_owner", count)
        assert [file.continue_owner() for file in files] == [0] + 49 * [NOT_LOOKED]
        assert looks == 1
        files[0].m[LOOK_AT] = clock()
        assert files[1].continue_owner() == 0
        files[0].m[LOOK_AT] = clock() + 3600 * 10**9  # of an earlier boot
        assert files[2].continue_owner() == 0


def test_slow_looks_are_rare(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Room(folder, "g", 1) as room:

        def look(fd: int) -> int:
            end = clock() + LOOK_PAUSE
            while clock() < end:
                pass
            return 0

        monkeypatch.setattr(system, "lock_owner", look)
        room.file.continue_owner()
        assert room.file.m[LOOK_AT] > clock() + 8 * LOOK_PAUSE


def test_every_turn_counts(folder: str) -> None:
    """Otherwise waiters could not tell a busy lock from a stuck one."""
    with Room(folder, "g", 1) as room:
        before = room.file.m[TURNS]
        Room(folder, "g", 1).close()
        assert room.file.m[TURNS] == before + 1
        room.requests()
        assert room.file.m[TURNS] == before + 2


def test_a_slow_owner_of_the_lock_is_not_stuck(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        owner = children.enter_context(Child(owner_of_lock(folder)))
        assert owner.hear() == "locked"
        watch = LockWatch(room.file)
        watch.since -= 2 * STUCK
        assert watch.look() is None
        assert room.file.m[LOOK_AT] > clock()  # it has looked
        owner.say("go on")
        assert owner.hear() == "unlocked"


def test_an_owner_of_the_lock_that_cannot_be_seen_is_stuck(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Room(folder, "g", 1) as room:
        monkeypatch.setattr(system, "lock_owner", lambda fd: 0)
        watch = LockWatch(room.file)
        assert watch.look() is None
        room.file.m[LOOK_AT] = 0
        watch.since -= STUCK
        assert "cannot be seen from here" in str(watch.look())
        room.file.m[LOOK_AT] = 0
        room.requests()  # somebody has had the lock
        assert watch.look() is None


class StuckWatch(LockWatch):
    def look(self) -> GateStuck | None:
        return GateStuck("stuck")


def test_a_dead_owner_of_the_lock_is_stuck(folder: str) -> None:
    """Its child has inherited the lock, and the kernel goes on naming the dead parent."""
    dead = Child(lambda me: None)
    with Room(folder, "g", 1) as room:
        until(lambda: not is_alive(dead.pid))
        assert f"by a process that process {dead.pid}, which is dead, has forked" in str(room.file.stuck(dead.pid))
    dead.end()


def test_a_stuck_lock_ends_what_tasks_wait_for_and_nothing_else(
    folder: str, children: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        done = []
        async with AsyncRoom(room) as gate:
            owner = children.enter_context(Child(owner_of_lock(folder)))
            assert owner.hear() == "locked"
            gate.backlog.post(lambda change: done.append("ended"))
            waits = [asyncio.create_task(gate.backlog.change(lambda change: done.append("changed"))) for _ in range(9)]
            said = await asyncio.gather(*waits, return_exceptions=True)
            assert {str(each) for each in said} == {"stuck"}
            owner.say("go on")
            assert owner.hear() == "unlocked"
            async with asyncio.timeout(20):
                while gate.backlog.entries:
                    await asyncio.sleep(0.01)
        assert done == ["ended"]

    monkeypatch.setattr(backlog, "LockWatch", StuckWatch)
    with Room(folder, "g", 1) as room:
        asyncio.run(main())
