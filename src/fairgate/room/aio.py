"""A room in asyncio: any number of tasks wait, with no thread and without blocking the event loop.

    with Room(folder, "gpu", k=3) as room:
        gate = AsyncRoom(room)
        permit = await gate.acquire(timeout=5)      # None: not in time
        await permit.lost.wait()                    # set when the lease is over, or the permit was revoked
        permit.release()
        await gate.aclose()

All requests of a loop share one bell. A ring carries the ticket of the request that it is for.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from fairgate.errors import FairgateError, GateClosed
from fairgate.room import calls, links, rules, table
from fairgate.room.backlog import Backlog
from fairgate.room.bell import Bell, path_of
from fairgate.room.calls import clock
from fairgate.room.desk import GHOST_TICK, Visit
from fairgate.room.layout import TICK
from fairgate.room.permit import Permit
from fairgate.room.room import Room

CHECK = 1.0  # seconds: how often the permits that are held are looked at
FULL = 512  # rings: this many are read at once, so there may have been more than the pipe can take


class AsyncPermit(Permit):
    """As `Permit`, and `lost` is set when it ends before it is released."""

    def __init__(self, gate: "AsyncRoom", visit: Visit) -> None:
        Permit.__init__(self, visit)
        self.gate = gate
        self.lost = asyncio.Event()
        self.on_loss: Callable[[], None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.gate.held[self.ticket] = self
        self.gate.keep_checking()
        self.watch_lease()

    def watch_lease(self) -> None:
        """Look again when the lease should be over; it may have been extended by then."""
        deadline = links.end_of(self.desk.file.m, self.seat)
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

    def why_closed(self) -> str:
        return self.gate.closed or Permit.why_closed(self)

    def lose(self) -> None:
        if self.why_lost() and not self.lost.is_set():
            self.lost.set()
            if self.on_loss is not None and not self.gate.loop.is_closed():
                self.on_loss()

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call this once when it is lost, or now if it was."""
        self.on_loss = call
        if self.lost.is_set():
            call()

    def give_back(self) -> None:
        self.gate.backlog.post(self)
        self.end()

    async def settled(self) -> None:
        """Wait until its release is done, if the lock was not free for it."""
        await self.gate.backlog.settled()

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
        self.timer: asyncio.TimerHandle | None = None
        self.looks = False  # a task is about to look
        self.suspects: set[int] = set()  # to look at then
        self.tick = False  # whether that is because of the timer


