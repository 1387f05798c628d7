"""What a room of a cluster needs of its peer (guest_room.py)."""

from typing import Protocol

from fairgate.live.engine import LiveEngine


class RoomOwner(Protocol):
    """All rooms of the cluster on this host."""

    engine: LiveEngine
    draining: bool
