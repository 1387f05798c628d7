"""A room, as the semaphores of the asyncio API use it."""

import asyncio
import os

from fairgate.arguments import check_k
from fairgate.once import once
from fairgate.request import Request
from fairgate.room.aio import AsyncPermit, AsyncRoom
from fairgate.room.peer import LEFT, BaseRoomGate, HostPeer, requests
from fairgate.room.room import Room


class RoomTaskGate(BaseRoomGate):
    """Each event loop that uses it has a bell of its own."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.by_loop: dict[asyncio.AbstractEventLoop, AsyncRoom] = {}

    def here(self) -> AsyncRoom:
        """For the running loop. The requests of loops that were closed while they waited are withdrawn."""
        loop = asyncio.get_running_loop()
        found = self.by_loop.get(loop)
        if found is None or found.closed:
            for old in [each for each in list(self.by_loop) if each.is_closed()]:
                ended = self.by_loop.pop(old, None)
                if ended is not None:  # else the loop of another thread was faster
                    ended.close()
            self.room.check_open()
            found = self.by_loop[loop] = AsyncRoom(self.room)
        return found

    async def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> AsyncPermit | None:
        return await self.here().acquire(timeout, n, lease, note)

    async def requests(self) -> list[Request]:
        return requests(await self.here().change(self.room.listed))

    async def resize(self, k: int) -> None:
        check_k(k)
        await self.here().change(lambda change: self.room.resized(change, k))

    async def close(self) -> None:
        self.room.check_process()
        await self.aend(f"gate {self.room.gate} was closed")

    async def aend(self, why: str) -> None:
        """As `end`, but other tasks of this loop run meanwhile."""
        here = self.by_loop.get(asyncio.get_running_loop())
        if here is not None and not self.room.is_closed():
            await here.aclose(why)
        self.end(why)

    def end(self, why: str) -> None:
        if not self.room.is_closed():
            for gate in list(self.by_loop.values()):
                if not runs_elsewhere(gate.loop):  # else closing the room rings it
                    gate.close(why)
            self.by_loop.clear()
            self.room.close(why)


def runs_elsewhere(loop: asyncio.AbstractEventLoop) -> bool:
    """Does it run in another thread, which alone may use it then?"""
    try:
        return loop.is_running() and loop is not asyncio.get_running_loop()
    except RuntimeError:  # there is no loop in this thread
        return loop.is_running()


class TaskHostPeer(HostPeer):
    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[Room, RoomTaskGate] = {}

    async def start(self) -> None:
        """There is nothing to start."""

    def gate(self, name: str, k: int, protocol: str | None) -> RoomTaskGate:
        room = self.room(name, k, protocol)
        found = self.gates.get(room)
        if found is None:
            found = self.gates[room] = self.new_gate(room)
        return found

    def new_gate(self, room: Room) -> RoomTaskGate:
        return RoomTaskGate(room)

    async def leave(self) -> None:
        if self.pid == os.getpid():
            for _ in once(self.mutex):
                self.closed = True  # other tasks run while its gates are closed
            for gate in list(self.gates.values()):
                await gate.aend(LEFT)
        self.close()

    def close(self) -> None:
        if self.pid == os.getpid():
            for gate in self.gates.values():
                gate.end(LEFT)
            self.gates.clear()
        super().close()