class AsyncRoom:
    """Use it in the event loop in which it was created."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.loop = asyncio.get_running_loop()
        self.backlog = Backlog(room.desk)
        self.change = self.backlog.change
        self.bell = Bell(room.folder)
        self.bell.busy = True  # another thread that closes the room rings it, and leaves it to this loop
        room.bells.append(self.bell)  # a program that ends without closing leaves nothing behind
        self.closed = ""  # why
        self.waiting: OrderedDict[int, Waiter] = OrderedDict()  # by ticket
        self.held: dict[int, AsyncPermit] = {}
        self.watchers: dict[int, set[int]] = {}  # by owner: the tickets that watch it
        self.lines: dict[int, int] = {}  # by owner: the writing end of its bell
        self.looks: set[asyncio.Task[None]] = set()
        self.checker: asyncio.TimerHandle | None = None
        self.loop.add_reader(self.bell.fd, self.rung)

    async def __aenter__(self) -> "AsyncRoom":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Closing.

    async def aclose(self, why: str = "") -> None:
        """End all requests and permits of this loop. Closing twice is a no-op."""
        if self.begin_close(why):
            try:
                await self.change(self.abandon)
            except GateClosed:  # another thread has closed the room
                pass
            except BaseException:
                self.finish()
                raise
            finally:
                self.end_close()

    def close(self, why: str = "") -> None:
        """As `aclose`, but it blocks the loop while it waits for the lock."""
        if self.begin_close(why):
            self.finish()
            self.end_close()

    def finish(self) -> None:
        with suppress(GateClosed):  # another thread has closed the room
            self.room.desk.finish(self.abandon)

    def begin_close(self, why: str) -> bool:
        """Wake everybody. False if that was done before."""
        if self.closed:
            return False
        self.closed = why or f"gate {self.room.gate} was closed"
        for task in self.looks:
            if not self.loop.is_closed():
                task.cancel()
        for waiter in list(self.waiting.values()):
            self.fail(waiter, GateClosed(self.closed))
            self.end_wait(waiter)
        self.backlog.close(GateClosed(self.closed))
        return True

    def abandon(self, change: table.Change) -> None:
        rules.abandon(self.room.file.m, change, {self.bell.owner})

    def end_close(self) -> None:
        for permit in list(self.held.values()):
            permit.why = self.closed
            permit.lose()
            permit.end()
        if self.checker is not None:
            self.checker.cancel()
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
        inside = False
        try:
            inside = await self.change(lambda change: self.asked(change, visit)) or await self.wait(visit, timeout)
            if not inside:
                return None
            self.check_open()  # it may have been closed before this task went on
            return AsyncPermit(self, visit)
        finally:
            if not inside and visit.ticket and not self.room.is_closed():  # it is late, or the task was cancelled
                self.backlog.post(visit.leave)
                await self.backlog.settled()

    def check_open(self) -> None:
        if self.closed:
            raise GateClosed(self.closed)
        self.room.check_open()  # another thread may have closed it

    def asked(self, change: table.Change, visit: Visit) -> bool:
        self.check_open()
        return visit.ask(change)

    async def wait(self, visit: Visit, timeout: float | None) -> bool:
        waiter = Waiter(visit, self.loop)
        self.waiting[waiter.ticket] = waiter
        try:
            self.follow(waiter, set())
            if timeout is not None and timeout <= 0:  # a single look: is a holder dead?
                waiter.suspects, waiter.tick = set(waiter.owners), True
                await self.look(waiter)
            async with asyncio.timeout(timeout):
                await waiter.granted
        except TimeoutError:  # perhaps it was let in at the last moment, or the gate was closed
            if not waiter.granted.done() or waiter.granted.cancelled():
                return False
            waiter.granted.result()
        finally:
            if waiter.granted.done() and not waiter.granted.cancelled():
                waiter.granted.exception()  # a task that was cancelled does not raise it, and asyncio would complain
            self.end_wait(waiter)
        return True

    def end_wait(self, waiter: Waiter) -> None:
        self.waiting.pop(waiter.ticket, None)
        self.watch(waiter, set())
        if waiter.timer is not None:
            waiter.timer.cancel()
        for end in self.ends():
            if end.timer is None:
                self.look_later(end, clock() + TICK)

    def fail(self, waiter: Waiter, why: FairgateError) -> None:
        if not self.loop.is_closed() and not waiter.granted.done():
            waiter.granted.set_exception(why)

    def grant(self, waiter: Waiter) -> None:
        if not waiter.granted.done():
            waiter.granted.set_result(None)

    # Being woken.

    def rung(self) -> None:
        tickets = calls.read_tickets(self.bell.fd)
        for ticket in tickets:
            waiter = self.waiting.get(abs(ticket))
            if waiter is not None and ticket > 0:
                self.take_rung(waiter)
            elif waiter is not None:
                self.start_look(waiter)
            elif ticket in self.held and not self.held[ticket].is_valid():
                self.held[ticket].lose()
        if self.room.is_closed():  # by another thread
            self.close(self.room.desk.closed)
        if len(tickets) >= FULL:
            self.check_held()

    def take_rung(self, waiter: Waiter) -> None:
        try:
            self.room.desk.exclude_changes(waiter.visit.take_rung)
        except FairgateError as wrong:  # another thread has closed the room
            self.fail(waiter, wrong)
        else:
            self.grant(waiter)

    def died(self, owner: int) -> None:
        """The kernel says that nobody has the other end of this bell any more."""
        for ticket in list(self.watchers.get(owner, ())):
            waiter = self.waiting[ticket]
            waiter.suspects.add(owner)
            self.start_look(waiter)
        self.stop_watching(owner)

    def start_look(self, waiter: Waiter) -> None:
        """Look soon. What comes before that is seen by the same look."""
        if not waiter.looks:
            waiter.looks = True
            task = self.loop.create_task(self.look(waiter))
            self.looks.add(task)
            task.add_done_callback(self.looks.discard)

    async def look(self, waiter: Waiter) -> None:
        try:
            inside = await self.change(lambda change: self.looked(change, waiter))
        except FairgateError as wrong:  # for the task that waits, not for this one
            self.fail(waiter, wrong)
            return
        if self.closed:
            return  # meanwhile: the request has ended
        if inside:
            self.rung()  # those let in before it
            self.grant(waiter)
        else:
            self.follow(waiter, waiter.visit.suspects)

    def looked(self, change: table.Change, waiter: Waiter) -> bool:
        """Whether it is inside; False too if it gave up meanwhile."""
        waiter.looks = False
        if waiter.granted.done() or waiter.ticket not in self.waiting:
            return False
        visit = waiter.visit
        visit.suspects, visit.tick = waiter.suspects, waiter.tick
        waiter.suspects, waiter.tick = set(), False
        return visit.look(change)

    # Looking again.

    def follow(self, waiter: Waiter, looked_at: set[int]) -> None:
        """Watch as told, and look again in time."""
        if waiter.granted.done() or waiter.ticket not in self.waiting:
            return
        duties = waiter.visit.duties
        unwatched = self.watch(waiter, duties.owners - {self.bell.owner})
        waiter.suspects |= unwatched
        if unwatched - looked_at:
            self.start_look(waiter)
        elif unwatched:  # they have left processes inside, or cannot be seen
            self.look_later(waiter, min(duties.when, clock() + GHOST_TICK))
        elif waiter in self.ends():
            self.look_later(waiter, duties.when)

    def ends(self) -> tuple[Waiter, ...]:
        """The first and the last one of this loop. They look for those in between, which live and die with them."""
        if not self.waiting:
            return ()
        return self.waiting[next(iter(self.waiting))], self.waiting[next(reversed(self.waiting))]

    def look_later(self, waiter: Waiter, when: int) -> None:
        if waiter.timer is not None:
            waiter.timer.cancel()
        if not self.loop.is_closed():
            waiter.timer = self.loop.call_later(max(0, when - clock()) / 1e9, self.tick, waiter)

    def tick(self, waiter: Waiter) -> None:
        waiter.timer = None
        waiter.tick = True
        self.start_look(waiter)

    def keep_checking(self) -> None:
        if self.checker is None and self.held:
            self.checker = self.loop.call_later(CHECK, self.check_again)

    def check_again(self) -> None:
        self.checker = None
        self.check_held()
        self.keep_checking()

    def check_held(self) -> None:
        """A ring can be lost: the pipe was full, or the process that revoked a permit died before it rang."""
        for permit in list(self.held.values()):
            if not permit.is_valid():
                permit.lose()

    # Watching.

    def watch(self, waiter: Waiter, owners: set[int]) -> set[int]:
        """Watch these owners for this waiter. Returns those that cannot be watched; most of them are dead."""
        for owner in waiter.owners - owners:
            tickets = self.watchers.get(owner, set())
            tickets.discard(waiter.ticket)
            if not tickets:
                self.stop_watching(owner)
        waiter.owners = owners
        unwatched = set()
        for owner in owners:
            if owner not in self.lines:
                fd = calls.open_to_ring(path_of(self.room.folder, owner))
                if fd < 0:
                    unwatched.add(owner)
                    continue
                self.lines[owner] = fd
                self.loop.add_reader(fd, self.died, owner)  # epoll always reports errors
            self.watchers.setdefault(owner, set()).add(waiter.ticket)
        return unwatched

    def stop_watching(self, owner: int) -> None:
        self.watchers.pop(owner, None)
        fd = self.lines.pop(owner, None)
        if fd is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(fd)
            os.close(fd)
