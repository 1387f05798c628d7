"""One gate at one peer: its local seats, their nodes, and the current view.

A request takes a free seat or a new one. A new seat changes the roster, so the gate gets a new view, and a census
admits the newcomer (recovery/regenerate.py). Seats are kept for later requests. All methods are called under the
engine's lock; what nodes send goes out through the engine when the step ends.

**Retaking.** When a holder leaves and, as far as its node knows, nobody is waiting anywhere (`alone`), the node is not
told of the release. The next local request is granted the same seat at once, with the fence raised by one and without
any message. Before the node receives anything, it is told about the release it missed (`release_kept`). So only
messages that were not read yet are overtaken, and after every `RETAKES` such entries everything that arrived is read.

**Leases.** A peer may only let users in while it has a lease (recovery/views.py). A grant that comes while it has none
is *withheld*: the node is inside, but its user waits until there is a lease again. Shortly before a lease is over, all
permits are lost (`lose_all`); when it is over, their slots are free (`lease_ended`), and not before, even if the gate
is closed meanwhile. A peer that finds itself excluded starts again under another id (`start_again`).

**Rest.** A gate that nobody here has used for a while gives up its seats (resting.py). Until the roster lists them no
more, they still answer censuses, and new requests wait without a seat: the roster must not be asked for seats that it
may be about to remove. Then all seats are forgotten, and those requests get new ones (`rested`).
"""

import logging
from random import SystemRandom

from msgspec.structs import replace

from fairgate.core.ids import NIL, identity, peer_of
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.mutex import asks_again
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Options, Setup
from fairgate.errors import BadInput, FairgateError, GateClosed
from fairgate.live.counts import Counts
from fairgate.live.gate_checks import EarlyMessages, described, is_late, stopping
from fairgate.live.gate_owner import GateOwner
from fairgate.live.ticket import INSIDE, LOST, NO_DEADLINE, OVER, WAITING, Ticket
from fairgate.net.rationed_log import RationedLog
from fairgate.recovery.census import Answer, Dated, Install
from fairgate.recovery.regenerate import Regenerate
from fairgate.recovery.roster import MOST_REQUESTS, GateRecord
from fairgate.registry import find_protocol

RETAKES = 64
chance = SystemRandom()

log = logging.getLogger("fairgate.live")
spoils = RationedLog(log)


