"""A peer of one host: the rooms that one call of `join` has opened."""

import os
import socket
import threading
import time
from collections.abc import Callable

from fairgate.arguments import SECOND, check_k
from fairgate.errors import BadInput, ForkedPeer, GateClosed, KMismatch
from fairgate.interface import Statistics
from fairgate.once import once
from fairgate.request import Request
from fairgate.room import place
from fairgate.room.calls import clock
from fairgate.room.layout import ASKED_K, GRANTS, LONGEST, LOSSES, WAITED, K
from fairgate.room.listing import Listed
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from fairgate.room.table import Change

LEFT = "this peer has left"
FEW_ROOMS = 64
FORKED = "this peer belongs to the parent process: join again in the child, after the fork"


class HostPeer:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.mutex = threading.Lock()
        self.closed = False
        self.rooms: dict[object, Room] = {}
        self.most_rooms = FEW_ROOMS

    def room(self, name: str, k: int, protocol: str | None) -> Room:
        """The room of a gate, which is opened if necessary."""
        self.check_process()
        check_k(k)
        folder, gate = self.locate(name, protocol)
        for _ in once(self.mutex):
            if self.closed:
                raise GateClosed(LEFT)
            key = self.key(gate, k, protocol)
            room = self.rooms.get(key)
            if room is None or not is_open(room):
                self.forget_closed()
                room = self.rooms[key] = self.open(folder, gate, k, protocol)
            elif k not in (room.k, room.file.m[ASKED_K], room.file.m[K]):
                raise KMismatch(name, k, room.file.m[K])
        assert room is not None
        return room

    def forget_closed(self) -> None:
        """A program may use and close one gate after the other."""
        if len(self.rooms) >= self.most_rooms:
            self.rooms = {key: room for key, room in self.rooms.items() if not room.is_closed()}
            self.most_rooms = max(FEW_ROOMS, 2 * len(self.rooms))

    def key(self, gate: str, k: int, protocol: str | None) -> object:
        """What tells rooms apart that this peer has open."""
        return gate

    def locate(self, name: str, protocol: str | None) -> tuple[str, str]:
        """Where the room is. Raises BadInput if there can be no such gate."""
        if protocol is not None:
            raise BadInput(
                f"gate {name}: protocol {protocol!r:.60} is for clusters; a gate of one host has a waiting room instead"
            )
        return place.locate(name)

    def open(self, folder: str, gate: str, k: int, protocol: str | None) -> Room:
        return Room(folder, gate, k)

    def describe(self) -> str:
        state = "of the parent process" if self.pid != os.getpid() else "closed" if self.closed else "open"
        return f"{self.what()}, {state}, gates: {len(self.rooms)}"

    def what(self) -> str:
        return "peer of this host"

    def check_process(self) -> None:
        if self.pid != os.getpid():
            raise ForkedPeer(FORKED)

    def close(self) -> None:
        """A no-op in a forked child, and the second time."""
        if self.pid != os.getpid():
            return
        for _ in once(self.mutex):
            self.closed = True
            rooms, self.rooms = self.rooms, {}
        for room in rooms.values():
            room.close(LEFT)


def is_open(room: Room) -> bool:
    """False if its file was removed, or another thread closes the room at this moment."""
    try:
        return not room.is_closed() and room.file.is_linked()
    except OSError:
        return False


def refuse_journal(journal: str | None) -> None:
    if journal is not None:
        raise BadInput("journals are for clusters: a gate of one host sends no messages that could be recorded")


# What both APIs tell of a room.


def requests(listed: list[Listed]) -> list[Request]:
    shift = time.time() - clock() / SECOND
    host = socket.gethostname()
    return [
        Request(
            inside=one.inside,
            slots=one.slots,
            fence=one.fence if one.inside else None,
            pid=one.pid,
            host=host,
            since=(one.since if one.inside else one.asked) / SECOND + shift,
            deadline=one.deadline / SECOND + shift if one.deadline else None,
            note=one.note,
        )
        for one in listed
    ]


def statistics(room: Room, protocol: str = "room", guarantee: str = "host") -> Statistics:
    def step(change: Change) -> Statistics:
        m, listed = room.file.m, room.listed(change)
        inside = sum([one.permits for one in listed if one.inside])
        return Statistics(
            gate=room.gate,
            k=m[K],
            protocol=protocol,
            guarantee=guarantee,
            entries=m[GRANTS],
            inside=inside,
            waiting=len([one for one in listed if not one.inside]),
            wait_mean=m[WAITED] / m[GRANTS] / SECOND if m[GRANTS] else 0.0,
            wait_max=m[LONGEST] / SECOND,
            permits_lost=m[LOSSES],
        )

    return room.change(step)


class BaseRoomGate:
    """A room, as the semaphores of both APIs use it."""

    def __init__(self, room: Room) -> None:
        self.room = room

    @property
    def protocol(self) -> str:
        return "room"

    @property
    def k(self) -> int:
        return self.room.file.m[K]

    def state(self) -> str:
        return "of the parent process" if self.room.desk.forked else "closed" if self.room.is_closed() else "open"

    def holders_now(self) -> list[Request]:
        from fairgate.room.host import holders_at  # noqa: PLC0415 (rarely needed)

        return requests(holders_at(self.room.file.path))

    def statistics(self) -> Statistics:
        return statistics(self.room)


class RoomGate(BaseRoomGate):
    """For threads."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.acquire: Callable[[float | None, int, float | None, str], Permit | None] = room.acquire

    def requests(self) -> list[Request]:
        return requests(self.room.requests())

    def resize(self, k: int) -> None:
        check_k(k)
        self.room.resize(k)

    def close(self) -> None:
        self.room.check_process()
        self.room.close()


class ThreadHostPeer(HostPeer):
    def gate(self, name: str, k: int, protocol: str | None) -> RoomGate:
        return RoomGate(self.room(name, k, protocol))
