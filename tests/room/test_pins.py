"""Pins: seats that keep the k of a gate while nobody uses it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairgate.errors import BadInput, GateClosed, KMismatch
from fairgate.room.layout import SEATS
from fairgate.room.pin import pin
from fairgate.room.room import Room
from tests.room.children import Child


def pinner(folder: str, k: int) -> Child:
    def work(me: Child) -> None:
        with Room(folder, "g", k) as room:
            pin(room)
            me.say("pinned")
            me.hear()

    child = Child(work)
    assert child.hear() == "pinned"
    return child


def test_a_pinned_gate_keeps_its_k_until_the_pin_is_dead(folder: str, children: ExitStack) -> None:
    child = children.enter_context(pinner(folder, 3))
    Room(folder, "g", 3).close()
    with pytest.raises(KMismatch):
        Room(folder, "g", 2)
    child.end()
    with Room(folder, "g", 2) as room:
        assert room.acquire(timeout=0) is not None
    assert [name for name in os.listdir(folder) if name.endswith(".bell")] == []


def test_a_closed_pin_is_gone(folder: str) -> None:
    with Room(folder, "g", 3) as room:
        pin(room)
    Room(folder, "g", 2).close()


def test_a_pin_is_neither_inside_nor_waiting(folder: str) -> None:
    with Room(folder, "g", 1) as room, Room(folder, "g", 1) as other:
        pin(room)
        assert other.requests() == []
        assert other.acquire(timeout=0) is not None


def test_a_rebuilt_table_keeps_its_pins(folder: str, children: ExitStack) -> None:
    children.enter_context(pinner(folder, 3))
    with Room(folder, "g") as room:
        room.change(room.file.rebuild)
        assert [room.acquire(timeout=0) is not None for _ in range(4)] == [True, True, True, False]
    with pytest.raises(KMismatch):
        Room(folder, "g", 2)


def test_a_gate_that_took_another_k_meanwhile_is_not_pinned(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 2) as room:
        children.enter_context(pinner(folder, 3))
        with pytest.raises(KMismatch):
            pin(room)


def test_a_full_room_grows_for_a_pin(folder: str) -> None:
    with Room(folder, "g", 1024) as room:
        seats = room.file.m[SEATS]
        for _ in range(seats):
            room.acquire(timeout=0)
        pin(room)
        assert room.file.m[SEATS] == 2 * seats


def test_a_removed_file_cannot_be_pinned(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        os.unlink(room.file.path)
        with pytest.raises(GateClosed, match="was removed"):
            pin(room)


def test_a_gate_that_must_exist_is_not_created(folder: str) -> None:
    with pytest.raises(BadInput, match="No such file"):
        Room(folder, "g", create=False)
    assert list(Path(folder).iterdir()) == []
    Room(folder, "g", 3).close()
    with Room(folder, "g", create=False) as room:
        assert room.acquire(timeout=0, permits=3) is not None


def test_only_the_permit_with_this_fence_is_revoked(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        assert not room.revoke(0, permit.fence + 1)
        assert permit.is_valid()
        assert room.revoke(0, permit.fence)
        assert not permit.is_valid()
