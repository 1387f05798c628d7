"""Gates of asyncio that several event loops use at the same time, each in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from fairgate.room.aio import AsyncRoom
from fairgate.room.room import Room
from fairgate.room.tasks import RoomTaskGate


class EndedLoop:
    """A closed event loop that another thread forgets just when this one looks at it."""

    def __init__(self, gates: dict[object, object]) -> None:
        self.gates = gates

    def is_closed(self) -> bool:
        self.gates.pop(self, None)
        self.gates[object.__new__(OpenLoop)] = None  # and opens one of its own
        return True


class OpenLoop:
    def is_closed(self) -> bool:
        return False


def test_two_threads_forget_an_ended_loop_at_once(folder: str) -> None:
    async def main() -> None:
        gate = RoomTaskGate(room)
        gates: dict[object, object] = gate.by_loop  # type: ignore[assignment]
        gates[EndedLoop(gates)] = None
        permit = await gate.acquire(None, 1, None, "")
        assert permit
        assert permit.is_valid()
        gates.clear()

    with Room(folder, "g", 1) as room:
        asyncio.run(main())


@pytest.mark.parametrize("debug", [False, True])
def test_closing_a_gate_wakes_the_loops_of_other_threads(folder: str, debug: bool) -> None:
    ready, told = threading.Event(), threading.Event()

    async def use() -> None:
        held = await gate.acquire(None, 1, None, "")
        assert held
        ready.set()
        await held.lost.wait()
        told.set()

    room = Room(folder, "g", 1)
    gate = RoomTaskGate(room)
    threading.Thread(target=asyncio.run, args=(use(),), kwargs={"debug": debug}, daemon=True).start()
    assert ready.wait(10)
    asyncio.run(gate.close(), debug=debug)
    assert told.wait(0.5)  # permits that are held are looked at once in a second
    assert room.is_closed()


def test_a_loop_that_looks_at_its_ring_finds_the_room_closed(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread closes the room. The loop may run between any two of its steps."""

    async def main() -> None:
        gate = AsyncRoom(room)
        permit = await gate.acquire()
        assert permit
        close, file = os.close, room.file.fd

        def run_loop(fd: int) -> None:
            if fd == file:
                gate.rung()
            close(fd)

        monkeypatch.setattr(os, "close", run_loop)
        room.close()
        async with asyncio.timeout(0.5):
            await permit.lost.wait()
        assert gate.bell.fd < 0

    room = Room(folder, "g", 1)
    asyncio.run(main())


def test_a_room_is_closed_although_its_loop_has_just_closed_its_bell(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        gate = AsyncRoom(room)
        unlink = os.unlink

        def removed(path: str) -> None:
            unlink(path)
            if path == gate.bell.path:
                gate.bell.close(remove=False)

        monkeypatch.setattr(os, "unlink", removed)
        room.close()

    room = Room(folder, "g", 1)
    asyncio.run(main())
    assert room.is_closed()
