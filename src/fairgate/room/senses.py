"""What a process sees of the owners of seats: are they dead, or stopped? What cannot be seen counts as alive."""

import os
from collections.abc import Iterable

from fairgate.room import system
from fairgate.room.bell import path_of
from fairgate.room.calls import DEAD, REMOVED, UNSEEN, is_stopped, open_to_ring
from fairgate.room.layout import ASKED, BOOT, FREE, GROUP, INSIDE, NAMESPACE, OWNER, PID, STATE
from fairgate.room.links import Table


class LiveSenses:
    def __init__(self, folder: str) -> None:
        """`folder` has the bells."""
        self.folder = folder
        self.namespace = system.pid_namespace()
        self.dead: set[int] = set()  # owners whose bells are still there

    def is_visible(self, m: Table, seat: int) -> bool:
        """Does the process id of this seat mean anything here?"""
        return m[seat + NAMESPACE] == self.namespace

    def is_gone(self, m: Table, seat: int) -> bool:
        fd = open_to_ring(path_of(self.folder, m[seat + OWNER]))
        if fd >= 0:
            os.close(fd)
            return False
        if fd == UNSEEN:
            return False
        if fd == DEAD:
            self.dead.add(m[seat + OWNER])
        visible = self.is_visible(m, seat)
        if fd == REMOVED and not (visible and not system.is_alive(m[seat + PID])):
            return False
        if m[seat + STATE] == INSIDE and m[seat + GROUP]:
            return visible and not system.is_populated(m[seat + GROUP])
        return fd == DEAD or visible

    def living(self, m: Table, seats: Iterable[int]) -> list[int]:
        """Those of these seats whose owners may be alive, or have left processes inside, in any time namespace."""
        taken = [seat for seat in seats if m[seat + STATE] != FREE]
        if system.is_this_boot(m[BOOT]):
            return [seat for seat in taken if not self.is_gone(m, seat)]
        return [seat for seat in taken if self.is_heard(m, seat)]

    def is_heard(self, m: Table, seat: int) -> bool:
        """May anybody have the bell of this seat? That is all that is known of the processes of another boot."""
        fd = open_to_ring(path_of(self.folder, m[seat + OWNER]))
        if fd >= 0:
            os.close(fd)
        return fd not in (DEAD, REMOVED)

    def is_stopped(self, m: Table, seat: int) -> bool:
        return self.is_visible(m, seat) and is_stopped(m[seat + PID])

    def is_left_behind(self, m: Table, seat: int) -> bool:
        """Is the process of this seat dead, if the seat is not gone? Then others have inherited its bell.

        Meanwhile another process may have got its id, but that one has started later.
        """
        pid = m[seat + PID]
        return self.is_visible(m, seat) and (not system.is_alive(pid) or system.started(pid) > m[seat + ASKED])
