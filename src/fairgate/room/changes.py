"""Changes of one gate's table by one process: lock, repair, do one step, unlock, and ring the bells of others."""

from __future__ import annotations

import os
from contextlib import suppress

from fairgate.errors import BadInput, FairgateError, ForkedPeer, GateClosed, ReentrantCall
from fairgate.room import calls, links, rules, table
from fairgate.room.bell import path_of
from fairgate.room.calls import UNSEEN, Exclusive, clock
from fairgate.room.file import RoomFile
from fairgate.room.layout import (
    CAPACITY,
    DIRTY,
    FREE,
    INSIDE,
    KEPT,
    LIMIT,
    LOST,
    OWNER,
    PEER_BELL,
    REFUSED,
    SEATS,
    STATE,
    STOP,
    TICKET,
    TURNS,
    WAITING,
)
from fairgate.room.links import DAMAGE
from fairgate.room.senses import LiveSenses
from fairgate.room.table import Change, Step

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

MOST_OPEN = 64  # bells of others that are kept open for ringing
SEATS_PER_DEATH = 64
ATTEMPTS = 3
NOBODY: list[tuple[int, int]] = []
NO_BELLS: list[str] = []


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
        self.doorbell = 0  # of the peer of a cluster, for a gate that it has not seen yet
        self.is_peer = False  # this process lets others in

    def check_open(self) -> None:
        if self.file.fd < 0:
            self.check_process()
            raise GateClosed(self.closed or f"gate {self.gate} is closed")

    def check_process(self) -> None:
        if self.forked:
            raise ForkedPeer(f"gate {self.gate} was opened by another process: open it again after a fork")

    def is_closed(self) -> bool:
        return self.file.fd < 0

    def change_alone(self, step: Callable[[Change], T], patience: int) -> T:
        """With the mutex.

        An interrupt, such as Ctrl-C, may come at any moment. Then the table is made whole again, and the request that
        the step made is ended.
        """
        file = self.file
        if file.fd < 0:
            self.check_open()
        change = self.current
        usable = False
        file.locked = True  # an interrupt may come at any moment: unlocking in vain is harmless
        try:
            if not calls.try_lock(file.fd):
                file.wait_for_lock(patience)
            change.begin(clock())
            m = file.m
            m[TURNS] = (m[TURNS] + 1) % LIMIT
            if m[DIRTY] or m[KEPT] or m[STOP] or m[SEATS] != file.seats or m[CAPACITY] != file.capacity:
                file.prepare(change)
            usable = True
            try:
                if isinstance(step, Step):
                    known: Step = step
                    result: Any = known.run(change)
                else:
                    result = step(change)
                told = self.to_ring(change) if change.woken or change.called else NOBODY
            except DAMAGE as wrong:
                result = self.repeated(change, step, wrong)
                told = self.to_ring(change)
            file.check_whole()
            self.tell(told)
            return result  # type: ignore[no-any-return]  # a Step returns a bool
        except BaseException:
            if usable:
                file.take_lock()  # it may have been unlocked already
                self.tell(self.undone(change))
            raise
        finally:
            if file.locked:
                file.unlock()

    def repeated(self, change: Change, step: Callable[[Change], T], wrong: Exception) -> T:
        """Do the step again, after rebuilding a table that was damaged from outside."""
        self.file.check_whole()
        if isinstance(wrong, BadInput):  # which is a ValueError
            raise wrong
        change.woken.clear()
        self.file.rebuild(change)
        rules.withdraw(self.file.m, change)  # the first attempt may have made a request
        try:
            return step(change)
        except BadInput:
            raise
        except DAMAGE as again:
            raise BadInput(f"{self.file.path} is damaged ({again!r}): remove it") from again

    def undone(self, change: Change) -> list[tuple[int, int]]:
        """After a step that failed: make the table whole, end the request of that step. Returns whom to ring."""
        try:
            if self.file.m[DIRTY]:
                self.file.rebuild(change)
            rules.withdraw(self.file.m, change)
            return self.to_ring(change)
        except DAMAGE:
            return []

    def tell(self, told: list[tuple[int, int]]) -> None:
        """Unlock, and wake those whom the change concerns."""
        unused = self.unused_bells() if self.senses.dead else NO_BELLS
        file = self.file
        calls.unlock(file.fd)
        file.locked = False
        for owner, ticket in told:
            self.ring(owner, ticket)
        for path in unused:
            with suppress(OSError):  # another process was faster, or only its owner may remove it
                os.unlink(path)
        if file.m[STOP]:
            file.stop_again()

    def refuse(self) -> None:
        raise ReentrantCall(
            f"gate {self.gate}: a signal handler can only release permits, or close the gate, in the middle of a change"
        )

    def catch_up(self) -> None:
        """What signal handlers have asked for in the middle of a change."""
        while self.postponed:
            with suppress(FairgateError):
                self.postponed.pop(0)()

    def finish(self, step: Callable[[Change], object]) -> BaseException | None:
        """Do a step that ends something, even if an interrupt comes meanwhile. Returns the interrupt."""
        late = None
        for attempt in range(ATTEMPTS):
            try:
                self.change(step)
                break
            except ReentrantCall:
                self.postpone(step)
                break
            except FairgateError:
                raise
            except BaseException as interrupt:
                if attempt == ATTEMPTS - 1:
                    raise
                late = interrupt
        return late

    def postpone(self, step: Callable[[Change], object]) -> None:
        self.postponed.append(lambda: self.change(step))

    # What this process sees of others.

    def is_gone(self, seat: int) -> bool:
        return self.senses.is_gone(self.file.m, seat)

    def is_stopped(self, seat: int) -> bool:
        return self.senses.is_stopped(self.file.m, seat)

    def unused_bells(self) -> list[str]:
        """The bells of the dead, except for those that still have a seat: the bell shows that they are dead.

        All seats have to be read for this, so a large table waits for several deaths. What is left is swept some day.
        """
        m = self.file.m
        if m[SEATS] > SEATS_PER_DEATH * len(self.senses.dead):
            return []
        seated = {m[seat + OWNER] for seat in links.all_seats(m) if m[seat + STATE] != FREE}
        unused = [path_of(self.folder, owner) for owner in self.senses.dead - seated]
        self.senses.dead.clear()
        return unused

    # Ringing.

    def to_ring(self, change: Change) -> list[tuple[int, int]]:
        """Owner and ticket of those to wake; the ticket is negative if they only have to look again."""
        m = self.file.m
        seats = change.woken if len(change.woken) == 1 else table.in_order(m, change.woken)
        told = []
        for seat in seats:
            state = m[seat + STATE]
            if state in (WAITING, REFUSED):
                told.append((m[seat + OWNER], -m[seat + TICKET]))
            elif state in (INSIDE, LOST):
                told.append((m[seat + OWNER], m[seat + TICKET]))
        if change.called and not self.is_peer:
            told += [(m[PEER_BELL] or self.doorbell, ticket) for ticket in change.called]
        return told

    def ring(self, owner: int, ticket: int) -> None:
        """Ring a bell. If nobody hears it, no further step is needed: the next waiter watches its owner.

        If it cannot be rung, the tick of another waiter does it later (rules.remind).
        """
        fd = self.lines.get(owner)
        if fd is None:
            fd = calls.open_to_ring(path_of(self.folder, owner))
            if fd == UNSEEN and self.lines:  # perhaps too many files are open
                self.close_lines()
                fd = calls.open_to_ring(path_of(self.folder, owner))
            if fd < 0:
                return
            if len(self.lines) >= MOST_OPEN:
                os.close(self.lines.pop(next(iter(self.lines))))
            self.lines[owner] = fd
        try:
            heard = calls.ring(fd, ticket)
        except (OSError, OverflowError):  # a damaged ticket
            heard = False
        if not heard:
            os.close(self.lines.pop(owner))

    def close_lines(self) -> None:
        while self.lines:
            os.close(self.lines.popitem()[1])
