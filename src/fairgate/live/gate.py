"""One gate as one peer has it: its seats here, their nodes, and the view that counts.

A request takes a free seat, or a new one: then the roster changes, the gate comes under a new view, and a census lets
the newcomer in (recovery/regenerate.py). Seats are kept for the next request. All methods are called under the engine's
lock; what nodes send goes out through the engine when the step is over.

**The same again.** Whoever leaves while nobody waits anywhere, as far as its node knows (`alone`), keeps its seat: the
node is not told. The next request here is let in by that, one fence further, and nobody is asked. The moment the node
hears anything at all, it is told first what it missed (`release_kept`). So a message that was read is never overtaken;
one that has arrived and was not read yet could be, so after every `RETAKES` such entries all of it is read.
"""

import logging
from collections.abc import Callable
from random import SystemRandom
from typing import Protocol

from fairgate.core.ids import NIL, identity
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import FENCE_COUNT_BITS, Options, Setup
from fairgate.errors import BadInput, FairgateError, GateClosed
from fairgate.live.ticket import INSIDE, NO_DEADLINE, OVER, WAITING, Ticket
from fairgate.live.uplink import Uplink
from fairgate.net import roster
from fairgate.net.roster import MOST_K, SeatRecord
from fairgate.recovery.regenerate import Regenerate

GHOST_REQUEST = 0  # people's requests begin with 1
RETAKES = 64
LATE = 1 << 31  # of the 2^32 fences of a view
chance = SystemRandom()

log = logging.getLogger("fairgate.live")


class GateOwner(Protocol):
    """The engine, as a gate sees it."""

    journals: "NoJournals"

    @property
    def traffic(self) -> Uplink: ...

    def sit(self, gate: "LiveGate") -> None:
        """It has new seats, which the roster should have too."""

    def renew(self, gate: "LiveGate") -> None: ...

    def lease_begins(self, gate: "LiveGate", ticket: Ticket) -> None: ...


