"""The gates of a cluster for threads, if this process is a guest of the cluster's standing peer on this host."""

from fairgate.errors import KMismatch
from fairgate.interface import Statistics
from fairgate.once import once
from fairgate.room import guest
from fairgate.room.clusters import StandingPeer, described, file_name
from fairgate.room.layout import K
from fairgate.room.peer import BaseRoomGate, HostPeer, RoomGate, statistics
from fairgate.room.permit import Permit
from fairgate.room.room import Room


class GuestPeer(HostPeer):
    """The rooms of a cluster that one call of `join` has opened."""

    def __init__(self, standing: StandingPeer) -> None:
        super().__init__()
        self.standing = standing

    def room(self, name: str, k: int, protocol: str | None) -> Room:
        """A room object for each k and protocol: it is the peer that refuses a request. What this process uses counts.

        Raises KMismatch if it has the gate open with the k that the gate has.
        """
        file = file_name(name)
        for _ in once(self.mutex):
            others = [room for room in self.rooms.values() if room.gate == file and not room.is_closed()]
        for other in others:
            if other.k not in (0, k) and other.k == other.file.m[K] and other.bells:
                raise KMismatch(name, k, other.k)
        return super().room(name, k, protocol)

    def what(self) -> str:
        return f"guest of cluster {self.standing.cluster} on this host"

    def key(self, gate: str, k: int, protocol: str | None) -> tuple[str, int, str | None]:
        return gate, k, protocol

    def locate(self, name: str, protocol: str | None) -> tuple[str, str]:
        return self.standing.folder, file_name(name)

    def open(self, folder: str, gate: str, k: int, protocol: str | None) -> Room:
        return guest.guest_room(self.standing, gate, k, protocol)


class BaseGuestGate(BaseRoomGate):
    """For threads and for tasks. The peer chooses k and the protocol anew whenever it opens the gate anew."""

    standing: StandingPeer

    @property
    def protocol(self) -> str:
        return guest.protocol_of(self.room)

    @property
    def k(self) -> int:
        return guest.k_of(self.room)

    def statistics(self) -> Statistics:
        """Of the guests of this host."""
        now = described(self.standing.folder) or self.standing
        return statistics(self.room, self.protocol, now.guarantee)


class GuestGate(BaseGuestGate, RoomGate):
    def __init__(self, room: Room, standing: StandingPeer) -> None:
        super().__init__(room)
        self.standing = standing
        self.acquire = self.ask

    def ask(self, timeout: float | None, n: int, lease: float | None, note: str) -> Permit | None:
        return guest.acquire(self.room, timeout, n, lease, note)

    def resize(self, k: int) -> None:
        guest.refuse_resize(self.room)


class ThreadGuestPeer(GuestPeer):
    def gate(self, name: str, k: int, protocol: str | None) -> GuestGate:
        return GuestGate(self.room(name, k, protocol), self.standing)
