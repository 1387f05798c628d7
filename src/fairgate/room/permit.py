"""Permits: the right to be inside a gate."""

from __future__ import annotations

import os

from fairgate.errors import FairgateError, GateStuck, ReentrantCall
from fairgate.room import bell as bells
from fairgate.room import keeping, links, rules, table
from fairgate.room.calls import clock, read_tickets
from fairgate.room.desk import Desk, Visit
from fairgate.room.layout import DEADLINE, FENCE, GROUP, INSIDE, PROMISED, STATE, TICKET
from fairgate.room.table import Change, Step
from fairgate.room.words import ATOMIC

MARGIN = 1_000_000  # ns: a lease that ends later than this is not about to be revoked


class Permit(Step):
    """One or more slots, and a fence. Get it from `Room.acquire`."""

    def __init__(self, visit: Visit) -> None:
        m = visit.desk.file.m
        seat: int = visit.seat
        self.desk: Desk = visit.desk
        self.visit = visit
        self.seat: int = seat
        self.ticket: int = m[seat + TICKET]
        self.fence: int = m[seat + FENCE]
        self.slots: tuple[int, ...] = links.shown_slots(m, seat)
        self.follows: bool = self.fence == visit.fence + 1  # nobody else has entered in between
        visit.fence = self.fence
        self.released = False
        self.shared = False
        self.why = ""  # it was lost

    def is_valid(self) -> bool:
        """False once it was released or revoked, or its lease is over."""
        m = self.desk.file.m
        mine = m[self.seat + TICKET] == self.ticket and m[self.seat + STATE] == INSIDE
        return mine and not self.released and not 0 < links.end_of(m, self.seat) <= clock()

    def deadline(self) -> int:
        """When the lease ends, in ns on CLOCK_BOOTTIME; 0 if there is none."""
        m = self.desk.file.m
        return m[self.seat + DEADLINE] if m[self.seat + TICKET] == self.ticket else 0

    def promised(self) -> int:
        """Until when the peer of its cluster has promised the slot. It raises that again and again; 0: for good."""
        m = self.desk.file.m
        return m[self.seat + PROMISED] if m[self.seat + TICKET] == self.ticket else 0

    def why_lost(self) -> str:
        """Why it ended before it was released; empty if it did not."""
        self.desk.check_process()
        if not self.why and not self.released and not self.is_valid():
            if 0 < self.deadline() <= clock():
                self.why = "its lease has expired"
            elif 0 < self.promised() <= clock():
                self.why = "the peer of this host has not renewed its lease in the cluster"
            elif self.desk.is_closed():
                self.why = self.desk.closed
            else:
                self.why = "it was revoked"
        return self.why

    def extend(self, nanoseconds: int) -> bool:
        """The lease ends this far from now. Returns False if the permit is not valid any more.

        The lock is needed only if the lease ends just now: otherwise nobody else stores or uses the deadline.
        """
        self.desk.check_open()
        before = self.deadline()
        if before and before - clock() < MARGIN:
            return self.desk.change(lambda change: self.extended(change, nanoseconds))
        if not self.is_valid():
            return False
        table.extend(self.desk.file.m, self.seat, clock() + nanoseconds)
        if before and before - clock() < MARGIN:  # this process was stopped meanwhile
            return self.desk.change(lambda change: self.extended(change, nanoseconds))
        return True

    def extended(self, change: Change, nanoseconds: int) -> bool:
        if self.is_valid():
            table.extend(self.desk.file.m, self.seat, change.now + nanoseconds)
            return True
        return False

    def fileno(self) -> int:
        """A descriptor that can be read when `is_valid` should be asked. `rung` must be called before the next wait."""
        return self.visit.bell.fd

    def rung(self) -> None:
        read_tickets(self.visit.bell.fd)

    def share(self) -> int:
        """The descriptor that a command should inherit: while any process has it, the slots stay taken."""
        bell = self.visit.bell
        bells.ours.discard(bell)
        self.desk.bells.remove(bell)  # from now on it belongs to the command
        self.shared = True
        os.set_inheritable(bell.fd, True)
        return bell.fd

    def hand_to(self, group: int) -> None:
        """The command is this process group. If all of its processes close the bell, the group counts instead.

        It is a single store into a seat that nobody else changes, so it needs no lock. A forked child may call it,
        before it becomes the command: even if its parent is killed at that moment, no process is overlooked.
        """
        self.desk.file.m[self.seat + GROUP] = group

    def leave_to_command(self) -> None:
        """The command has ended: release the slots, unless processes that it started have its bell or are its group.

        Those keep the slots until the last of them has ended, even after this process.
        """
        if not self.released:
            self.released = True
            self.desk.change(self.left_to_command)

    def left_to_command(self, change: Change) -> None:
        """With the lock, because a waiter that watches the bell looks as soon as it is closed."""
        m = self.desk.file.m
        bell = self.visit.bell
        bell.close(remove=False)
        if m[self.seat + STATE] != INSIDE or self.desk.is_gone(self.seat):
            rules.leave(m, change, self.seat, self.ticket)
            bell.remove()
            self.desk.senses.dead.discard(bell.owner)

    def release(self) -> None:
        """Releasing twice is a no-op."""
        if self.desk.file.fd < 0:
            self.desk.check_process()
        elif not self.released:  # an interrupted release can be repeated
            visit = self.visit
            if visit.keeps and keeping.rest(self.desk.file.m, self.seat, self.fence, visit.endings):
                self.released = True
                self.desk.spare.append(visit)
                return
            visit.keeps = False
            if not self.is_valid():
                self.why_lost()
            late = self.give_back()
            self.released = True
            self.end()
            if late is not None:
                raise late

    def give_back(self) -> BaseException | None:
        """Returns the interrupt that came meanwhile."""
        try:
            self.desk.change(self)
            return None
        except ReentrantCall:
            self.desk.postpone(self)
            return None
        except GateStuck:
            self.desk.drop(self.visit.bell)
            return None
        except FairgateError:
            raise
        except BaseException as interrupt:
            self.give_back_again()
            return interrupt

    def give_back_again(self) -> None:
        try:
            self.desk.finish(self)
        except GateStuck:
            self.desk.drop(self.visit.bell)

    def run(self, change: Change) -> bool:
        """The step that releases it. A process that is alone keeps its slot."""
        m = self.desk.file.m
        visit = self.visit
        if ATOMIC and self.follows and not (self.shared or visit.note) and keeping.is_alone(m, self.seat, self.ticket):
            visit.endings = keeping.keep(m, self.seat)
            visit.keeps = True
        else:
            rules.leave(m, change, self.seat, self.ticket)
        return True

    def end(self) -> None:
        """Its bell can be used for another request, unless a command has it."""
        bell = self.visit.bell
        if self.shared:
            bell.close()
        elif bell.fd >= 0:
            self.desk.spare.append(self.visit)
