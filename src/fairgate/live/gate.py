"""One gate as one peer has it: its seats here, their nodes, and the view that counts.

A request takes a free seat, or a new one: then the roster changes, the gate comes under a new view, and a census lets
the newcomer in (recovery/regenerate.py). Seats are kept for the next request. All methods are called under the engine's
lock; what nodes send goes out through the engine when the step is over.

**The same again.** Whoever leaves while nobody waits anywhere, as far as its node knows (`alone`), keeps its seat: the
node is not told. The next request here is let in by that, one fence further, and nobody is asked. The moment the node
hears anything at all, it is told first what it missed (`settle`). So a message that was read is never overtaken; one
that has arrived and was not read yet could be, so every `RETAKES` such entries the engine is given time to read.
"""

import logging
from random import SystemRandom
from typing import Protocol

from fairgate.core.ids import NIL, identity
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import FENCE_COUNT_BITS, Setup
from fairgate.errors import FairgateError, GateClosed
from fairgate.live.ticket import INSIDE, NO_DEADLINE, OVER, WAITING, Ticket
from fairgate.net import roster
from fairgate.net.roster import Seat
from fairgate.recovery.regenerate import Regenerate

GHOST_REQUEST = 0  # people's requests begin with 1
RETAKES = 256
FENCES_LEFT = 1 << 31  # of a view's 2^32: when fewer are left, it is time for another view
chance = SystemRandom()

log = logging.getLogger("fairgate.live")


class Home(Protocol):
    """The engine, as a gate sees it."""

    me: int
    now: int

    def send(self, host: int, gate: str, dst: int, src: int, msg: Message) -> None: ...

    def sit(self, gate: "LiveGate") -> None:
        """It has new seats, which the roster should have too."""

    def renew(self, gate: "LiveGate") -> None: ...

    def lease_begins(self, gate: "LiveGate", ticket: Ticket) -> None: ...

    def abandoned(self, gate: "LiveGate", ticket: Ticket) -> None: ...


