"""Pins: a process keeps the k of a gate while nobody uses it, for `fairgate peer`."""

from fairgate.room import rules
from fairgate.room.bell import Bell
from fairgate.room.room import Room
from fairgate.room.table import Change


def pin(room: Room) -> None:
    """The gate counts as in use until the room is closed or this process is dead. Raises KMismatch as Room() does."""
    bell = room.new_bell()
    room.change(lambda change: sit(room, change, bell))


def sit(room: Room, change: Change, bell: Bell) -> None:
    room.desk.agree(change)
    room.desk.check_linked(change)
    if not rules.pin(room.file.m, change, room.desk, *room.desk.identity(bell)):
        room.file.grow()
        rules.pin(room.file.m, change, room.desk, *room.desk.identity(bell))
