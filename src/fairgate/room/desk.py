"""How one process makes requests, and waits until they are let in."""

from __future__ import annotations

import os

from fairgate.errors import BadInput, GateClosed, KMismatch
from fairgate.room import keeping, links, rules, table
from fairgate.room.bell import Bell
from fairgate.room.calls import FOREVER, clock
from fairgate.room.changes import Changes
from fairgate.room.file import RoomFile
from fairgate.room.layout import (
    ASKED_K,
    CLUSTER,
    EXPECTED_K,
    FENCE,
    LENDER,
    PROTOCOL,
    REFUSED,
    SLOT,
    STATE,
    TICKET,
    WAITING,
    K,
)
from fairgate.room.notes import read_note, write_note, write_text
from fairgate.room.rules import Duties, Request
from fairgate.room.table import Change

MOST_SECONDS = 1e9
LINKED = 10_000_000  # ns: how often every request makes sure that the file was not removed
GHOST_TICK = 20_000_000  # ns: how often to look for processes that a dead holder has left inside


class Desk(Changes):
    """What a process needs to make requests."""

    def __init__(self, folder: str, gate: str, k: int, file: RoomFile) -> None:
        Changes.__init__(self, folder, gate, file)
        self.k = k
        self.user: int = os.geteuid()
        self.linked = 0  # when the file was there last
        self.bells: list[Bell] = []
        self.spare: list[Visit] = []  # those that no request uses
        self.protocol = ""  # that its requests expect of a cluster, if any

    def agree(self, change: Change) -> None:
        """Raises KMismatch if the gate is in use with another k. An unused gate takes this one."""
        m = self.file.m
        if self.k and self.k != m[K]:
            if self.k != m[ASKED_K] and links.is_in_use(m):
                rules.bury_all(m, change, self)
            if not links.is_in_use(m):
                m[K] = m[ASKED_K] = self.k
            elif self.k != m[ASKED_K]:  # else it was resized
                raise KMismatch(self.gate, self.k, m[K])

    def some_visit(self) -> Visit:
        try:
            return self.spare.pop()
        except IndexError:
            return Visit(self, self.new_bell())

    def new_bell(self) -> Bell:
        bell = Bell(self.folder)
        self.bells.append(bell)
        return bell

    def identity(self, bell: Bell) -> tuple[int, int, int, int]:
        return bell.owner, self.pid, self.senses.namespace, self.user

    def check_linked(self, change: Change) -> None:
        """Those who come later create a new file, and would not meet anybody in this one."""
        if not self.file.is_linked():
            raise GateClosed(f"gate {self.gate}: its file {self.file.path} was removed")
        self.linked = change.now

    def enter(self, visit: Visit, timeout: float | None, permits: int, lease: float | None, note: str) -> bool:
        """Make a request, and wait until it is inside. False if the time is over."""
        until = FOREVER if timeout is None else clock() + nanoseconds(timeout, "timeout")
        if visit.keeps and permits == 1 and not lease and not note and self.enter_again(visit):
            return True
        bell = visit.bell
        bell.busy = True
        try:
            if visit.keeps:
                visit.keeps = False
                self.change(visit.leave)  # the seat may count as inside
            visit.want(permits, lease, note)
            return self.change(visit) or self.wait(visit, until)
        finally:
            bell.busy = False

    def enter_again(self, visit: Visit) -> bool:
        """Enter without the lock, if this process has kept its slot. It still notices if the file was removed."""
        now = clock()
        if self.file.fd < 0 or now - self.linked > LINKED:
            return False
        if not keeping.enter(self.file.m, visit.seat, visit.fence, visit.endings, now):
            return False
        self.file.check_whole()  # of a file that was cut off, the header may be left
        visit.fence += 1
        visit.follows = True
        return True

    def drop(self, bell: Bell) -> None:
        """End the requests of this bell without the lock: its owner counts as dead."""
        if bell in self.bells:
            self.bells.remove(bell)
        bell.close(remove=False)

    def wait(self, visit: Visit, until: int) -> bool:
        """True if the request is inside. False if the time is over: its seat is free again."""
        bell = visit.bell
        unwatched: set[int] = set()
        visit.suspects = bell.watch(visit.duties.owners)
        while True:
            tickets: list[int] = []
            if not visit.suspects:
                tickets, visit.suspects = bell.wait(min(visit.duties.when, until) - clock())
            if visit.ticket in tickets:  # the process that rang also rings all others that are concerned
                self.exclude_changes(visit.take_rung)  # else another thread may close the room meanwhile
                return True
            visit.late = until < FOREVER and clock() >= until
            visit.tick = not tickets and not visit.suspects
            if visit.tick:
                visit.suspects = unwatched
            if self.change(visit):
                return visit.inside
            owners = visit.duties.owners
            visit.suspects = bell.watch(owners) - visit.suspects  # those just looked at have left processes inside
            unwatched = owners - bell.watched
            if unwatched and not visit.suspects:
                visit.duties.when = min(visit.duties.when, clock() + GHOST_TICK)


