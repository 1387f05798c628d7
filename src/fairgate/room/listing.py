"""The requests of a room as people see them."""

from typing import NamedTuple

from fairgate.room.layout import (
    ASKED,
    DEADLINE,
    FENCE,
    GROUP,
    INSIDE,
    NAMESPACE,
    OWNER,
    PERMITS,
    PID,
    SINCE,
    SKIPPED,
    STATE,
    TICKET,
    USER,
)
from fairgate.room.links import Table, end_of
from fairgate.room.notes import read_note


class Listed(NamedTuple):
    """A request, as `Room.requests` lists it. Times are nanoseconds of CLOCK_BOOTTIME."""

    inside: bool
    ticket: int
    permits: int
    slots: tuple[int, ...]  # none if it waits, like the next one
    fence: int
    pid: int
    namespace: int  # of that pid
    user: int
    asked: int
    since: int  # inside
    deadline: int  # of its own lease, or 0
    safe_until: int  # the same, or the end of what the peer of its cluster has promised if that is earlier
    group: int  # the process group of its command, or 0
    stopped: bool  # as a waiter it is passed over
    note: str
    owner: int  # the name of its bell


def listed(m: Table, seat: int, slots: tuple[int, ...]) -> Listed:
    inside = m[seat + STATE] == INSIDE
    return Listed(
        inside=inside,
        ticket=m[seat + TICKET],
        permits=m[seat + PERMITS],
        slots=slots,
        fence=m[seat + FENCE] if inside else 0,
        pid=m[seat + PID],
        namespace=m[seat + NAMESPACE],
        user=m[seat + USER],
        asked=m[seat + ASKED],
        since=m[seat + SINCE] if inside else 0,
        deadline=m[seat + DEADLINE] if inside else 0,
        safe_until=end_of(m, seat) if inside else 0,
        group=m[seat + GROUP],
        stopped=m[seat + SKIPPED] != 0,
        note=read_note(m, seat),
        owner=m[seat + OWNER],
    )
