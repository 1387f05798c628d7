"""Nested use of a gate: `fairgate run` in a command that already runs inside the same gate.

To wait for another slot could take forever, because the slot that it waits for may be its own. So every command gets a
list of the gates that it is inside in FAIRGATE_HELD: "DEVICE:INODE:FENCE:START ...", with the time when the holder's
process, its `fairgate run`, was started. If the protocol of a cluster has no fences, "tTICKET" takes the place of the
fence.

A variable of the environment can reach processes that are not part of the command: daemons that it has left behind, or
services that were started with its environment. So this process is nested only if the slots depend on it, or if
somebody that they depend on may wait for it:

- it has the bell of the permit open, or is in the process group of the command: both keep the slots taken;
- or its parent, the parent of that one and so on lead to the holder. The start time tells the holder from a later
  process with the same id.
"""

from __future__ import annotations

import os

from fairgate.command.process import Command
from fairgate.room import system
from fairgate.room.bell import path_of
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
    return " ".join([*others, f"{gate}:{name_of(permit)}:{system.started(os.getpid())}"])


def name_of(permit: Permit | Listed) -> str:
    """It belongs to no other permit of its gate, ever."""
    return str(permit.fence) if permit.fence else f"t{permit.ticket}"


def outer_permit(room: Room) -> Listed | None:
    """The permit with which this process is inside the gate, if it is still valid."""
    gate = identity(room)
    held = [one.removeprefix(f"{gate}:") for one in os.environ.get(HELD, "").split() if one.startswith(f"{gate}:")]
    if not held:
        return None
    starts = {name: start for name, _, start in [one.partition(":") for one in held]}
    now = clock()
    for request in room.requests():
        start = starts.get(name_of(request)) if request.inside else None
        if start is not None and not 0 < request.safe_until <= now and is_part_of(room, request, start):
            return request
    return None


def is_part_of(room: Room, request: Listed, start: str) -> bool:
    """Is this process part of the command of this permit, whose holder was started then?"""
    if system.has_open(path_of(room.folder, request.owner)):
        return True
    if request.namespace != system.pid_namespace():  # the ids mean something else here
        return False
    holder = (request.pid, start)
    return os.getpgrp() == request.group or any((pid, str(began)) == holder for pid, began in system.ancestors())


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