class Visit(Request):
    """A request: its bell, and once it was made, its seat and what to watch. It can be used again afterwards."""

    def __init__(self, desk: Desk, bell: Bell) -> None:
        Request.__init__(self, bell.owner, desk.pid, desk.senses.namespace, desk.user, 1, 0)
        self.desk = desk
        self.bell = bell
        self.note = ""
        self.seat = 0
        self.ticket = 0
        self.inside = False
        self.duties = Duties(set(), 0)
        self.suspects: set[int] = set()  # owners that the kernel reported dead
        self.tick = False  # nothing has happened: it looks on its own
        self.late = False  # the time is over
        self.fence = 0  # of its last entry
        self.slots: tuple[int, ...] = ()  # of its last entry
        self.follows = False  # nobody else has entered between its last entry and the one before
        self.keeps = False  # its slot: see keeping.py
        self.endings = 0  # that there had been then

    def want(self, permits: int, lease: float | None, note: str) -> None:
        """A new request, and what to ask for. Raises BadInput if the lease is not one."""
        self.seat = self.ticket = 0
        self.permits = permits
        self.lease = nanoseconds(lease, "lease") if lease else 0
        self.note = note

    def run(self, change: Change) -> bool:
        """Returns whether its waiting is over. A change that is repeated has taken its first request back."""
        return self.look(change) if self.seat and self.ticket != change.ticket else self.ask(change)

    def ask(self, change: Change) -> bool:
        """The step that makes the request. Returns whether it is inside already."""
        desk = self.desk
        m = desk.file.m
        if desk.closed:
            raise GateClosed(desk.closed)
        if desk.k and desk.k != m[K] and not m[CLUSTER]:  # there its peer makes sure of k
            desk.agree(change)
        if self.permits < 1 or self.permits > m[K]:
            raise BadInput(f"cannot acquire {self.permits} slots of gate {desk.gate}: its k is {m[K]}")
        if change.now - desk.linked > LINKED:
            desk.check_linked(change)
        seat = rules.ask(m, change, desk, self)
        if not seat:
            desk.file.grow()
            m = desk.file.m
            seat = rules.ask(m, change, desk, self)
        if m[CLUSTER]:
            m[seat + EXPECTED_K] = desk.k
            write_text(m, seat + PROTOCOL, seat + LENDER, desk.protocol)
        if self.note:
            write_note(m, seat, self.note)
        self.seat = seat
        self.ticket = m[seat + TICKET]
        return self.is_inside(change)

    def is_inside(self, change: Change) -> bool:
        """If it is, it need not be woken; else it learns its duties."""
        m = self.desk.file.m
        self.inside = m[self.seat + STATE] != WAITING
        if self.inside:
            self.take_grant()
            while change.woken and self.seat in change.woken:
                change.woken.remove(self.seat)
        else:
            self.duties = rules.duties(m, self.seat, change.now)
        return self.inside

    def take_grant(self) -> None:
        """Note what was granted, while the seat cannot become another request's: see `take_rung`."""
        m = self.desk.file.m
        before, self.fence = self.fence, m[self.seat + FENCE]
        self.follows = self.fence == before + 1
        self.slots = links.shown_slots(m, self.seat)

    def take_rung(self) -> None:
        """As `take_grant`, for a request that was rung; no other thread may make a change meanwhile.

        Raises GateClosed if another thread has ended it in the meantime. Its seat may be another request's then.
        """
        self.desk.check_open()
        if not rules.hear_ring(self.desk.file.m, self.seat, self.ticket):
            raise self.over()
        self.take_grant()

    def over(self) -> GateClosed:
        damaged = f"gate {self.desk.gate} was closed while this request waited, or its file was damaged"
        return GateClosed(self.desk.closed or damaged)

    def look(self, change: Change) -> bool:
        """The step of a waiter that was woken. Returns whether its waiting is over: it is inside, or late."""
        m = self.desk.file.m
        if rules.is_over(m, self.seat, self.ticket):
            raise self.over()
        if m[self.seat + STATE] == REFUSED:
            self.end_refused(change)
        if self.tick:
            self.desk.check_linked(change)
        rules.look(m, change, self.desk, self.seat, self.suspects, self.tick)
        if not self.is_inside(change) and self.late:
            table.leave(m, change, self.seat)
        return self.inside or self.late

    def end_refused(self, change: Change) -> None:
        """The peer of the cluster has refused this request. Raises KMismatch or BadInput, with its reason."""
        m = self.desk.file.m
        found, why = m[self.seat + SLOT], read_note(m, self.seat)
        table.leave(m, change, self.seat)
        raise KMismatch(self.desk.gate, self.desk.k, found) if found else BadInput(why)

    def leave(self, change: Change) -> None:
        """The step that ends the request, if it was made."""
        if self.seat:
            rules.leave(self.desk.file.m, change, self.seat, self.ticket)


def nanoseconds(seconds: float, what: str) -> int:
    """Raises BadInput unless it is a number of seconds that a room can count with."""
    if not 0 <= seconds <= MOST_SECONDS:
        raise BadInput(f"{what} must be 0 to {MOST_SECONDS:g} seconds, not {seconds}")
    return int(seconds * 1e9)
