"""Nested use of a gate: `fairgate run` in a command that already runs inside the same gate.

To wait for another slot could take forever, because the slot that it waits for may be its own. So every command gets a
list of the gates that it is inside, with its fences: "DEVICE:INODE:FENCE ..." in FAIRGATE_HELD. If the protocol of a
cluster has no fences, "tTICKET" takes the place of the fence.
"""

from __future__ import annotations

import os

from fairgate.command.process import Command
from fairgate.room.calls import clock
from fairgate.room.room import Room

TYPE_CHECKING = False  # see room/__init__.py
if TYPE_CHECKING:
    from fairgate.room.listing import Listed
    from fairgate.room.permit import Permit

HELD = "FAIRGATE_HELD"


def identity(room: Room) -> str:
    """Which gate it is, whatever its path."""
    file = os.fstat(room.file.fd)
    return f"{file.st_dev}:{file.st_ino}"


def held_after(room: Room, permit: Permit) -> str:
    """The list with this permit added."""
    gate = identity(room)
    others = [one for one in os.environ.get(HELD, "").split() if not one.startswith(f"{gate}:")]
    return " ".join([*others, f"{gate}:{name_of(permit)}"])


def name_of(permit: Permit | Listed) -> str:
    """It belongs to no other permit of its gate, ever."""
    return str(permit.fence) if permit.fence else f"t{permit.ticket}"


def outer_permit(room: Room) -> Listed | None:
    """The permit with which this process is inside the gate, if it is still valid."""
    gate = identity(room)
    names = [one.removeprefix(f"{gate}:") for one in os.environ.get(HELD, "").split() if one.startswith(f"{gate}:")]
    if not names:
        return None
    now = clock()
    for request in room.requests():
        if request.inside and name_of(request) in names and not 0 < request.deadline <= now:
            return request
    return None


class NestedPermit:
    """See `CommandPermit`. The slots stay taken by the outer command; only a lease of one's own has to be enforced."""

    wakes = -1
    look_seconds = None
    shared = True

    def __init__(self, gate: str, outer: Listed, lease: float | None) -> None:
        self.gate = gate
        self.slots = outer.slots
        self.fence = outer.fence or None
        self.held = os.environ.get(HELD, "")
        ends = [outer.deadline, clock() + int(lease * 1e9) if lease else 0]
        self.deadline = min([end for end in ends if end], default=0)

    def hand_to(self, group: int) -> None:
        """The outer command keeps the slots."""

    def freed_at(self) -> int:
        return 0

    def is_lost(self) -> bool:
        return 0 < self.deadline <= clock()

    def before_stop(self) -> None:
        """Nothing: see HostPermit."""

    def leave(self, command: Command) -> None:
        """Nothing: the outer command keeps the slots."""
