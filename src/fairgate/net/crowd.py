"""What those that have proved to be the same principal (principal.py) may use together of a peer.

A member of the cluster may open any number of connections, each with an id that nobody has, and on each of them begin
a large frame, or ask without reading the answers. So three things are bounded for each principal. Where a limit is
reached, the oldest goes, as with strangers (listening.py): newcomers and inspectors need a moment.

- Connections that are up whose ids are not members'. Those of members are as few as the roster lists.
- The sum of large frames that have begun to arrive, as their senders have announced them. Members keep theirs as long
  as there are others.
- Connections, except those of members, on which much is queued that the other side does not read.

All who know the secret are one principal, and so are all without TLS: more of them may come at the same time.
"""

import logging
from typing import Protocol

from fairgate.net.connection import Connection
from fairgate.net.pipe import LARGE
from fairgate.net.principal import NOTHING, SECRET

MOST_OUTSIDERS = 128  # hosts may start a hundred commands at once
MOST_OUTSIDERS_SHARED = 512
MOST_LARGE = 1 << 25  # bytes
MOST_FULL = 16  # connections: on each of them 16 MiB may be queued (connection.py)


class CrowdOwner(Protocol):
    """What this module needs of the transport."""

    connections: set[Connection]
    up: dict[int, Connection]

    def is_member(self, peer: int) -> bool: ...


class Crowd:
    def __init__(self, owner: CrowdOwner) -> None:
        self.owner = owner
        self.large: list[Connection] = []  # with a large frame under way, the oldest first
        self.full: list[Connection] = []  # with much that is not read, the oldest first

    def outsiders(self, connections: list[Connection]) -> list[Connection]:
        return [each for each in connections if not self.owner.is_member(each.peer)]

    def came_up(self, connection: Connection) -> None:
        shared = connection.principal in (NOTHING, SECRET)
        most = MOST_OUTSIDERS_SHARED if shared else MOST_OUTSIDERS
        same = [each for each in self.owner.up.values() if each.principal == connection.principal and each.dial is None]
        if len(same) <= most:
            return
        outsiders = self.outsiders(same)
        for each in outsiders[: max(len(outsiders) - most, 0)]:
            each.drop(f"{most} others with the same key or user came after it", logging.WARNING)

    def begun(self, connection: Connection) -> None:
        """Part of a large frame has arrived."""
        large = dict.fromkeys([*self.large, connection])
        self.large = [each for each in large if each in self.owner.connections and each.decoder.need > LARGE]
        same = [each for each in self.large if each.principal == connection.principal]
        excess = sum([each.decoder.need for each in same]) - MOST_LARGE
        for each in sorted(same, key=lambda one: self.owner.is_member(one.peer)):
            if excess <= 0:
                break
            excess -= each.decoder.need
            each.drop("too many large frames with the same key or user are under way", logging.WARNING)

    def filled(self, connection: Connection) -> None:
        """The other side reads more slowly than we send."""
        full = dict.fromkeys([*self.full, connection])
        self.full = [each for each in full if each in self.owner.connections and each.full]
        same = [each for each in self.full if each.principal == connection.principal]
        outsiders = self.outsiders(same)
        for each in outsiders[: max(len(outsiders) - MOST_FULL, 0)]:
            each.drop(f"it does not read, nor do {MOST_FULL} others with the same key or user", logging.WARNING)