class LiveGate:
    def __init__(self, home: Home, name: str, k: int, protocol: str, make: MakeNode, slots: bool) -> None:
        self.home = home
        self.name = name
        self.k = k
        self.protocol = protocol
        self.make = make
        self.slots = slots
        self.record = roster.Gate(name, k, protocol, 0)
        self.hosts: dict[int, int] = {}  # by seat: the peer to send to
        self.nodes: dict[int, Regenerate] = {}  # of all seats that are or were hosted here
        self.seats = 0  # that were ever made here
        self.free: list[int] = []  # seats, the last released last: it may still have a token
        self.tickets: dict[int, Ticket] = {}  # by seat
        self.standing: list[Ticket] = []  # whose seats the roster does not have yet
        self.requests = GHOST_REQUEST
        self.kept: Ticket | None = None  # its user has left, and its node does not know
        self.retakes = 0  # in a row, by that seat
        self.closed = ""  # why
        self.counts = Counts()

    # Requests.

    def acquire(self, ticket: Ticket) -> None:
        if self.closed:
            raise GateClosed(self.closed)
        self.settle()
        ticket.asked = self.home.now
        ticket.state = WAITING
        self.requests += 1
        ticket.number = self.requests
        if self.free:
            self.take_seat(ticket, self.free.pop())
        else:
            self.take_seat(ticket, self.new_seat())
            self.standing.append(ticket)
            if len(self.standing) == 1:
                self.home.sit(self)

    def retake(self, note: str) -> Ticket | None:
        """In again by the seat that was kept, if there is one."""
        old = self.kept
        if old is None or self.closed:
            return None
        self.kept = None
        self.retakes += 1
        self.counts.entries += 1
        self.tickets[old.ident] = ticket = old.again(self.home.now, note)
        return ticket

    def new_seat(self) -> int:
        ident = identity(self.home.me, self.seats)
        self.seats += 1
        self.nodes[ident] = self.new_node(ident)
        return ident

    def take_seat(self, ticket: Ticket, ident: int) -> None:
        ticket.ident = ident
        self.tickets[ident] = ticket
        self.node(ident).on_acquire(ticket.number)

    def release(self, ticket: Ticket) -> None:
        """To release what is over, lost or was never let in is nothing, so that it can be done to be sure."""
        if ticket.state in (WAITING, INSIDE):
            self.end(ticket)
            ticket.state = OVER

    def lose(self, ticket: Ticket, why: str) -> None:
        """Its user is told, and the slot passes on."""
        if ticket.state == INSIDE:
            self.end(ticket)
            self.tell_lost(ticket, why)

    def end(self, ticket: Ticket) -> None:
        """Its seat is free again, or kept."""
        if self.tickets.get(ticket.ident) is not ticket:
            return
        del self.tickets[ticket.ident]
        if ticket.state != INSIDE:
            self.free.append(ticket.ident)
            self.node(ticket.ident).on_cancel(ticket.number)
        elif self.kept is None and self.nodes[ticket.ident].alone():
            self.kept = ticket
        else:
            self.leave(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Now its node is told."""
        self.free.append(ticket.ident)
        node = self.node(ticket.ident)
        if ticket.retakes:
            node.retaken(ticket.retakes)
        node.on_release(ticket.number)

    def settle(self) -> None:
        """Before a node hears anything: whoever has left is gone."""
        ticket = self.kept
        if ticket is not None:
            self.kept = None
            self.retakes = 0
            self.leave(ticket)

    def tell_lost(self, ticket: Ticket, why: str) -> None:
        log.warning("gate %s: the permit of slot %d is lost: %s", self.name, ticket.slot, why)
        self.counts.lost += 1
        ticket.lose(why)

    def refuse(self, tickets: list[Ticket], error: FairgateError) -> None:
        """They cannot have their seats."""
        for ticket in tickets:
            if self.tickets.get(ticket.ident) is ticket:
                del self.tickets[ticket.ident]
                self.nodes.pop(ticket.ident)
                ticket.refuse(error)

    # What nodes say.

    def granted(self, ident: int, request: int, slot: int, fence: int) -> None:
        ticket = self.tickets.get(ident)
        if ticket is None or ticket.number != request or ticket.state != WAITING:
            return
        self.counts.entered(self.home.now - ticket.asked)
        if not ticket.let_in(self.home.now, slot, fence):
            self.home.abandoned(self, ticket)
        if ticket.deadline != NO_DEADLINE:
            self.home.lease_begins(self, ticket)
        if fence & (1 << FENCE_COUNT_BITS) - 1 > FENCES_LEFT:
            self.home.renew(self)

    def was_lost(self, ident: int, request: int, why: str) -> None:
        ticket = self.tickets.pop(ident, None)
        if ticket is not None and ticket.number == request and ticket.state == INSIDE:
            self.tell_lost(ticket, why)

    # Messages.

    def on_message(self, dst: int, src: int, msg: Message) -> None:
        if dst in self.nodes:
            self.counts.received += 1
            if self.kept is not None:
                self.settle()
            self.node(dst).on_message(src, msg)

    def send(self, src: int, dst: int, msg: Message) -> None:
        host = self.hosts.get(dst, NIL)
        if host != NIL:
            self.counts.sent += host != self.home.me
            self.home.send(host, self.name, dst, src, msg)

    # Views.

    def adopt(self, record: roster.Gate) -> None:
        if record.view <= self.record.view or self.closed:
            return
        log.debug("gate %s is under view %d: %s", self.name, record.view, record.seats)
        self.settle()
        self.record = record
        self.counts.views += 1
        self.hosts = {seat.ident: seat.host for seat in record.seats}
        self.free = [ident for ident in self.free if ident in self.hosts]
        for seat in record.seats:
            if seat.host == self.home.me and seat.ident not in self.nodes:
                self.host(seat)
        members = record.idents()
        for ident in list(self.nodes):
            self.node(ident).on_view(record.view, members)

    def host(self, seat: Seat) -> None:
        """One that is nobody's."""
        node = self.nodes[seat.ident] = self.new_node(seat.ident)
        if seat.ghost:
            node.is_inside(GHOST_REQUEST, seat.slot)

    def new_node(self, ident: int) -> Regenerate:
        """Of whatever setup: its first view brings the real one."""
        anybody = (ident, *range(1, self.k))
        node = Regenerate(ident, Setup(anybody, self.k), SeatOutbox(self, ident), self.make)
        node.wait_for_view()
        return node

    def node(self, ident: int) -> Regenerate:
        node = self.nodes[ident]
        node.now = self.home.now
        return node

    # The end.

    def close(self, why: str) -> None:
        """Who waits is refused, who is inside loses its permit."""
        self.closed = why
        for ticket in list(self.tickets.values()):
            if ticket.state == INSIDE:
                self.tell_lost(ticket, why)
            elif ticket.state == WAITING:
                ticket.refuse(GateClosed(why))
        self.tickets.clear()

    def mine(self) -> tuple[int, ...]:
        return tuple([ident for ident, host in self.hosts.items() if host == self.home.me])


class Counts:
    """Of one gate at one peer, since it was opened here."""

    def __init__(self) -> None:
        self.entries = 0
        self.waited = 0  # ns, of all entries
        self.longest = 0
        self.sent = 0
        self.received = 0
        self.lost = 0
        self.views = 0

    def entered(self, waited: int) -> None:
        self.entries += 1
        self.waited += waited
        if waited > self.longest:
            self.longest = waited


class SeatOutbox(Outbox):
    def __init__(self, gate: LiveGate, ident: int) -> None:
        self.gate = gate
        self.ident = ident

    def send(self, dst: int, msg: Message) -> None:
        self.gate.send(self.ident, dst, msg)

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.gate.granted(self.ident, request, slot, fence)

    def lost(self, request: int, why: str) -> None:
        self.gate.was_lost(self.ident, request, why)

    def choose(self, n: int) -> int:
        return chance.randrange(n)
