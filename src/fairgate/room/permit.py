"""Permits: the right to be inside a gate."""

from __future__ import annotations

import os

from fairgate.arguments import LONG_AGO
from fairgate.errors import FairgateError, GateClosed, GateStuck, ReentrantCall
from fairgate.room import bell as bells
from fairgate.room import keeping, links, rules, table
from fairgate.room.calls import clock, read_tickets
from fairgate.room.desk import Desk, Visit
from fairgate.room.layout import DEADLINE, GRANTED_BY, GROUP, INSIDE, LOST, PEER, PROMISED, SINCE, STATE, TICKET
from fairgate.room.table import Change, Step
from fairgate.room.words import ATOMIC

MARGIN = 1_000_000  # ns: a lease that ends later than this is not about to be revoked


class Permit(Step):
    """One or more slots, and a fence. Get it from `Room.acquire`."""

    def __init__(self, visit: Visit) -> None:
        """It has what the request was granted. The table is not read: its seat may be another request's by now."""
        self.desk: Desk = visit.desk
        self.visit = visit
        self.seat: int = visit.seat
        self.ticket: int = visit.ticket
        self.fence: int = visit.fence
        self.slots: tuple[int, ...] = visit.slots
        self.follows: bool = visit.follows
        self.released = False  # its user has released it
        self.ended = False  # that was done: it has left the table, or its slot is kept
        self.shared = False
        self.why = ""  # it was lost

    def is_valid(self) -> bool:
        """False once it was released or revoked, or its lease is over."""
        m = self.desk.file.m
        until = links.end_of(m, self.seat)
        inside = m[self.seat + STATE] == INSIDE
        return inside and self.has_seat() and not self.released and not 0 < until <= clock()

    def has_seat(self) -> bool:
        """False if another thread has closed the room, or this is a forked child. Then what was read before is void."""
        return self.desk.file.m[self.seat + TICKET] == self.ticket and not self.desk.forked

    def deadline(self) -> int:
        """When the lease ends, in ns on CLOCK_BOOTTIME; 0 if there is none."""
        deadline: int = self.desk.file.m[self.seat + DEADLINE]
        return deadline if self.has_seat() else 0

    def safe_until(self) -> int:
        """When it ends if nothing else happens, by its lease or by what the peer of its cluster has promised; or 0.

        `LONG_AGO` once it has ended, and in a forked child.
        """
        m = self.desk.file.m
        until = links.end_of(m, self.seat)
        inside = m[self.seat + STATE] == INSIDE
        return until if inside and self.has_seat() and not self.released else LONG_AGO

    def promised(self) -> int:
        """Until when the peer of its cluster has promised the slot. It raises that again and again; 0: for good."""
        promised: int = self.desk.file.m[self.seat + PROMISED]
        return promised if self.has_seat() else 0

    def why_lost(self) -> str:
        """Why it ended before it was released; empty if it did not."""
        self.desk.check_process()
        if not self.why and not self.released and not self.is_valid():
            ended = self.ended_at()
            if 0 < self.deadline() <= ended:
                self.why = "its lease has expired"
            elif 0 < self.promised() <= ended:
                self.why = "the peer of this host has not renewed its lease in the cluster"
            elif self.why_closed():
                self.why = self.why_closed()
            elif self.desk.file.m[self.seat + GRANTED_BY] not in (0, self.desk.file.m[PEER]):
                self.why = "the standing peer of this host has left the cluster"
            else:
                self.why = "it was revoked"
        return self.why

    def ended_at(self) -> int:
        """When it was revoked, by which the reason is judged: leases may end afterwards. The present if it was not."""
        m = self.desk.file.m
        ended: int = m[self.seat + SINCE] if m[self.seat + STATE] == LOST else clock()
        return ended if self.has_seat() else clock()

    def why_closed(self) -> str:
        """Why the gate is closed, from the first moment of the close: permits end in the middle of it. Else empty."""
        return self.desk.closed

    def extend(self, nanoseconds: int) -> bool:
        """The lease ends this far from now. Returns False if the permit is not valid any more.

        The lock is needed only if the lease ends just now: otherwise nobody else stores or uses the deadline. But no
        other thread may close the room meanwhile: the store could end another request's permit.
        """
        self.desk.check_open()
        before = self.deadline()
        if not before or before - clock() >= MARGIN:
            try:
                extended = self.desk.exclude_changes(lambda: self.extended(clock() + nanoseconds))
            except ReentrantCall:  # a signal handler: the thread that would change something is interrupted by it
                extended = self.extended(clock() + nanoseconds)
            if not extended or not before or before - clock() >= MARGIN:  # else this process was stopped meanwhile
                return extended
        return self.desk.change(lambda change: self.extended(change.now + nanoseconds))

    def extended(self, deadline: int) -> bool:
        valid = self.is_valid()
        if valid:
            table.extend(self.desk.file.m, self.seat, deadline)
        return valid

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
        if not self.has_seat() or m[self.seat + STATE] != INSIDE or self.desk.is_gone(self.seat):
            rules.leave(m, change, self.seat, self.ticket)
            bell.remove()
            self.desk.senses.dead.discard(bell.owner)

    def release(self) -> None:
        """Releasing twice is a no-op, also if two threads do it at once."""
        if self.desk.file.fd < 0:
            self.desk.check_process()
        elif not self.released:  # an interrupted release can be repeated
            visit = self.visit
            if visit.keeps and keeping.rest(self.desk.file.m, self.seat, self.fence, visit.endings):
                self.released = self.ended = True
                self.desk.spare.append(visit)
                return
            if not self.is_valid():
                self.why_lost()
            late = self.give_back()
            self.released = True
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
        except GateClosed:  # meanwhile, by another thread
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
        """The step that releases it, once: its visit may have another permit afterwards, of the same seat and ticket.

        A process that is alone keeps its slot.
        """
        if self.ended:
            return False
        m = self.desk.file.m
        visit = self.visit
        visit.keeps = False
        if ATOMIC and self.follows and not (self.shared or visit.note) and keeping.is_alone(m, self.seat, self.ticket):
            visit.endings = keeping.keep(m, self.seat)
            visit.keeps = True
        else:
            rules.leave(m, change, self.seat, self.ticket)
        self.ended = True
        self.end()
        return True

    def end(self) -> None:
        """Its bell can be used for another request, unless a command has it."""
        bell = self.visit.bell
        if self.shared:
            bell.close()
        elif bell.fd >= 0:
            self.desk.spare.append(self.visit)
