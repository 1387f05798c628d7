"""A room in asyncio: any number of tasks wait, with no thread and without blocking the event loop.

    with Room(folder, "gpu", k=3) as room:
        gate = AsyncRoom(room)
        permit = await gate.acquire(timeout=5)      # None: not in time
        await permit.lost.wait()                    # set when the lease is over, or the permit was revoked
        permit.release()
        gate.close()

All requests of a loop share one bell. A ring carries the ticket of the request that it is for.
"""

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

from fairgate.errors import FairgateError, GateClosed
from fairgate.room import calls, rules, table
from fairgate.room.bell import Bell, path_of
from fairgate.room.calls import clock
from fairgate.room.desk import GHOST_TICK, Visit
from fairgate.room.file import PATIENCE
from fairgate.room.layout import DEADLINE
from fairgate.room.permit import Permit
from fairgate.room.room import Room

T = TypeVar("T")


class AsyncPermit(Permit):
    """As `Permit`, and `lost` is set when it ends before it is released."""

    def __init__(self, gate: "AsyncRoom", visit: Visit) -> None:
        Permit.__init__(self, visit)
        self.gate = gate
        self.lost = asyncio.Event()
        self.on_loss: Callable[[], None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.gate.held[self.ticket] = self
        self.watch_lease()

    def watch_lease(self) -> None:
        """Look again when the lease should be over; it may have been extended by then."""
        deadline = self.desk.file.m[self.seat + DEADLINE]
        if not self.is_valid():
            self.lose()
        elif deadline:
            self.timer = self.gate.loop.call_later((deadline - clock()) / 1e9, self.watch_lease)

    def extend(self, nanoseconds: int) -> bool:
        extended = Permit.extend(self, nanoseconds)
        if extended:
            if self.timer is not None:
                self.timer.cancel()
            self.watch_lease()
        return extended

    def lose(self) -> None:
        if self.why_lost() and not self.lost.is_set():
            self.lost.set()
            if self.on_loss is not None:
                self.on_loss()

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call this once when it is lost, or now if it was."""
        self.on_loss = call
        if self.lost.is_set():
            call()

    def end(self) -> None:
        self.gate.held.pop(self.ticket, None)
        if self.timer is not None:
            self.timer.cancel()


class Waiter:
    """One request that waits."""

    def __init__(self, visit: Visit, loop: asyncio.AbstractEventLoop) -> None:
        self.visit = visit
        self.ticket = visit.ticket
        self.granted: asyncio.Future[None] = loop.create_future()
        self.owners: set[int] = set()  # that it watches
        self.ghosts: set[int] = set()  # those that are dead and have left processes inside
        self.timer: asyncio.TimerHandle | None = None


class AsyncRoom:
    """Use it in the event loop in which it was created."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.bell = Bell(room.folder)
        room.bells.append(self.bell)  # a program that ends without closing leaves nothing behind
        self.loop = asyncio.get_running_loop()
        self.closed = False
        self.waiting: dict[int, Waiter] = {}  # by ticket
        self.held: dict[int, AsyncPermit] = {}
        self.watchers: dict[int, set[int]] = {}  # by owner: the tickets that watch it
        self.lines: dict[int, int] = {}  # by owner: the writing end of its bell
        self.tasks: set[asyncio.Task[None]] = set()
        self.loop.add_reader(self.bell.fd, self.rung)

    async def __aenter__(self) -> "AsyncRoom":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self, why: str = "") -> None:
        """End all requests and permits of this loop. Closing twice is a no-op."""
        if self.closed:
            return
        self.closed = True
        why = why or f"gate {self.room.gate} was closed"
        for task in self.tasks:
            task.cancel()
        for waiter in list(self.waiting.values()):
            self.end_wait(waiter)
            if not self.loop.is_closed():
                waiter.granted.set_exception(GateClosed(why))
        self.room.change(lambda change: rules.abandon(self.room.file.m, change, {self.bell.owner}))
        for permit in list(self.held.values()):
            permit.why = why
            permit.lose()
            permit.end()
        if not self.loop.is_closed():
            self.loop.remove_reader(self.bell.fd)
        self.room.bells.remove(self.bell)
        self.bell.close()

    # Requests.

    async def acquire(
        self, timeout: float | None = None, permits: int = 1, lease: float | None = None, note: str = ""
    ) -> AsyncPermit | None:
        """As `Room.acquire`."""
        visit = Visit(self.room.desk, self.bell)
        visit.want(permits, lease, note)
        if not await self.change(lambda change: self.asked(change, visit)) and not await self.wait(visit, timeout):
            return None
        return AsyncPermit(self, visit)

    def asked(self, change: table.Change, visit: Visit) -> bool:
        if self.closed:
            raise GateClosed(f"gate {self.room.gate} is closed")
        return visit.ask(change)

    async def wait(self, visit: Visit, timeout: float | None) -> bool:
        waiter = Waiter(visit, self.loop)
        self.waiting[waiter.ticket] = waiter
        try:
            self.follow(waiter, set())
            if timeout is not None and timeout <= 0:  # a single look: is a holder dead?
                await self.look(waiter, set(waiter.owners), True)
            async with asyncio.timeout(timeout):
                await waiter.granted
        except BaseException as why:
            if waiter.granted.done() and not waiter.granted.cancelled() and isinstance(why, TimeoutError):
                return True  # it was let in at the last moment
            self.give_up(waiter)
            if isinstance(why, TimeoutError):
                return False
            raise
        finally:
            self.end_wait(waiter)
        return True

    def give_up(self, waiter: Waiter) -> None:
        """Timed out, or cancelled."""
        self.room.change(lambda change: rules.leave(self.room.file.m, change, waiter.visit.seat, waiter.ticket))

    def end_wait(self, waiter: Waiter) -> None:
        self.waiting.pop(waiter.ticket, None)
        self.watch(waiter, set())
        if waiter.timer is not None:
            waiter.timer.cancel()

    # Being woken.

    def rung(self) -> None:
        for ticket in calls.read_tickets(self.bell.fd):
            waiter = self.waiting.get(abs(ticket))
            if waiter is not None and ticket > 0:
                self.grant(waiter)
            elif waiter is not None:
                self.start_look(waiter, set(), False)
            elif ticket in self.held and not self.held[ticket].is_valid():
                self.held[ticket].lose()

    def died(self, owner: int) -> None:
        """The kernel says that nobody has the other end of this bell any more."""
        for ticket in list(self.watchers.get(owner, ())):
            self.start_look(self.waiting[ticket], {owner}, False)
        self.stop_watching(owner)

    def start_look(self, waiter: Waiter, suspects: set[int], tick: bool) -> None:
        task = self.loop.create_task(self.look(waiter, suspects, tick))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def look(self, waiter: Waiter, suspects: set[int], tick: bool) -> None:
        if waiter.granted.done() or waiter.ticket not in self.waiting:
            return
        try:
            inside = await self.change(lambda change: self.looked(change, waiter, suspects, tick))
        except FairgateError as wrong:  # for the task that waits, not for this one
            if not waiter.granted.done():
                waiter.granted.set_exception(wrong)
            return
        if inside:
            self.rung()  # those let in before it
            self.grant(waiter)
        else:
            self.follow(waiter, suspects)

    def looked(self, change: table.Change, waiter: Waiter, suspects: set[int], tick: bool) -> bool:
        """Whether it is inside; False too if it gave up meanwhile."""
        if waiter.ticket not in self.waiting:
            return False
        visit = waiter.visit
        visit.suspects, visit.tick = suspects, tick
        return visit.look(change)

    def grant(self, waiter: Waiter) -> None:
        rules.hear(self.room.file.m, waiter.visit.seat)
        if not waiter.granted.done():
            waiter.granted.set_result(None)

    # Watching.

    def follow(self, waiter: Waiter, looked_at: set[int]) -> None:
        """Watch as told, and look again in time."""
        if waiter.granted.done() or waiter.ticket not in self.waiting:
            return
        dead = self.watch(waiter, self.room.desk.owners(waiter.visit) - {self.bell.owner})
        when = waiter.visit.duties.when
        if dead & looked_at:  # they have left processes inside
            when = min(when, clock() + GHOST_TICK)
        if waiter.timer is not None:
            waiter.timer.cancel()
        waiter.timer = self.loop.call_later(max(0, when - clock()) / 1e9, self.start_look, waiter, dead, not dead)
        if dead - looked_at:
            self.start_look(waiter, dead - looked_at, False)

    def watch(self, waiter: Waiter, owners: set[int]) -> set[int]:
        """Watch these owners for this waiter. Returns those that are dead already."""
        for owner in waiter.owners - owners:
            tickets = self.watchers.get(owner, set())
            tickets.discard(waiter.ticket)
            if not tickets:
                self.stop_watching(owner)
        waiter.owners = owners
        dead = set()
        for owner in owners:
            if owner not in self.lines:
                fd = calls.open_to_ring(path_of(self.room.folder, owner))
                if fd < 0:
                    dead.add(owner)
                    continue
                self.lines[owner] = fd
                self.loop.add_reader(fd, self.died, owner)  # epoll always reports errors
            self.watchers.setdefault(owner, set()).add(waiter.ticket)
        return dead

    def stop_watching(self, owner: int) -> None:
        self.watchers.pop(owner, None)
        fd = self.lines.pop(owner, None)
        if fd is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(fd)
            os.close(fd)

    # The lock.

    async def change(self, step: Callable[[table.Change], T]) -> T:
        """As `Room.change`, but other tasks run while this one waits for the lock."""
        room = self.room
        room.check_open()
        began = clock()
        pause = calls.SHORTEST
        while not self.try_lock():
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, calls.LONGEST)
            room.check_open()
            if clock() - began > PATIENCE:
                room.file.continue_owner()
        try:
            return room.desk.locked(step)
        finally:
            if room.file.locked:
                room.file.unlock()
            room.desk.mutex.release()

    def try_lock(self) -> bool:
        if not self.room.desk.mutex.acquire(blocking=False):
            return False
        if self.room.file.try_lock():
            return True
        self.room.desk.mutex.release()
        return False
