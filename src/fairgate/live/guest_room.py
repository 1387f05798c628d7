"""One room of a cluster, as the standing peer of this host serves it, on the loop of its engine.

Whatever happens is noted first: a guest has rung, died, or the cluster has answered. Then one change of the room does
all that follows (room/guestbook.py). After it the cluster gets its slots back, and then it is asked for new guests: in
this order, because another host may wait for the slots. If the protocol saves a message by it, both are one step. The
cluster may grant some of them at once, so this goes on until nothing is left to do.

Such a round is a *turn*. If something raises in it, which it should not, nothing is forgotten: what the turn has not
done is still in the guestbook, or in one of the collections of GuestRoom, and the next turn does it, at the next tick
at the latest.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from itertools import islice

from fairgate.arguments import SECOND
from fairgate.core.ids import NIL
from fairgate.errors import FairgateError, GateClosed, KMismatch
from fairgate.live.gate import LiveGate
from fairgate.live.guest_wish import Wish
from fairgate.live.room_owner import RoomOwner
from fairgate.live.ticket import INSIDE, LOST, Ticket
from fairgate.room import calls, guestbook
from fairgate.room.bell import Bell, path_of
from fairgate.room.changes import Changes
from fairgate.room.clusters import name_of, number_of
from fairgate.room.file import RoomFile
from fairgate.room.guestbook import ALL, Guestbook
from fairgate.room.layout import (
    CLUSTER_ID,
    DIRTY,
    EXPECTED_K,
    GATE_PROTOCOL,
    HEAD,
    LENDER,
    LOOK_AT,
    PID,
    PROTOCOL,
    USER,
    K,
)
from fairgate.room.notes import read_note, read_text, write_text
from fairgate.room.sweep import is_unused
from fairgate.room.table import Change, Step

GLIMPSE = 50_000  # ns: the loop may be held up this long for the lock
RETRY_SECONDS = 0.001  # until it tries again. Guests try less and less often, so that a crowd of them lets the peer in
RESCUE_AFTER = 500_000_000  # ns: waiting guests look for a stopped owner of the lock much earlier
FULL = 512  # rings: this many are read at once, so some may have been lost
LEFT_INSIDE_SECONDS = 0.05  # how often to look for processes that a dead guest has left inside
FEWEST_SEATS = 4  # from then on they are doubled
LONGEST_RUN = 5_000_000  # ns of turns, after which the loop does other things: above all, the lease must be renewed
MOST_AT_ONCE = 16  # new guests in one turn

log = logging.getLogger("fairgate.live")


class Asked:
    """A request to the cluster, for the guest with this number (its ticket in the room)."""

    __slots__ = ("gate", "number", "room", "ticket")

    def __init__(self, room: "GuestRoom", number: int, gate: LiveGate) -> None:
        self.room = room
        self.number = number
        self.gate = gate
        self.ticket = Ticket(self.wake)

    def wake(self) -> bool:
        self.room.answered(self)
        return True


class Look(Step):
    """One change of the room, and what it has led to. Damage may force it to be made again."""

    def __init__(self, room: "GuestRoom", answer: Asked | None) -> None:
        self.room = room
        self.answer = answer  # of the cluster
        self.wishes: list[Wish] = []
        self.end = 0  # when to look again at the latest

    def run(self, change: Change) -> bool:
        self.room.step(self, change)
        return True


def continue_owner(file: RoomFile) -> None:
    """Not passed as a method: a compiled one is no object."""
    file.continue_owner()


class GuestRoom:
    def __init__(self, host: RoomOwner, folder: str, file: str, table: RoomFile) -> None:
        """Take over the room in this file of the cluster's directory, as it was opened. Raises BadInput."""
        self.host = host
        self.engine = host.engine
        self.traffic = host.engine.traffic
        self.loop = host.engine.loop
        self.name = name_of(file)
        self.folder = folder
        self.desk = Changes(folder, self.name, table)
        self.desk.is_peer = True
        try:
            self.bell = Bell(folder)
        except BaseException:
            self.desk.file.close()
            raise
        self.thread = threading.get_ident()
        self.book = Guestbook(NIL)  # of no peer: the first change takes over
        self.requests: dict[int, Asked] = {}  # by guest: for all that its guestbook has asked for
        self.over: deque[Asked] = deque()  # requests that are to be released or withdrawn
        self.answers: deque[Asked] = deque()
        self.called: set[int] = {ALL}
        self.suspects: set[int] = set()
        self.looked_at: set[int] = set()  # the suspects of the latest change
        self.left_inside: set[int] = set()  # owners that are dead and have left processes inside
        self.refusals: dict[int, FairgateError] = {}  # by guest: those that this peer refuses itself
        self.crowded = False  # there are more new guests than a turn can take
        self.lines: dict[int, int] = {}  # by owner: the writing end of its bell
        self.idle: set[int] = set()  # owners that had no request at the last tick
        self.quiet = 0  # ticks in a row without any request
        self.running = False
        self.waiting_since = 0  # for the lock
        self.retry: asyncio.TimerHandle | None = None
        self.rescuing = False  # the process that has it
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = 0  # ns
        self.closed = False
        self.described: LiveGate | None = None  # the gate whose k and protocol the room tells
        self.latest: LiveGate | None = None  # the gate that the latest guest wanted
        self.reopening: LiveGate | None = None  # a gate that is being closed, because a guest wants another k
        self.latest_wish = (0, "")  # its k and protocol, as that guest named them
        self.cluster = ""  # its id
        self.cluster_number = 0  # the same, as a word of the room
        self.loop.add_reader(self.bell.fd, self.rung)
        self.run()

    # What happens.

    def rung(self) -> None:
        tickets = calls.read_tickets(self.bell.fd)
        self.called.update(tickets)
        if len(tickets) >= FULL:
            self.called.add(ALL)
        self.run()

    def died(self, owner: int) -> None:
        """The kernel says that nobody has the other end of this bell any more."""
        self.stop_watching(owner)
        self.suspects.add(owner)
        self.run()

    def answered(self, asked: Asked) -> None:
        """By the cluster: perhaps under the engine's lock, and perhaps in another thread."""
        self.answers.append(asked)
        if threading.get_ident() != self.thread:
            self.loop.call_soon_threadsafe(self.run)
        elif self.traffic.quiet_thread == self.thread:  # then the engine's lock is free
            self.run()
        elif not self.running:
            self.loop.call_soon(self.run)

    def lease_changed(self) -> None:
        """Of the peer: at once, and not in the next turn, which has to wait for the lock."""
        if self.book.peer == self.engine.me and not self.closed:
            guestbook.promise(self.desk.file.m, calls.clock(), self.book, self.engine.lease_until)
        if self.book.stopped:  # perhaps only because there was no lease
            self.called.add(ALL)
            self.run()

    def tick(self) -> None:
        """Now and then: a guest may have died before it rang, or a turn may have failed."""
        self.forget_idle()
        m = self.desk.file.m
        self.quiet += 1
        if self.requests or self.book.owners or self.over or m[HEAD] or m[DIRTY]:
            self.quiet = 0
            self.find_lost()
            self.called.add(ALL)
            self.suspects |= self.left_inside
            self.run()

    def find_lost(self) -> None:
        """Answers that have not arrived because something raised on their way, and guests that nothing is asked for."""
        for number in list(self.book.asked):
            asked = self.requests.get(number)
            if asked is None:
                guestbook.ask_again(self.book, number)
            elif asked.ticket.is_over() and asked not in self.answers:
                self.answers.append(asked)

    # What follows.

    def run(self) -> None:
        """Do what there is to do. If another process has the lock, go on in a moment."""
        if self.running or self.closed:
            return
        self.running = True
        try:
            if self.requests and self.book.peer != self.engine.me:
                self.drop_requests()
            began = calls.clock()
            while self.called or self.suspects or self.answers or self.refusals or self.crowded:
                self.turn()
                if calls.clock() - began > LONGEST_RUN:
                    self.loop.call_soon(self.run)
                    break
        except BlockingIOError:
            self.try_again()
        except FairgateError as wrong:  # the file is damaged, or was removed
            log.error("gate %s: %s", self.name, wrong)
            self.close()
        except Exception as wrong:
            self.answers.rotate(-1)  # if this answer is the reason, the others do not wait for it
            self.engine.mistake(wrong)
        finally:
            self.running = False

    def turn(self) -> None:
        answer = self.answers[0] if self.answers else None  # one at a time: two requests may swap their guests
        look = Look(self, answer)
        self.desk.try_change(look, GLIMPSE)
        if answer is not None:
            self.answers.popleft()
        self.waiting_since = 0
        self.called, self.looked_at, self.suspects = set(), self.suspects, set()
        self.refusals.clear()
        new = len(self.book.new)
        self.tell_cluster(look.wishes)
        self.crowded = 0 < len(self.book.new) < new  # otherwise those that are left have to wait for something
        self.watch()
        self.look_later(look.end)

    def try_again(self) -> None:
        now = calls.clock()
        self.waiting_since = self.waiting_since or now
        if now - self.waiting_since > RESCUE_AFTER and not self.rescuing:
            self.rescuing = True
            self.engine.spawn(self.rescue())
        if self.retry is None:
            self.retry = self.loop.call_later(RETRY_SECONDS, self.retry_now)

    def retry_now(self) -> None:
        self.retry = None
        self.run()

    async def rescue(self) -> None:
        """If the process that has the lock is stopped, let it finish its change. In a thread of its own, because only
        the kernel's list of locks says which process it is, and with many waiting guests that takes a second."""
        try:
            await self.loop.run_in_executor(None, continue_owner, self.desk.file)
        except Exception:
            if not self.closed:
                raise
        finally:
            self.rescuing = False

    def step(self, look: Look, change: Change) -> None:
        m, desk, asked = self.desk.file.m, self.desk, look.answer
        if self.book.peer != self.engine.me:
            self.described = None
            self.book = guestbook.take_over(m, change, desk, self.engine.me, self.bell.owner)
        called = self.called if asked is None else {*self.called, asked.number}
        guestbook.look(m, change, desk, self.book, called, self.suspects)
        self.check_cluster()
        if asked is not None:
            self.answer(change, asked)
        for number, wrong in self.refusals.items():
            self.refuse(change, number, wrong)
        new = [] if self.host.draining else list(self.book.new.items())[:MOST_AT_ONCE]
        look.wishes = [self.wish(number, seat) for number, seat in new]
        look.end = guestbook.next_end(m, self.book)

    def wish(self, number: int, seat: int) -> Wish:
        m = self.desk.file.m
        protocol = read_text(m, seat + PROTOCOL, seat + LENDER)
        return Wish(number, m[seat + EXPECTED_K], protocol, (m[seat + PID], m[seat + USER]), read_note(m, seat))

    def check_cluster(self) -> None:
        """If the cluster was made anew, its protocol does not know of those that the old one has let in."""
        m, cluster = self.desk.file.m, self.engine.members.cluster
        if cluster != self.cluster:
            self.cluster, self.cluster_number = cluster, number_of(cluster)
        if m[CLUSTER_ID] == self.cluster_number:
            return
        if m[CLUSTER_ID] != 0 and self.book.earlier:
            some = ", ".join([str(m[seat + PID]) for seat in self.book.earlier.values()])
            log.warning("gate %s: let in by an earlier cluster of this name and still inside: pid %s", self.name, some)
        m[CLUSTER_ID] = self.cluster_number

    def answer(self, change: Change, asked: Asked) -> None:
        """Pass the answer of the cluster on to a guest."""
        if self.requests.get(asked.number) is not asked:
            if asked.ticket.state == INSIDE:  # or a turn that raised has lost it: releasing twice is a no-op
                self.over.append(asked)
            return  # it is over, whatever the cluster has answered
        m, book, ticket = self.desk.file.m, self.book, asked.ticket
        if ticket.state == INSIDE:
            until = self.engine.lease_until
            number = guestbook.choose(m, change, book, asked.number, until)
            if not number:
                self.is_over(asked.number)
                return
            if number != asked.number:
                self.swap(asked, number)
            guestbook.let_in(m, change, book, number, ticket.slot, ticket.fence, until)
            if self.described is not asked.gate or m[K] != asked.gate.k:
                self.described = asked.gate
                m[K] = asked.gate.k
                write_text(m, GATE_PROTOCOL, LOOK_AT, asked.gate.protocol)
            return
        if ticket.state == LOST:
            guestbook.revoke(m, change, book, asked.number)
            guestbook.ask_again(book, asked.number)  # it was lost before its guest was let in
        elif isinstance(ticket.error, GateClosed):  # this peer is leaving, or the gate was closed to open it again
            guestbook.ask_again(book, asked.number)
        elif ticket.error is not None:
            self.refuse(change, asked.number, ticket.error)
        del self.requests[asked.number]

    def refuse(self, change: Change, number: int, wrong: FairgateError) -> None:
        k = wrong.found if isinstance(wrong, KMismatch) else 0
        guestbook.refuse(self.desk.file.m, change, self.book, number, k, str(wrong))

    # The cluster.

    def is_over(self, number: int) -> None:
        """What was asked for this guest is to be released or withdrawn."""
        asked = self.requests.pop(number, None)
        if asked is not None:
            self.over.append(asked)

    def tell_cluster(self, wishes: list[Wish]) -> None:
        """Return the slots of those that have left, pass on what nobody is there for, and ask for new guests."""
        ended = self.book.ended
        while ended:
            self.is_over(ended[-1])
            ended.pop()
        again = None
        gate = self.usual(wishes[0]) if self.over and wishes else None
        if gate is not None and gate.asks_again:
            again = self.opened(wishes.pop(0))
        if self.over:
            self.in_step([] if again is None else [again])
        if wishes:
            new = [asked for wish in wishes if (asked := self.opened(wish)) is not None]
            if new:
                self.in_step(new)

    def in_step(self, new: list[Asked]) -> None:
        """Release what is over, then ask for these. What this sends leaves at once, not at the end of this turn of the
        loop. If one of them raises, it does not keep the others from being done in the next turn."""
        traffic, transport, over = self.traffic, self.engine.transport, self.over
        before, quiet = transport.hold(), traffic.quiet_thread
        traffic.lock.take()  # a step, without the cost of `with`
        traffic.quiet_thread = 0
        try:
            traffic.now = calls.clock()
            if over and new and over[0].gate is new[0].gate:
                self.ask(new.pop(0), over[0])
                over.popleft()
            while over:
                self.release(over[0])
                over.popleft()
            for asked in new:
                self.ask(asked, None)
            if traffic.local:
                self.engine.deliver_local()
        finally:
            traffic.quiet_thread = quiet
            traffic.lock.give()
            transport.let_go(before)

    def release(self, asked: Asked) -> None:
        try:
            asked.gate.release(asked.ticket)
        except Exception as wrong:
            asked.gate.spoil(wrong)  # perhaps half-way
            self.over.rotate(-1)  # the others come first in the next turn
            raise

    def opened(self, wish: Wish) -> Asked | None:
        """The request for a new guest, of the gate as it expects it. None if it is refused, or has to wait."""
        try:
            gate = self.gate(wish)
        except FairgateError as wrong:
            old = self.engine.gates.get(self.name)
            if isinstance(wrong, KMismatch) and old is not None and not old.tickets:
                if self.reopening is not old:
                    self.reopening = old
                    self.engine.spawn(self.reopen(old))
            elif not isinstance(wrong, GateClosed):  # else this peer is leaving
                self.refusals[wish.number] = wrong
            return None
        asked = Asked(self, wish.number, gate)
        asked.ticket.guest, asked.ticket.note = wish.guest, wish.note
        return asked

    def gate(self, wish: Wish) -> LiveGate:
        """As the engine's. Nearly every guest wants what the one before wanted, so that is not checked again."""
        gate = self.usual(wish)
        if gate is None:
            gate = self.latest = self.engine.gate(self.name, wish.k, wish.protocol)
            self.latest_wish = (wish.k, wish.protocol)
        return gate

    def usual(self, wish: Wish) -> LiveGate | None:
        """The gate that the latest guest wanted, if it can still be used and this guest wants the same."""
        gate, engine = self.latest, self.engine
        if gate is None or gate.closed or engine.gates.get(self.name) is not gate or self.name in engine.reopened:
            return None
        return gate if self.latest_wish == (wish.k, wish.protocol) else None

    async def reopen(self, old: LiveGate) -> None:
        """Nobody here uses the gate any more: give up its seats, so that it can have another k."""
        try:
            await self.engine.close_gate(old)
        finally:
            self.reopening = None
        self.called.add(ALL)
        self.run()

    def ask(self, asked: Asked, old: Asked | None) -> None:
        """In the same step, `old` returns its slot. The gate keeps its seats, and doubles them if there are too few.

        The request is recorded first: the slot of one that nobody knows of would never come back.
        """
        asked.gate.fewest = FEWEST_SEATS
        try:
            self.requests[asked.number] = asked
            guestbook.has_asked(self.book, asked.number)
            if old is None:
                asked.gate.acquire(asked.ticket)
            else:
                asked.gate.again(old.ticket, asked.ticket)
        except FairgateError as wrong:
            asked.ticket.refuse(wrong)
        except Exception as wrong:
            if old is not None:
                asked.gate.spoil(wrong)  # perhaps half-way between the two
            self.is_over(asked.number)
            guestbook.ask_again(self.book, asked.number)  # the others come first in the next turn
            raise

    def swap(self, asked: Asked, number: int) -> None:
        """The grant is for another guest, whose request is for the first one from now on."""
        other = self.requests[number]
        other.number, asked.number = asked.number, number
        self.requests[other.number], self.requests[number] = other, asked
        mine, its = asked.ticket, other.ticket
        mine.guest, mine.note, its.guest, its.note = its.guest, its.note, mine.guest, mine.note

    # Watching.

    def watch(self) -> None:
        """Watch the bells of all guests that wait or are inside. Most of them come again: `tick` forgets the rest."""
        owners = set(self.book.owners.values())
        if not self.left_inside and owners <= self.lines.keys():
            return
        self.left_inside &= owners
        unwatched = owners - self.lines.keys() - self.left_inside
        self.crowded = self.crowded or len(unwatched) > MOST_AT_ONCE
        for owner in islice(unwatched, MOST_AT_ONCE):
            fd = calls.open_to_ring(path_of(self.folder, owner))
            if fd >= 0:
                self.lines[owner] = fd
                self.loop.add_reader(fd, self.died, owner)  # epoll always reports errors
            elif owner in self.looked_at:  # it is dead, or cannot be seen, and its processes are still there
                self.left_inside.add(owner)
                self.loop.call_later(LEFT_INSIDE_SECONDS, self.look_at_those_left)
            else:
                self.suspects.add(owner)

    def forget_idle(self) -> None:
        """Stop watching guests that have had no request since the last tick."""
        owners = set(self.book.owners.values())
        for owner in [each for each in self.lines if each in self.idle and each not in owners]:
            self.stop_watching(owner)
        self.idle = self.lines.keys() - owners

    def look_at_those_left(self) -> None:
        self.suspects |= self.left_inside
        self.left_inside.clear()
        self.run()

    def stop_watching(self, owner: int) -> None:
        fd = self.lines.pop(owner, None)
        if fd is not None:
            self.loop.remove_reader(fd)
            os.close(fd)

    def look_later(self, when: int) -> None:
        """Look at that time at the latest. A timer that is due earlier stays: most ends are moved before they come."""
        if self.timer is not None and (not when or self.timer_at <= when):
            return
        self.stop_timer()
        if when:
            self.timer_at = when
            self.timer = self.loop.call_later(max(0, when - calls.clock()) / SECOND, self.look_at_all)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def look_at_all(self) -> None:
        self.timer = None
        self.called.add(ALL)
        self.run()

    # The end.

    def withdraw_all(self) -> None:
        """Before this peer leaves: the cluster should not grant anything any more."""
        for number in list(self.book.asked):
            self.is_over(number)
            guestbook.ask_again(self.book, number)
        self.called.add(ALL)
        self.run()

    def drop_requests(self) -> None:
        """This peer has another id since it was excluded: it asks again for all that wait."""
        for number in list(self.requests):
            self.is_over(number)
        self.called.add(ALL)

    def remove_if_unused(self) -> None:
        """If no guest has the room open. The next one creates another file and rings the doorbell."""
        file, self.quiet = self.desk.file, 0
        if not calls.try_lock(file.fd):
            return
        try:
            unused = is_unused(file.fd, self.folder, file.path)
            if unused:
                os.unlink(file.path)
        finally:
            calls.unlock(file.fd)
        if unused:
            self.close()

    def leave(self) -> None:
        """This peer leaves the cluster, which gets all slots back: the guests inside lose their permits."""
        if not self.closed:
            self.desk.finish(lambda change: guestbook.leave(self.desk.file.m, change, self.book))
            self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for owner in list(self.lines):
                self.stop_watching(owner)
            self.stop_timer()
            self.loop.remove_reader(self.bell.fd)
            self.bell.close()
            self.desk.close_lines()
            self.desk.file.close()
