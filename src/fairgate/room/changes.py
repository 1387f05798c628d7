"""Changes of one gate's table by one process: lock, repair, do one step, unlock, and ring the bells of others."""

from __future__ import annotations

import os
from contextlib import suppress

from fairgate.errors import BadInput, ForkedPeer, GateClosed
from fairgate.room import calls, links, rules, table
from fairgate.room.bell import path_of
from fairgate.room.calls import Exclusive, clock
from fairgate.room.file import RoomFile
from fairgate.room.layout import FREE, INSIDE, LOST, OWNER, STATE, TICKET
from fairgate.room.links import CorruptTable
from fairgate.room.senses import LiveSenses
from fairgate.room.table import Change

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

MOST_OPEN = 64  # bells of others that are kept open for ringing
DAMAGE = (CorruptTable, IndexError, OverflowError, ValueError)  # an index or a number that no change has stored


class Changes(Exclusive):
    """What a process needs to change a table. `change(step)` does one step, and wakes whom it concerns."""

    def __init__(self, folder: str, gate: str, file: RoomFile) -> None:
        Exclusive.__init__(self)
        self.folder = folder
        self.gate = gate
        self.file = file
        self.closed = ""  # why
        self.pid: int = os.getpid()
        self.forked = False
        self.senses = LiveSenses(folder)
        self.lines: dict[int, int] = {}  # by owner: the writing end of its bell; only under the mutex
        self.current = Change(0, self.is_stopped)

    def check_open(self) -> None:
        self.check_process()
        if self.file.fd < 0:
            raise GateClosed(self.closed or f"gate {self.gate} is closed")

    def check_process(self) -> None:
        if self.forked:
            raise ForkedPeer(f"gate {self.gate} was opened by another process: open it again after a fork")

    def is_closed(self) -> bool:
        return self.file.fd < 0

    def change_alone(self, step: Callable[[Change], T]) -> T:
        """With the mutex."""
        self.check_open()
        try:
            self.file.take_lock()
            return self.locked(step)
        finally:
            if self.file.locked:
                self.file.unlock()

    def locked(self, step: Callable[[Change], T]) -> T:
        """With the mutex and the lock. Returns without the lock."""
        change = self.current
        change.begin(clock())
        self.file.prepare(change)
        result, told = self.with_repair(change, step)
        unused = self.unused_bells() if self.senses.dead else []
        self.file.unlock()
        for owner, ticket in told:
            self.ring(owner, ticket)
        for path in unused:
            with suppress(OSError):  # another process was faster, or only its owner may remove it
                os.unlink(path)
        self.file.stop_again()
        return result

    def with_repair(self, change: Change, step: Callable[[Change], T]) -> tuple[T, list[tuple[int, int]]]:
        """Do the step: its result, and whom to ring. A table that was damaged from outside is rebuilt first."""
        for attempt in range(2):
            try:
                return step(change), self.to_ring(change)
            except BadInput:
                raise
            except DAMAGE as wrong:
                if attempt:
                    raise BadInput(f"{self.file.path} is damaged ({wrong!r}): remove it") from wrong
                change.woken.clear()
                self.file.rebuild(change)
                rules.withdraw(self.file.m, change)  # the first attempt may have made a request
        raise AssertionError

    def store(self, at: int, value: int) -> None:
        self.file.m[at] = value

    # What this process sees of others.

    def is_gone(self, seat: int) -> bool:
        return self.senses.is_gone(self.file.m, seat)

    def is_stopped(self, seat: int) -> bool:
        return self.senses.is_stopped(self.file.m, seat)

    def unused_bells(self) -> list[str]:
        """The bells of the dead, except for those that still have a seat: the bell shows that they are dead."""
        m = self.file.m
        seated = {m[seat + OWNER] for seat in links.all_seats(m) if m[seat + STATE] != FREE}
        unused = [path_of(self.folder, owner) for owner in self.senses.dead - seated]
        self.senses.dead.clear()
        return unused

    # Ringing.

    def to_ring(self, change: Change) -> list[tuple[int, int]]:
        """Owner and ticket of those to wake; the ticket is negative if they only have to look again."""
        if not change.woken:
            return []
        m = self.file.m
        return [
            (m[seat + OWNER], m[seat + TICKET] if m[seat + STATE] in (INSIDE, LOST) else -m[seat + TICKET])
            for seat in table.in_order(m, change.woken)
        ]

    def ring(self, owner: int, ticket: int) -> None:
        """Ring a bell. If nobody hears it, no further step is needed: the next waiter watches its owner."""
        fd = self.lines.get(owner)
        if fd is None:
            fd = calls.open_to_ring(path_of(self.folder, owner))
            if fd < 0:
                return
            if len(self.lines) >= MOST_OPEN:
                os.close(self.lines.pop(next(iter(self.lines))))
            self.lines[owner] = fd
        if not calls.ring(fd, ticket):
            os.close(self.lines.pop(owner))
