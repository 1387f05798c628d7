"""Tables that cannot be used, and damaged ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.room.layout import (
    BOOT,
    MAGIC,
    SEATS,
    VERSION,
    K,
)
from fairgate.room.room import Room
from fairgate.room.table import Change
from tests.room.versions import run_module


def prepared(folder: str, change: Callable[[Path], None]) -> Path:
    Room(folder, "g", 1).close()
    path = Path(folder) / "g.gate"
    change(path)
    return path


def overwrite(at: int, value: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[8 * at : 8 * at + 8] = value.to_bytes(8, "little", signed=True)
        path.write_bytes(data)

    return change


UNUSABLE = {
    "not a gate file": overwrite(MAGIC, 7),
    "it has version 99": overwrite(VERSION, 99),
    "its header is damaged": overwrite(K, 0),
    "it is cut off: ": overwrite(SEATS, 100_000),
}


@pytest.mark.parametrize("why", UNUSABLE)
def test_unusable_files_are_refused_in_one_line(folder: str, why: str) -> None:
    prepared(folder, UNUSABLE[why])
    with pytest.raises(BadInput) as refused:
        Room(folder, "g", 1)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_table_of_another_boot_is_started_again_with_higher_fences(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        fence = permit.fence
    overwrite(BOOT, 12345)(Path(folder) / "g.gate")
    with Room(folder, "g", 1) as room:
        permit = room.acquire(timeout=0)
        assert permit
        assert permit.fence > fence


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
def test_damaged_tables_neither_crash_nor_hang(plain: bool) -> None:
    """Whatever stands in the file: requests are refused, or the table is rebuilt."""
    run_module("damage", plain, "--tables", "3000")


@pytest.mark.stress
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
def test_many_damaged_tables_neither_crash_nor_hang(plain: bool) -> None:
    run_module("damage", plain, "--tables", "100000", "--seed", "2")


def test_a_rebuilt_table_keeps_everybody(folder: str) -> None:
    """As after a death in the middle of a change."""
    with Room(folder, "g", 2) as room:
        permits = [room.acquire(timeout=0) for _ in range(2)]
        room.change(room.file.rebuild)
        assert all(permit and permit.is_valid() for permit in permits)
        assert room.acquire(timeout=0) is None


@pytest.mark.parametrize("when", ["before the request is made", "once it waits"])
def test_zeros_in_the_middle_of_a_change_are_not_believed(folder: str, when: str) -> None:
    """Another program has overwritten the file, or cut it off (words.pyx). A seat of zeros does not wait any more."""
    with Room(folder, "g", 1) as room:
        holder = room.acquire()
        visit = room.some_visit()
        visit.want(1, None, "")

        def step(change: Change) -> bool:
            if when == "once it waits":
                assert not visit.ask(change)
            with open(room.file.path, "r+b") as file:
                file.write(bytes(os.fstat(file.fileno()).st_size))
            return visit.is_inside(change) if when == "once it waits" else visit.ask(change)

        with pytest.raises(BadInput, match="was cut off or overwritten: remove it if nobody uses the gate"):
            room.change(step)
        assert holder
        assert not holder.is_valid()
        for _ in range(2):
            with pytest.raises(BadInput, match="it is not a gate file"):
                room.acquire(timeout=0)
