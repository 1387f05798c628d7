"""One gate on one host, as one process uses it.

    with Room(folder, "gpu", k=3) as room:
        permit = room.acquire(timeout=5, permits=1, lease=60)      # None: not in time
        permit.slots, permit.fence, permit.is_valid()
        permit.release()

There is no thread and no socket. A request takes a bell and a seat; if it has to wait, it sleeps until its bell rings,
a process that it watches dies, or a tick is due (rules.py). Several threads may use one room.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fairgate.errors import BadInput, ForkedPeer, GateClosed, KMismatch
from fairgate.room import bell as bells
from fairgate.room import links, rules, system, table
from fairgate.room.bell import Bell, path_of
from fairgate.room.file import RoomFile
from fairgate.room.layout import (
    ASKED_K,
    DEADLINE,
    FENCE,
    FREE,
    GROUP,
    INSIDE,
    LOST,
    MOST_SLOTS,
    OWNER,
    PERMITS,
    PID,
    STATE,
    TICKET,
    WAITING,
    K,
)
from fairgate.room.links import CorruptTable
from fairgate.room.notes import write_note
from fairgate.room.rules import Duties, Request
from fairgate.room.senses import LiveSenses
from fairgate.room.system import clock
from fairgate.room.table import Change

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from typing import TypeVar

    from fairgate.room.listing import Listed

    T = TypeVar("T")

MOST_OPEN = 64  # bells of others that are kept open for ringing
MOST_SECONDS = 1e9
SUFFIX = ".gate"
GHOST_TICK = 20_000_000  # ns: how often to look for processes that a dead holder has left inside
DAMAGE = (CorruptTable, IndexError, OverflowError, ValueError)  # an index or a number that no change has stored
open_rooms: set[Room] = set()


class Permit:
    """The right to be inside: one or more slots, and a fence. Get it from `Room.acquire`."""

    def __init__(self, room: Room, seat: int, bell: Bell, on_release: Callable[[], None]) -> None:
        m = room.file.m
        self.room = room
        self.seat = seat
        self.bell = bell
        self.on_release = on_release
        self.ticket: int = m[seat + TICKET]
        self.fence: int = m[seat + FENCE]
        self.slots = links.slots_of(m, seat)
        self.released = False
        self.why = ""  # it was lost

    def is_valid(self) -> bool:
        """False once it was released or revoked, or its lease is over."""
        m = self.room.file.m
        deadline = m[self.seat + DEADLINE]
        mine = m[self.seat + TICKET] == self.ticket and m[self.seat + STATE] == INSIDE
        return mine and not self.released and not 0 < deadline <= clock()

    def deadline(self) -> int:
        """When the lease ends, in ns on CLOCK_BOOTTIME; 0 if there is none."""
        m = self.room.file.m
        return m[self.seat + DEADLINE] if m[self.seat + TICKET] == self.ticket else 0

    def why_lost(self) -> str:
        """Why it ended before it was released; empty if it did not."""
        if not self.why and not self.released and not self.is_valid():
            if 0 < self.deadline() <= clock():
                self.why = "its lease has expired"
            elif self.room.is_closed():
                self.why = self.room.closed
            else:
                self.why = "it was revoked"
        return self.why

    def extend(self, nanoseconds: int) -> bool:
        """The lease ends this far from now. Returns False if the permit is not valid any more."""
        return self.room.change(lambda change: self.extended(change, nanoseconds))

    def extended(self, change: Change, nanoseconds: int) -> bool:
        if self.is_valid():
            table.extend(self.room.file.m, self.seat, change.now + nanoseconds)
            return True
        return False

    def share(self) -> int:
        """The descriptor that a command should inherit: while any process has it, the slots stay taken."""
        bells.ours.discard(self.bell)
        self.room.bells.remove(self.bell)  # from now on it belongs to the command
        self.on_release = self.bell.close
        os.set_inheritable(self.bell.fd, True)
        return self.bell.fd

    def hand_to(self, group: int) -> None:
        """The command is this process group. If all of its processes close the bell, the group counts instead."""
        self.room.change(lambda change: self.room.store(self.seat + GROUP, group))

    def release(self) -> None:
        """Releasing twice is a no-op."""
        if self.room.is_closed():
            self.room.check_process()
        elif not self.released:  # an interrupted release can be repeated
            self.why_lost()
            self.room.change(lambda change: rules.leave(self.room.file.m, change, self.seat, self.ticket))
            self.released = True
            self.on_release()


class Room:
    def __init__(self, folder: str, gate: str, k: int = 0, create: bool = True) -> None:
        """Open the gate, or create it; `k` is 0 if any will do. Raises BadInput, or KMismatch if it is in use.

        Without `create`, the gate must exist.
        """
        self.folder = folder
        self.gate = gate
        self.k = k
        self.closed = ""  # why
        self.pid = os.getpid()
        self.user = os.geteuid()
        self.senses = LiveSenses(folder)
        self.mutex = threading.Lock()  # flock does not exclude the threads of one process
        self.bells: list[Bell] = []
        self.spare_bells: list[Bell] = []  # those that no request has
        self.waiting_bells: set[Bell] = set()  # those that a thread waits for
        self.lines: dict[int, int] = {}  # by owner: the writing end of its bell; only under the mutex
        self.file = RoomFile(path_of_gate(folder, gate), k, create)
        open_rooms.add(self)
        try:
            self.change(self.agree)
            if self.file.claim_sweep("/" in gate):
                from fairgate.room.sweep import sweep  # noqa: PLC0415 (once in an hour)

                sweep(folder, "/" in gate)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Changes.

    def change(self, step: Callable[[Change], T]) -> T:
        """Do one step with the lock, then wake whom it concerns."""
        with self.mutex_of_this_process():
            self.check_open()
            try:
                self.file.take_lock()
                return self.locked(step)
            finally:
                self.file.unlock()  # an interrupt may come at any moment: unlocking twice is harmless

    def mutex_of_this_process(self) -> threading.Lock:
        """After a fork another thread of the parent may have had it: the child must not wait for that."""
        if self.pid != os.getpid():
            self.check_open()
        return self.mutex

    def check_open(self) -> None:
        self.check_process()
        if self.file.fd < 0:
            raise GateClosed(self.closed or f"gate {self.gate} is closed")

    def check_process(self) -> None:
        if self.pid != os.getpid():
            raise ForkedPeer(f"gate {self.gate} was opened by another process: open it again after a fork")

    def is_closed(self) -> bool:
        return self.file.fd < 0

    def locked(self, step: Callable[[Change], T]) -> T:
        """With the lock and the mutex. Returns without the lock."""
        change = Change(clock(), self.is_stopped)
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
        m = self.file.m
        return [
            (m[seat + OWNER], m[seat + TICKET] if m[seat + STATE] in (INSIDE, LOST) else -m[seat + TICKET])
            for seat in table.in_order(m, change.woken)
        ]

    def ring(self, owner: int, ticket: int) -> None:
        """Ring a bell. If nobody hears it, no further step is needed: the next waiter watches its owner."""
        fd = self.lines.get(owner)
        if fd is None:
            fd = system.open_to_ring(path_of(self.folder, owner))
            if fd < 0:
                return
            if len(self.lines) >= MOST_OPEN:
                os.close(self.lines.pop(next(iter(self.lines))))
            self.lines[owner] = fd
        if not system.ring(fd, ticket):
            os.close(self.lines.pop(owner))

    # Requests.

    def acquire(
        self, timeout: float | None = None, permits: int = 1, lease: float | None = None, note: str = ""
    ) -> Permit | None:
        """Wait for this many slots. Returns None if they were not free in time; a timeout of 0 does not wait.

        Raises BadInput if the gate has fewer slots, KMismatch if it is in use with another k, GateClosed if its file
        was removed.
        """
        until = None if timeout is None else clock() + nanoseconds(timeout, "timeout")
        bell = self.some_bell()
        self.waiting_bells.add(bell)
        try:
            request = self.request(bell, permits, lease)
            seat, duties = self.change(lambda change: self.asked(change, request, note))
            if duties is None or self.wait(bell, seat, duties, until):
                return Permit(self, seat, bell, partial(self.spare_bells.append, bell))
        except BaseException:  # Ctrl-C: nobody would ever release it
            self.abandon(bell)
            raise
        finally:
            self.waiting_bells.discard(bell)
        self.spare_bells.append(bell)
        return None

    def some_bell(self) -> Bell:
        with suppress(IndexError):  # another thread may have taken the last one
            return self.spare_bells.pop()
        bell = Bell(self.folder)
        self.bells.append(bell)
        return bell

    def identity(self, bell: Bell) -> tuple[int, int, int, int]:
        return bell.owner, self.pid, self.senses.namespace, self.user

    def request(self, bell: Bell, permits: int, lease: float | None) -> Request:
        return Request(*self.identity(bell), permits, nanoseconds(lease or 0, "lease"))

    def agree(self, change: Change) -> None:
        """Raises KMismatch if the gate is in use with another k. An unused gate takes this one."""
        m = self.file.m
        if self.k and self.k not in (m[ASKED_K], m[K]):
            if links.is_in_use(m):
                rules.bury_all(m, change, self)
            if links.is_in_use(m):
                raise KMismatch(self.gate, self.k, m[K])
            m[K] = m[ASKED_K] = self.k

    def asked(self, change: Change, request: Request, note: str) -> tuple[int, Duties | None]:
        """The seat, and what to watch; None if it is inside already."""
        if self.k and self.k != self.file.m[ASKED_K]:
            self.agree(change)
        if request.permits < 1 or request.permits > self.file.m[K]:
            raise BadInput(f"gate {self.gate} has {self.file.m[K]} slots: cannot acquire {request.permits}")
        seat = self.seated(lambda: rules.ask(self.file.m, change, self, request))
        if note:
            write_note(self.file.m, seat, note)
        if self.file.m[seat + STATE] != WAITING:
            change.woken = [each for each in change.woken if each != seat]
            return seat, None
        return seat, rules.duties(self.file.m, seat, change.now)

    def seated(self, sit: Callable[[], int]) -> int:
        """The seat that `sit` takes; the room grows if it finds none."""
        self.check_linked()
        seat = sit()
        if not seat:
            self.file.grow()
            seat = sit()
        return seat

    def check_linked(self) -> None:
        """Those who come later create a new file, and would not meet anybody in this one."""
        if not self.file.is_linked():
            raise GateClosed(f"gate {self.gate}: its file {self.file.path} was removed")

    def wait(self, bell: Bell, seat: int, duties: Duties, until: int | None) -> bool:
        """True if the seat is inside. False if the time is over: the seat is free again."""
        ticket = self.file.m[seat + TICKET]
        suspects = bell.watch(self.owners(duties))
        while True:
            tickets: list[int] = []
            if not suspects:
                when = duties.when if until is None else min(duties.when, until)
                tickets, suspects = bell.wait(when - clock())
            if ticket in tickets:  # the process that rang also rings all others that are concerned
                rules.hear(self.file.m, seat)
                return True
            late = until is not None and clock() >= until
            tick = not tickets and not suspects
            outcome = self.change(lambda change: self.looked(change, seat, ticket, suspects, tick, late))  # noqa: B023
            if not isinstance(outcome, Duties):
                return outcome
            duties = outcome
            suspects = bell.watch(self.owners(duties)) - suspects  # those just looked at have left processes inside
            if any(owner not in bell.watched for owner in self.owners(duties)) and not suspects:
                duties = Duties(duties.seats, min(duties.when, clock() + GHOST_TICK))

    def looked(
        self, change: Change, seat: int, ticket: int, suspects: set[int], tick: bool, late: bool
    ) -> Duties | bool:
        """True if the seat is inside, False if it is late and has left, else what to watch."""
        m = self.file.m
        if m[seat + TICKET] != ticket or m[seat + STATE] == FREE:
            raise GateClosed(f"gate {self.gate} was closed while this request waited")
        if tick:
            self.check_linked()
        rules.look(m, change, self, seat, suspects, tick)
        if m[seat + STATE] != WAITING:
            change.woken = [each for each in change.woken if each != seat]
            return True
        if late:
            table.leave(m, change, seat)
            return False
        return rules.duties(m, seat, change.now)

    def owners(self, duties: Duties) -> set[int]:
        return {self.file.m[seat + OWNER] for seat in duties.seats}

    def abandon(self, bell: Bell) -> None:
        """End the request of this bell, even if Ctrl-C is pressed again meanwhile."""
        while True:
            try:
                self.change(lambda change: rules.abandon(self.file.m, change, {bell.owner}))
                self.spare_bells.append(bell)
                return
            except KeyboardInterrupt:
                continue
            except GateClosed:  # closing has ended the request, and left the bell to the thread that waited
                bell.close()
                return

    # For people.

    def requests(self) -> list[Listed]:
        """All requests: the holders by slot, then the waiters in order."""
        return self.change(self.listed)

    def listed(self, change: Change) -> list[Listed]:
        from fairgate.room.listing import listed  # noqa: PLC0415 (it imports typing)

        m = self.file.m
        holders = [listed(m, seat, links.slots_of(m, seat)) for seat in links.holders(m)]
        return holders + [listed(m, seat, ()) for seat in links.waiters(m)]

    def revoke(self, slot: int, fence: int = 0) -> bool:
        """End the permit in this slot, if it has this fence, or any. Its holder is told, and the next one let in."""
        return self.change(lambda change: rules.revoke(self.file.m, change, slot, fence))

    def resize(self, k: int) -> None:
        """Change k. If there are more holders, the gate waits for them to leave.

        Raises BadInput if a request that waits wants more permits than that.
        """
        if not 1 <= k <= MOST_SLOTS:
            raise BadInput(f"k must be 1..{MOST_SLOTS}, not {k}")
        self.change(lambda change: self.resized(change, k))

    def resized(self, change: Change, k: int) -> None:
        """Raises BadInput if a waiter wants more than this: it would keep all others waiting."""
        m = self.file.m
        seat = rules.resize(m, change, self, k)
        if seat:
            raise BadInput(f"gate {self.gate}: pid {m[seat + PID]} waits for {m[seat + PERMITS]} permits, not {k}")

    def close(self, why: str = "") -> None:
        """End the requests and permits of this object, and free what it has."""
        if self.file.fd >= 0:
            owners = {bell.owner for bell in set(self.bells).difference(self.spare_bells)}
            self.closed = why or f"gate {self.gate} was closed"
            with suppress(BadInput):  # a damaged file
                if owners:
                    self.change(lambda change: rules.abandon(self.file.m, change, owners))
            with self.mutex:
                for bell in self.bells:
                    if bell in self.waiting_bells:
                        bell.remove()  # its thread may never run again
                        system.ring(bell.fd, 0)  # its thread looks, finds the room closed, and closes the bell
                    else:
                        bell.close()
                for fd in self.lines.values():
                    os.close(fd)
                self.file.close()
                self.file.fd = -1
            open_rooms.discard(self)


def path_of_gate(folder: str, gate: str) -> str:
    """A name with a slash is the path of the gate's file."""
    return gate if "/" in gate else f"{folder}/{gate}{SUFFIX}"


def nanoseconds(seconds: float, what: str) -> int:
    """Raises BadInput unless it is a number of seconds that a room can count with."""
    if not 0 <= seconds <= MOST_SECONDS:
        raise BadInput(f"{what} must be 0 to {MOST_SECONDS:g} seconds, not {seconds}")
    return int(seconds * 1e9)


def after_fork() -> None:
    """In the child: the inherited bells would keep the parent alive, and the inherited file its lock."""
    for room in open_rooms:
        os.close(room.file.fd)
        for fd in room.lines.values():
            os.close(fd)
        room.file.fd = -1
        room.lines.clear()
        room.bells.clear()
        room.spare_bells.clear()
    for bell in bells.ours:
        os.close(bell.fd)
    open_rooms.clear()
    bells.ours.clear()


def at_exit() -> None:
    """A process that ends without closing leaves nothing taken, and no bell behind."""
    for room in list(open_rooms):
        room.close()


os.register_at_fork(after_in_child=after_fork)
atexit.register(at_exit)
