"""This process as a guest of the standing peer of a cluster: the rooms of that cluster on this host (guestbook.py)."""

from __future__ import annotations

from fairgate.errors import BadInput
from fairgate.room import links
from fairgate.room.clusters import StandingPeer, described
from fairgate.room.layout import GATE_PROTOCOL, HEAD, LOOK_AT, K
from fairgate.room.notes import read_text
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from fairgate.room.table import Change

TRY_SECONDS = 1.0  # for a request that should not wait: the peer has to ask the cluster


def guest_room(standing: StandingPeer, file: str, k: int, protocol: str | None) -> Room:
    """The room of a gate of the cluster, by the name of its file (clusters.py). Raises BadInput."""
    (described(standing.folder) or standing).refuse_other_clock()
    room = Room(standing.folder, file, k, cluster=True)
    room.desk.protocol = protocol or ""
    room.desk.doorbell = standing.bell
    return room


def patience(room: Room, timeout: float | None, permits: int) -> float | None:
    """How long a request waits. 0: it is hopeless, as far as this host knows. Raises BadInput if it wants several."""
    if permits != 1:
        raise BadInput(f"gate {room.gate} is in a cluster, which grants one slot at a time, not {permits}")
    if timeout is None or timeout > 0:
        return timeout
    return 0 if room.change(lambda change: is_taken(room, change)) else TRY_SECONDS


def is_taken(room: Room, change: Change) -> bool:
    m = room.file.m
    return m[HEAD] != 0 or len(links.valid_holders(m, change.now)) >= m[K]


def acquire(room: Room, timeout: float | None, permits: int, lease: float | None, note: str) -> Permit | None:
    """As Room.acquire; a timeout of 0 gives the peer a moment to ask the cluster."""
    seconds = patience(room, timeout, permits)
    return None if seconds == 0 else room.acquire(seconds, permits, lease, note)


def refuse_resize(room: Room) -> None:
    raise BadInput(f"gate {room.gate} is in a cluster, where k cannot be changed while it is in use")


def k_of(room: Room) -> int:
    return room.k if opens_anew(room) else room.file.m[K]


def protocol_of(room: Room) -> str:
    """The protocol of the gate, if the peer has opened it."""
    running = "" if opens_anew(room) else read_text(room.file.m, GATE_PROTOCOL, LOOK_AT)
    return running or room.desk.protocol


def opens_anew(room: Room) -> bool:
    """Will a request open the gate with another k, because nobody uses it?"""
    return room.k not in (0, room.file.m[K]) and not links.is_in_use(room.file.m)