class LiveGate:
    def __init__(self, owner: GateOwner, name: str, k: int, protocol: str, make: MakeNode, options: Options) -> None:
        self.owner = owner
        self.uplink = owner.traffic
        self.name = name
        self.k = k
        self.protocol = protocol
        self.make = make
        self.options = options
        self.regenerate = owner.journals.opened(self)
        self.record = roster.GateRecord(name, k, protocol, 0)
        self.hosts: dict[int, int] = {}  # by seat: the peer to send to
        self.nodes: dict[int, Regenerate] = {}  # of all seats that are or were hosted here
        self.seats = 0  # that were ever made here
        self.free: list[int] = []  # seats, the last released last: it may still have a token
        self.tickets: dict[int, Ticket] = {}  # by seat
        self.standing: list[int] = []  # new seats that the roster was not told of yet
        self.unseated: set[int] = set()  # new seats that are in no view yet
        self.broken: Ticket | None = None  # a step about it was broken off half-way
        self.requests = GHOST_REQUEST
        self.kept: Ticket | None = None  # its user has left, and its node does not know
        self.retaken: Ticket | None = None  # the last that came in by it
        self.retakes = 0  # in a row, by that seat
        self.closed = ""  # why
        self.counts = Counts()

    # Requests.

    def acquire(self, ticket: Ticket) -> None:
        if self.broken is not None:
            self.repair()
        if self.closed:
            raise GateClosed(self.closed)
        self.release_kept()
        ident = self.free.pop() if self.free else self.new_seat()
        ticket.asked = self.uplink.now
        ticket.state = WAITING
        self.requests += 1
        ticket.number = self.requests
        ticket.ident = ident
        self.tickets[ident] = ticket
        self.node(ident).on_acquire(ticket.number)

    def retake(self, note: str) -> Ticket | None:
        """In again by the seat that was kept, if there is one."""
        old = self.kept
        if old is None or self.closed or self.broken is not None or is_late(old.fence):
            return None  # if it is late, the next grant asks for another view
        self.retaken = ticket = old.again(self.uplink.now, note)
        self.kept = None
        self.retakes += 1
        self.counts.entries += 1
        self.tickets[old.ident] = ticket
        return ticket

    def new_seat(self) -> int:
        if self.seats == MOST_K:
            raise BadInput(f"gate {self.name}: {MOST_K} requests of one peer at once are the most")
        ident = identity(self.uplink.me, self.seats)
        self.seats += 1
        self.nodes[ident] = self.new_node(ident)
        self.unseated.add(ident)
        if not self.standing:
            self.owner.sit(self)  # before it stands: if this is broken off in between, somebody looks in vain, no more
        self.standing.append(ident)
        return ident

    def release(self, ticket: Ticket) -> None:
        """To release what is over, lost or was never let in is nothing, so that it can be done to be sure."""
        if self.broken is not None:
            self.repair()
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

    def release_kept(self) -> None:
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

    def refuse(self, idents: list[int], error: FairgateError) -> None:
        """These seats cannot be had. Who sits there now need not be who asked for them first."""
        for ident in idents:
            self.unseated.discard(ident)
            ticket = self.tickets.pop(ident, None)
            if ticket is not None:
                ticket.refuse(error)
            self.nodes.pop(ident, None)
        self.free = [ident for ident in self.free if ident not in idents]

    def repair(self) -> None:
        """A step was broken off: nothing counts here before another view, and the request it was about is over."""
        ticket, self.broken = self.broken, None
        assert ticket is not None
        self.kept = None
        if ticket.state in (WAITING, INSIDE):
            ticket.state = OVER
        self.tickets = {ident: one for ident, one in self.tickets.items() if one is not ticket}
        for ident, node in self.nodes.items():
            node.wait_for_view()
            if ident not in self.tickets and node.request > GHOST_REQUEST:
                node.ended(node.request)
        seats = [seat.ident for seat in self.record.seats if self.is_own(seat)]
        self.free = [ident for ident in [*seats, *sorted(self.unseated)] if ident not in self.tickets]
        self.owner.renew(self)

    # What nodes say.

    def granted(self, ident: int, request: int, slot: int, fence: int) -> None:
        ticket = self.tickets.get(ident)
        if ticket is None or ticket.number != request or ticket.state != WAITING:
            return
        self.counts.entered(self.uplink.now - ticket.asked)
        ticket.let_in(self.uplink.now, slot, fence)
        self.uplink.tell(self, ticket)
        if ticket.deadline != NO_DEADLINE:
            self.owner.lease_begins(self, ticket)
        if is_late(fence):
            self.owner.renew(self)

    def was_lost(self, ident: int, request: int, why: str) -> None:
        ticket = self.tickets.pop(ident, None)
        if ticket is not None and ticket.number == request and ticket.state == INSIDE:
            self.tell_lost(ticket, why)

    # Messages.

    def on_message(self, dst: int, src: int, msg: Message) -> None:
        if self.broken is not None:
            self.repair()
        if dst in self.nodes:
            self.counts.received += 1
            if self.kept is not None:
                self.release_kept()
            self.node(dst).on_message(src, msg)

    def send(self, src: int, dst: int, msg: Message) -> None:
        host = self.hosts.get(dst, NIL)
        if host != NIL:
            self.counts.sent += host != self.uplink.me
            self.uplink.send(host, self.name, dst, src, msg)

    # Views.

    def adopt(self, record: roster.GateRecord) -> None:
        """Also when it is closed: until the others know, they count its seats, and a census waits for all."""
        if self.broken is not None:
            self.repair()
        if record.view <= self.record.view:
            return
        log.debug("gate %s is under view %d: %s", self.name, record.view, record.seats)
        self.release_kept()
        self.record = record
        self.counts.views += 1
        self.hosts = {seat.ident: seat.host for seat in record.seats}
        self.unseated -= self.hosts.keys()
        for seat in record.seats:
            if seat.host == self.uplink.me and seat.ident not in self.nodes:
                self.host(seat)
        members = record.idents()
        for ident in list(self.nodes):
            if ident in self.unseated or self.hosts.get(ident) == self.uplink.me:
                self.node(ident).on_view(record.view, members)
            else:
                self.no_longer_here(ident)
        mine = [seat.ident for seat in record.seats if self.is_own(seat)]
        known = {ident: None for ident in self.free if ident in self.nodes}  # in their order
        self.free = [ident for ident in [*mine, *known] if ident not in known and ident not in self.tickets] + [*known]

    def is_own(self, seat: SeatRecord) -> bool:
        """One for requests of this peer."""
        return seat.host == self.uplink.me and not seat.virtual and not seat.ghost

    def no_longer_here(self, ident: int) -> None:
        node = self.nodes.pop(ident)
        if node.inside:
            self.was_lost(ident, node.request, "its seat was given up")

    def host(self, seat: SeatRecord) -> None:
        """One that is nobody's."""
        node = self.nodes[seat.ident] = self.new_node(seat.ident)
        if seat.ghost:
            node.is_inside(GHOST_REQUEST, seat.slot)

    def new_node(self, ident: int) -> Regenerate:
        """Of whatever setup: its first view brings the real one."""
        anybody = (ident, *range(1, self.k))
        node = self.regenerate(ident, Setup(anybody, self.k, options=self.options), SeatOutbox(self, ident), self.make)
        node.wait_for_view()
        return node

    def node(self, ident: int) -> Regenerate:
        node = self.nodes[ident]
        node.now = self.uplink.now
        return node

    # The end.

    def close(self, why: str) -> None:
        """Who waits is refused, who is inside loses its permit; what they had passes on."""
        self.closed = self.closed or why
        for ticket in list(self.tickets.values()):
            was = ticket.state
            self.end(ticket)
            if was == INSIDE:
                self.tell_lost(ticket, why)
            else:
                ticket.refuse(GateClosed(why))
        self.release_kept()

    def is_unused(self) -> bool:
        """Nobody asked for anything here, or nobody got it: its k and its protocol may have been a mistake."""
        return not (self.tickets or self.unseated or self.mine())

    def mine(self) -> tuple[int, ...]:
        return tuple([seat.ident for seat in self.record.seats if self.is_own(seat)])


def is_late(fence: int) -> bool:
    """Are a view's fences about to be used up? One that ran over would be a fence of the next view."""
    return fence != NIL and fence & (1 << FENCE_COUNT_BITS) - 1 > LATE


class NoJournals:
    """Steps are not written: journals.py has those that do."""

    def opened(self, gate: LiveGate) -> Callable[[int, Setup, Outbox, MakeNode], Regenerate]:
        """How to make its nodes."""
        return Regenerate

    def close(self) -> None:
        pass


NO_JOURNALS = NoJournals()


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
