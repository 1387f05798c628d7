"""The requests of a room as people see them, and the notes that processes leave for them."""

from typing import NamedTuple

from fairgate.room.layout import (
    ASKED,
    DEADLINE,
    FENCE,
    GROUP,
    INSIDE,
    NAMESPACE,
    NOTE,
    PERMITS,
    PID,
    SEAT,
    SINCE,
    SKIPPED,
    STATE,
    TICKET,
    USER,
)
from fairgate.room.links import Table

NOTE_BYTES = 8 * (SEAT - NOTE)


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
    deadline: int  # of its lease, or 0
    group: int  # the process group of its command, or 0
    stopped: bool  # as a waiter it is passed over
    note: str


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
        group=m[seat + GROUP],
        stopped=m[seat + SKIPPED] != 0,
        note=read_note(m, seat),
    )


def write_note(m: Table, seat: int, note: str) -> None:
    """As much of the text as there is room for. Only people read it, so it may be cut off by a death as well."""
    text = note.encode("utf-8", "replace")[:NOTE_BYTES]
    text += bytes(min(8 - len(text) % 8, NOTE_BYTES - len(text)))  # whole words, with a zero at the end
    for at in range(len(text) // 8):
        m[seat + NOTE + at] = int.from_bytes(text[8 * at : 8 * at + 8], "little", signed=True)


def read_note(m: Table, seat: int) -> str:
    text = b"".join([m[at].to_bytes(8, "little", signed=True) for at in range(seat + NOTE, seat + SEAT)])
    return text.partition(b"\0")[0].decode("utf-8", "replace")
