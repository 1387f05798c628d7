"""The gates of a cluster for asyncio, if this process is a guest of the cluster's standing peer on this host."""

from fairgate.room import guest
from fairgate.room.aio import AsyncPermit
from fairgate.room.clusters import StandingPeer
from fairgate.room.guest_threads import BaseGuestGate, GuestPeer
from fairgate.room.room import Room
from fairgate.room.tasks import RoomTaskGate, TaskHostPeer


class GuestTaskGate(BaseGuestGate, RoomTaskGate):
    def __init__(self, room: Room, standing: StandingPeer) -> None:
        super().__init__(room)
        self.standing = standing

    async def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> AsyncPermit | None:
        seconds = guest.patience(self.room, timeout, n)
        return None if seconds == 0 else await self.here().acquire(seconds, n, lease, note)

    async def resize(self, k: int) -> None:
        guest.refuse_resize(self.room)


class TaskGuestPeer(GuestPeer, TaskHostPeer):
    def new_gate(self, room: Room) -> RoomTaskGate:
        return GuestTaskGate(room, self.standing)