class LiveGate:
    def __init__(self, owner: GateOwner, name: str, k: int, protocol: str, make: MakeNode, options: Options) -> None:
        self.owner = owner
        self.uplink = owner.traffic
        self.name = name
        self.k = k
        self.protocol = protocol
        self.make = make
        self.options = options
        self.asks_again = k == 1 and asks_again(find_protocol(protocol))
        self.regenerate = owner.journals.opened(self)
        self.record = GateRecord(name, k, protocol, 0)
        self.idents: set[int] = set()  # all seats of the view
        self.nodes: dict[int, Regenerate] = {}  # of all seats that are or were hosted here
        self.seats = 0  # created here so far: their identities are (peer, 0), (peer, 1), ...
        self.fewest = 1  # to ask for
        self.free: list[int] = []  # the seat released last is last: it may still have a token
        self.tickets: dict[int, Ticket] = {}  # by seat: waiting, inside, or lost with the lease and still stopping
        self.withheld: list[Ticket] = []  # granted while this peer had no lease
        self.standing = False  # there are new seats that have not been sent to the roster yet
        self.unseated: set[int] = set()  # new seats that are in no view yet
        self.broken: Ticket | None = None  # a step for this ticket was interrupted half-way
        self.early = EarlyMessages()  # of views that we do not know yet
        self.requests = 0
        self.kept: Ticket | None = None  # released by its user, but its node has not been told
        self.retaken: Ticket | None = None  # the latest ticket that entered by retaking
        self.retakes = 0  # in a row
        self.renewed = NIL  # the view that was asked to be replaced, because its fences run out
        self.used = 0  # ns: when a user last left
        self.pinned = False  # it never rests
        self.resting = False  # its seats are being given up
        self.closed = ""  # the reason, once it is
        self.leads = False  # a census that is not over
        self.counts = Counts()

    # Requests.

    def acquire(self, ticket: Ticket) -> None:
        if self.broken is not None:
            self.repair()
        if self.closed:
            raise GateClosed(self.closed)
        if self.resting:
            self.begin(ticket, -1 - self.requests)  # no seat has such a number
            return
        self.release_kept()
        ident = self.free.pop() if self.free else self.new_seat()
        self.begin(ticket, ident)
        try:
            self.node(ident).on_acquire(ticket.number)
        except Exception as wrong:
            self.spoil(wrong)

    def begin(self, ticket: Ticket, ident: int) -> None:
        ticket.asked = self.uplink.now
        ticket.state = WAITING
        self.requests += 1
        ticket.number = self.requests
        ticket.ident = ident
        self.tickets[ident] = ticket

    def retake(self, note: str) -> Ticket | None:
        """Enters by the kept seat, if there is one."""
        old = self.kept
        if old is None or self.closed or self.broken is not None or is_late(old.fence) or not self.uplink.has_lease():
            return None  # if fences run out, the next regular grant asks for a new view
        self.retaken = ticket = old.again(self.uplink.now, note)
        self.kept = None
        self.retakes += 1
        self.counts.entries += 1
        self.tickets[old.ident] = ticket
        return ticket

    def new_seat(self) -> int:
        if self.seats == MOST_REQUESTS:
            raise BadInput(f"gate {self.name}: a peer can have at most {MOST_REQUESTS} requests at a time")
        ident = identity(self.uplink.me, self.seats)
        self.seats += 1
        self.nodes[ident] = self.new_node(ident)
        self.unseated.add(ident)
        if not self.standing:
            self.owner.sit(self)  # before the assignment: an interrupt in between only causes a superfluous look
        self.standing = True
        return ident

    def seats_to_ask_for(self) -> int:
        """At least as many as there are. Each time twice as many as before, as every change costs a census."""
        return max(self.fewest, 1 << (self.seats - 1).bit_length())

    def release(self, ticket: Ticket) -> None:
        """Withdraws a waiting request or releases a held permit. A no-op in any other state."""
        if self.broken is not None:
            self.repair()
        if ticket.state in (WAITING, INSIDE):
            self.end(ticket, ticket.state)
            ticket.state = OVER
        elif self.tickets.get(ticket.ident) is ticket:  # lost with the lease, and its user has stopped
            del self.tickets[ticket.ident]
            self.leave(ticket)

    def again(self, old: Ticket, ticket: Ticket) -> None:
        """`release(old)`, then `acquire(ticket)`: one step of one seat if others wait, for which a protocol that
        `asks_again` needs fewer messages."""
        inside = old.state == INSIDE and self.tickets.get(old.ident) is old
        if not inside or self.broken is not None or self.closed or self.nodes[old.ident].alone():
            self.release(old)
            self.acquire(ticket)
            return
        self.release_kept()
        self.begin(ticket, old.ident)
        old.state = OVER
        try:
            node = self.node(old.ident)
            if old.retakes:
                node.retaken(old.retakes)
            node.on_again(old.number, ticket.number)
        except Exception as wrong:
            self.spoil(wrong)

    def lose(self, ticket: Ticket, why: str) -> None:
        """Ends a held permit: its user is notified and the slot passes on."""
        if ticket.state == INSIDE:
            self.tell_lost(ticket, why)
            self.end(ticket, INSIDE)

    def end(self, ticket: Ticket, was: str) -> None:
        """Frees the seat of a ticket that was in this state, or keeps it for retaking.

        A permit that is lost must not be valid any more: its slot may pass on at once.
        """
        if self.tickets.get(ticket.ident) is not ticket:
            return
        del self.tickets[ticket.ident]
        self.used = self.uplink.now
        if ticket.ident < 0:
            return
        if was != INSIDE:
            self.free.append(ticket.ident)
            try:
                self.node(ticket.ident).on_cancel(ticket.number)
            except Exception as wrong:
                self.spoil(wrong)
        elif self.kept is None and self.nodes[ticket.ident].alone():
            self.kept = ticket
        else:
            self.leave(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Tells the node that its user has left."""
        self.free.append(ticket.ident)
        try:
            node = self.node(ticket.ident)
            if ticket.retakes:
                node.retaken(ticket.retakes)
            node.on_release(ticket.number)
        except Exception as wrong:
            self.spoil(wrong)

    def release_kept(self) -> None:
        """Tells the node of the kept ticket about the release. Must come before a node receives anything."""
        ticket = self.kept
        if ticket is not None:
            self.kept = None
            self.retakes = 0
            self.leave(ticket)

    def tell_lost(self, ticket: Ticket, why: str) -> None:
        self.counts.lost += 1
        ticket.lose(why)
        which = "the permit" if ticket.slot == NIL else f"the permit for slot {ticket.slot}"
        log.warning("gate %s: %s was lost: %s", self.name, which, why)

    def refuse(self, error: FairgateError) -> None:
        """The new seats were rejected: refuses the requests that use them now."""
        for ident in sorted(self.unseated):
            ticket = self.tickets.pop(ident, None)
            if ticket is not None:
                ticket.refuse(error)
            self.nodes.pop(ident, None)
        self.free = [ident for ident in self.free if ident not in self.unseated]
        self.unseated = set()
        self.seats = self.record.seats(self.uplink.me)

    def spoil(self, wrong: Exception) -> None:
        """A node has failed: some peer must have sent it a message that is not part of the protocol. Users do not
        notice. The gate gets a new view, whose census rebuilds it."""
        spoils.error("gate %s gets a new view, because its state is not valid: %s", self.name, described(wrong))
        self.broken = Ticket()  # no request in particular
        self.owner.spoiled(self)

    def repair(self) -> None:
        """Recovers from an interrupted step: ends the request it was for, and ignores everything until a new view."""
        ticket, self.broken = self.broken, None
        assert ticket is not None
        self.kept = None
        if ticket.state in (WAITING, INSIDE):
            ticket.state = OVER
        self.tickets = {ident: one for ident, one in self.tickets.items() if one is not ticket}
        for ident, node in self.nodes.items():
            node.wait_for_view()
            if ident not in self.tickets and node.request > 0:
                node.ended(node.request)
        self.free = [ident for ident in [*self.mine(), *sorted(self.unseated)] if ident not in self.tickets]
        self.owner.renew(self)

    # Called by nodes.

    def granted(self, ident: int, request: int, slot: int, fence: int) -> None:
        ticket = self.tickets.get(ident)
        if ticket is None or ticket.number != request or ticket.state != WAITING:
            return
        if is_late(fence) and self.renewed != self.record.view:
            self.renewed = self.record.view  # once: the owner repeats it until there is another view
            self.owner.renew(self)
        ticket.slot, ticket.fence = slot, fence
        if self.uplink.has_lease():
            self.let_in(ticket)
        else:
            self.withheld.append(ticket)

    def let_in(self, ticket: Ticket) -> None:
        self.counts.entered(self.uplink.now - ticket.asked)
        ticket.let_in(self.uplink.now, ticket.slot, ticket.fence)
        self.uplink.tell(self, ticket)
        if ticket.deadline != NO_DEADLINE:
            self.owner.lease_begins(self, ticket)

    def was_lost(self, ident: int, request: int, why: str) -> None:
        ticket = self.tickets.pop(ident, None)
        if ticket is not None and ticket.number == request and ticket.state == INSIDE:
            self.tell_lost(ticket, why)

    # The lease of this peer.

    def let_in_withheld(self) -> None:
        """There is a lease again."""
        withheld, self.withheld = self.withheld, []
        for ticket in withheld:
            if ticket.state == WAITING and self.tickets.get(ticket.ident) is ticket:
                self.let_in(ticket)

    def lose_all(self, why: str) -> bool:
        """The lease of this peer is ending. Users are told to stop, and their slots stay taken until `lease_ended`.
        Returns whether there are any."""
        self.release_kept()
        lost = [ticket for ticket in self.tickets.values() if ticket.state == INSIDE]
        for ticket in lost:
            self.tell_lost(ticket, why)
        return bool(lost)

    def lease_ended(self) -> None:
        """All users that were told to stop have done so."""
        for ticket in stopping(self.tickets):
            del self.tickets[ticket.ident]
            self.leave(ticket)

    def start_again(self, why: str) -> None:
        """This peer was excluded and has another id now. Held permits are lost; waiting requests ask again, in the
        order in which they asked first. All seats are new."""
        had_seats = self.seats > 0
        self.forget_seats(GateRecord(self.name, self.k, self.protocol, 0), why)
        if had_seats and not self.closed and not self.seats:
            self.free.append(self.new_seat())  # or the gate might end, and its k with it

    def forget_seats(self, record: GateRecord, why: str) -> None:
        tickets = sorted(self.tickets.values(), key=lambda ticket: ticket.asked)
        self.broken = self.kept = None
        self.record = record
        self.idents, self.nodes, self.tickets = set(), {}, {}
        self.free, self.withheld, self.unseated, self.early = [], [], set(), EarlyMessages()
        self.seats, self.standing, self.resting = 0, False, False
        for ticket in tickets:
            if ticket.state == INSIDE:
                self.tell_lost(ticket, why)
            elif ticket.state == WAITING:
                self.ask_again(ticket)

    def ask_again(self, ticket: Ticket) -> None:
        ticket.ident = self.new_seat()
        self.tickets[ticket.ident] = ticket
        node = self.nodes[ticket.ident]
        node.now = ticket.asked  # it has waited since then, so that a census gives it its old place
        node.on_acquire(ticket.number)

    # Rest.

    def is_idle(self) -> bool:
        """Whether its seats can be given up."""
        used = self.tickets or self.unseated or self.pinned or self.broken is not None
        return not (used or self.resting or self.closed or self.has_census_under_way())

    def rest(self) -> None:
        """The owner asks for the removal of its seats now."""
        self.release_kept()
        self.resting = True

    def rested(self) -> None:
        """The roster lists no seat of this peer. The number of the view stays: later ones are higher."""
        self.forget_seats(replace(self.record, hosts=(), ghosts=()), "")
        if self.pinned and not self.seats:
            self.free.append(self.new_seat())

    # Messages.

    def on_message(self, dst: int, src: int, msg: Message) -> None:
        if self.broken is not None:
            self.repair()
        if view_of(msg) > self.record.view:
            if peer_of(dst) == self.uplink.me:  # it may be a seat that the new view brings
                self.early.keep(dst, src, msg)
            return
        if dst not in self.nodes or src not in self.idents or dst in self.unseated:
            return  # the last: for a seat of this number that was given up
        self.counts.received += 1
        if self.kept is not None:
            self.release_kept()
        try:
            self.node(dst).on_message(src, msg)
        except Exception as wrong:
            self.spoil(wrong)
            raise
        if self.leads and not self.has_census_under_way():
            self.leads = False
            self.owner.census_is_over()

    def send(self, src: int, dst: int, msg: Message) -> None:
        if dst in self.idents:
            host = peer_of(dst)
            self.counts.sent += host != self.uplink.me
            self.uplink.send(host, self.name, dst, src, msg)

    # Views.

    def adopt(self, record: GateRecord) -> None:
        """Installs a new view, even when closed: until the others know, the census waits for this gate's seats."""
        if self.broken is not None:
            self.repair()
        if record.view <= self.record.view:
            return
        log.debug("gate %s has view %d: %s, ghosts %s", self.name, record.view, record.hosts, record.ghosts)
        self.release_kept()
        self.record = record
        self.counts.views += 1
        members, ghosts = record.idents(), record.ghost_idents()
        self.idents = set(members)
        self.unseated -= self.idents
        self.seats = max(self.seats, record.seats(self.uplink.me))
        self.leads = record.warden() == self.uplink.me
        for ident in members:
            if peer_of(ident) == self.uplink.me and ident not in self.nodes:
                self.nodes[ident] = self.new_node(ident)
        for ident in list(self.nodes):
            if ident in self.idents:
                self.node(ident).on_view(record.view, members, ghosts)
            elif ident not in self.unseated:
                self.no_longer_here(ident)
        self.deliver_early()
        known = {ident: None for ident in self.free if ident in self.nodes}  # keeps their order
        new = [ident for ident in self.mine() if ident not in known and ident not in self.tickets]
        self.free = [*new, *known]

    def deliver_early(self) -> None:
        for dst, src, msg in self.early.take():
            try:
                self.on_message(dst, src, msg)
            except Exception as wrong:  # the gate has dealt with it (`spoil`)
                log.debug("gate %s: %s", self.name, described(wrong))

    def no_longer_here(self, ident: int) -> None:
        node = self.nodes.pop(ident)
        if node.inside:
            self.was_lost(ident, node.request, "its seat was removed from the gate")

    def new_node(self, ident: int) -> Regenerate:
        """A node with a placeholder setup: its first view brings the real one."""
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
        """Refuses waiting requests and ends held permits; their slots pass on. Users that were told to stop because of
        the lease keep theirs until `lease_ended`."""
        self.closed = self.closed or why
        for ticket in [ticket for ticket in self.tickets.values() if ticket.state != LOST]:
            was = ticket.state
            if was == INSIDE:
                self.tell_lost(ticket, why)
            else:
                ticket.refuse(GateClosed(why))
            self.end(ticket, was)
        self.release_kept()

    def is_unused(self) -> bool:
        """True if no request here is pending or has a seat, so that k and protocol may still be changed."""
        return not (self.tickets or self.unseated or self.mine())

    def mine(self) -> tuple[int, ...]:
        """The seats in the view that requests of this peer can use."""
        return tuple([identity(self.uplink.me, seat) for seat in range(self.record.seats(self.uplink.me))])

    def has_census_under_way(self) -> bool:
        """Whether a seat of this peer leads a census that is not over."""
        leader = self.nodes.get(identity(self.uplink.me, 0))
        return self.record.warden() == self.uplink.me and leader is not None and not leader.census_over()


def view_of(msg: Message) -> int:
    """The number of the view that a message of the census belongs to. ValueError if it is no such message."""
    if type(msg) is Dated:
        return msg.epoch
    if isinstance(msg, Answer | Install):
        return msg.view
    raise ValueError(f"{msg.tag} is not a message between seats")


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
