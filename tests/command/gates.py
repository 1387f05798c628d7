"""What a test sees of a gate of this host: its requests, read from its room."""

from __future__ import annotations

from fairgate.room.listing import Listed
from fairgate.room.place import locate
from fairgate.room.room import Room
from tests.live.commands import until


def requests(name: str) -> list[Listed]:
    """Everyone at the gate: the holders by slot, then the waiters in order."""
    with Room(*locate(name)) as room:
        return room.requests()


def holders(name: str) -> list[Listed]:
    return [one for one in requests(name) if one.inside]


def waiters(name: str) -> list[Listed]:
    return [one for one in requests(name) if not one.inside]


def until_waiting(name: str, count: int = 1) -> list[Listed]:
    """Until this many requests wait. Returns them."""
    found: list[Listed] = until(lambda: len(waiting := waiters(name)) == count and waiting)
    return found


def until_inside(name: str, count: int = 1) -> list[Listed]:
    found: list[Listed] = until(lambda: len(inside := holders(name)) == count and inside)
    return found


def revoke(name: str, slot: int) -> None:
    """As `fairgate break` does it."""
    with Room(*locate(name)) as room:
        assert room.revoke(slot)
