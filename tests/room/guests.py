"""A few guests of a cluster's peer at one room: every step of theirs, of the peer, and of the cluster behind it.

The guests and the peer run fairgate.room.rules and guestbook, as live ones do. processes.py has what guests do, as in
any room. The cluster is k slots: it grants any pending request a free one, and it frees the slots of a peer when that
one's lease is over. guests_properties.py says what must hold, and explore_guests.py tries every order of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fairgate.room import layout
from fairgate.room.layout import (
    CLUSTER,
    DEADLINE,
    DIRTY,
    GRANTED_BY,
    INSIDE,
    OWNER,
    PEER_BELL,
    PID,
    PROMISED,
    STATE,
    TICKET,
)
from tests.room.plain import guestbook, links, table
from tests.room.processes import (
    NOW,
    OUT,
    WAITS,
    Broken,
    Process,
    Processes,
    Rings,
    SeenProcesses,
    Words,
    at_first,
    replaced,
)

PAST, LATER = 1, 2 * NOW  # ends of a promise: it is over, or it was made by the peer with this life, which is added
PEER_BELLS = 200  # names from here on are those of the peer's bells
FREE_SLOT = (0, 0)
HEADER_WORDS = (layout.NEXT_TICKET, layout.USED, DIRTY, layout.PEER, PEER_BELL)
SEAT_WORDS = (
    STATE, TICKET, layout.SLOT, layout.FENCE, OWNER, PID, layout.SKIPPED, layout.HEARD,
    GRANTED_BY, PROMISED, layout.CLUSTER_SLOT, DEADLINE,
)  # fmt: skip

Pairs = tuple[tuple[int, int], ...]


class Peer(NamedTuple):
    """The first fields are its guestbook; the next ones what it has at the cluster, by ticket."""

    latest: int
    new: Pairs
    asked: Pairs
    passed: Pairs
    inside: Pairs
    earlier: Pairs
    owners: Pairs
    ended: tuple[int, ...]
    pending: tuple[int, ...]
    arrived: Pairs  # ticket, slot: grants that it has not looked at
    held: Pairs  # ticket, slot
    lost: tuple[int, ...]  # taken back by the cluster
    called: tuple[int, ...]
    to_ring: Rings
    life: int
    up: bool
    stopped: bool
    leased: bool


NO_PEER = Peer(0, (), (), (), (), (), (), (), (), (), (), (), (), (), 0, False, False, False)


class Budget(NamedTuple):
    """How often each of these may happen from now on."""

    deaths: int  # of guests
    cancels: int
    stops: int  # of guests
    starts: int  # of peers
    halts: int  # of peers: one dies, or is stopped
    lapses: int  # of a lease
    fails: int  # turns of a peer that something raises in, after it has changed the table
    revokes: int
    closes: int
    forks: int  # of guests
    leases: int  # of guests, that end


class State(NamedTuple):
    table: tuple[int, ...]
    processes: tuple[Process, ...]  # the guests
    peer: Peer
    slots: Pairs  # of the cluster: the life of the peer that has it, and its fence
    fence: int
    budget: Budget


@dataclass(frozen=True)
class Case:
    guests: int
    k: int
    entries: tuple[int, ...] = ()  # of each guest; one if it is left out
    deaths: int = 0
    cancels: int = 0
    stops: int = 0
    starts: int = 1
    halts: int = 0
    lapses: int = 0
    fails: int = 0
    revokes: int = 0  # by a guest that has no seat
    closes: int = 0  # of its room by another thread of a guest; it may open the room again
    forks: int = 0  # the child has the bell until it drops what it has inherited
    leases: int = 0  # of guests; each ends at any moment


Step = Callable[[Words, table.Change, SeenProcesses], State]  # of the peer; the state that it returns has no table yet
Judge = Callable[[State, State, bool], None]  # of a change; may it have revoked a permit for no other reason?


class Model(Processes):
    def __init__(self, case: Case, judge: Judge) -> None:
        self.case = case
        self.judge = judge
        seats = case.guests + 1
        words = [0] * links.size(case.k + case.guests, seats)
        words[CLUSTER] = 1
        table.create(words, case.k + case.guests, seats, case.k, 0, 0)
        super().__init__(words, HEADER_WORDS, SEAT_WORDS, (1,) * case.guests, case.closes)
        budget = Budget(*[getattr(case, name) for name in Budget._fields])
        self.start = State(tuple(words), at_first(case.entries, self.n), NO_PEER, (FREE_SLOT,) * case.k, 0, budget)

    # One change under the lock.

    def changed(self, state: State, words: Words, i: int, process: Process) -> State:
        breaks = state.processes[i].phase == OUT and process.phase != WAITS  # it has not asked
        return self.judged(state, words, state._replace(processes=replaced(state.processes, i, process)), breaks)

    def judged(self, before: State, words: Words, after: State, breaks: bool = False) -> State:
        after = after._replace(table=tuple(words))
        self.judge(before, after, breaks)
        return after

    def changed_by_peer(self, state: State, step: Step, dead: State | None) -> list[State]:
        """All states that a change can lead to: it succeeds, or the peer dies after some store (`dead`)."""
        words, change, senses = self.begin(state)
        after = step(words, change, senses)
        rings = after.peer.to_ring + self.rings(words, change, None)
        found = [self.judged(state, words, after._replace(peer=after.peer._replace(to_ring=rings)))]
        if dead is not None:
            found += [self.judged(state, part, dead) for part in self.partial_changes(state.table, words.stores)]
        return found

    def turn_of_peer(self, state: State, step: Step) -> list[State]:
        """A change, after which the peer tells the cluster what follows, unless something fails in between."""

        def whole(words: Words, change: table.Change, senses: SeenProcesses) -> State:
            return self.tells(step(words, change, senses))

        def half(words: Words, change: table.Change, senses: SeenProcesses) -> State:
            failed: State = self.spend(step(words, change, senses), fails=1)
            return failed

        dead = self.spend(state._replace(peer=gone(state.peer)), halts=1) if state.budget.halts else None
        found = self.changed_by_peer(state, whole, dead)
        return found + (self.changed_by_peer(state, half, None) if state.budget.fails else [])

    def steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        yield from super().steps(state)
        yield from self.peer_steps(state)
        yield from self.cluster_steps(state)
        if state.budget.leases:
            for seat in self.seats:
                if state.table[seat + STATE] == INSIDE and not state.table[seat + DEADLINE]:
                    yield False, [self.lease_ends(self.spend(state, leases=1), seat)]

    def ring(self, state: State, owner: int, ticket: int) -> State:
        if 0 < owner < PEER_BELLS:
            rung: State = super().ring(state, owner, ticket)
            return rung
        peer = state.peer
        if not peer.up or owner != bell_of(peer):
            return state
        return state._replace(peer=peer._replace(called=tuple(sorted({*peer.called, ticket}))))

    @staticmethod
    def lease_ends(state: State, seat: int) -> State:
        """Time passes."""
        words = list(state.table)
        words[seat + DEADLINE] = NOW
        return state._replace(table=tuple(words))

    # What the peer does.

    def peer_steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        peer = state.peer
        if peer.to_ring and not peer.stopped:  # also one that leaves
            (owner, ticket), rest = peer.to_ring[0], peer.to_ring[1:]
            yield True, [self.ring(state._replace(peer=peer._replace(to_ring=rest)), owner, ticket)]
        if not peer.up:
            if state.budget.starts and not peer.to_ring:
                yield False, self.starts(self.spend(state, starts=1))
            return
        if state.budget.halts:
            yield False, [self.spend(state._replace(peer=gone(peer)), halts=1)]
        if peer.stopped:
            yield False, [state._replace(peer=peer._replace(stopped=False))]
            return
        if state.budget.halts:
            yield False, [self.spend(state._replace(peer=peer._replace(stopped=True)), halts=1)]
            yield False, self.turn_of_peer(self.spend(state, halts=1), lambda *about: self.leaves(state, *about))
        if peer.to_ring:
            return
        if peer.lost:
            yield True, self.turn_of_peer(state, lambda *about: self.revokes(state, *about))
        if not peer.leased:
            yield True, [self.renews(state)]
        if peer.arrived:
            yield True, self.turn_of_peer(state, lambda *about: self.admits(state, *about))
        elif peer.called or self.dead_guests(state) or self.sees_ended_leases(state):
            yield True, self.turn_of_peer(state, lambda *about: self.looks(state, peer.called, *about))
        if peer.new or peer.ended:  # a turn has failed
            yield True, [self.tells(state)]

    def starts(self, state: State) -> list[State]:
        new = NO_PEER._replace(life=state.peer.life + 1, up=True, leased=True)
        fresh = state._replace(peer=new)

        def step(words: Words, change: table.Change, senses: SeenProcesses) -> State:
            book = guestbook.take_over(words, change, senses, new.life, bell_of(new))
            guestbook.look(words, change, senses, book, (0,), ())
            return self.tells(fresh._replace(peer=with_book(new, book)))

        dead = self.spend(state._replace(peer=gone(new)), halts=1) if state.budget.halts else None
        return self.changed_by_peer(state, step, dead)

    def dead_guests(self, state: State) -> set[int]:
        """The owners that the kernel reports to the peer, which watches all that are in its guestbook."""
        return {owner for _, owner in state.peer.owners if self.is_dead(state, owner)}

    @staticmethod
    def sees_ended_leases(state: State) -> bool:
        """The next end of a permit is over, and it is one that the guest's own lease ends."""
        m = list(state.table)
        book = book_of(state.peer)
        permits = [*book.inside.items(), *book.earlier.items()]
        return any(m[seat + DEADLINE] == NOW for ticket, seat in permits if guestbook.is_inside(m, seat, ticket))

    def looks(
        self, state: State, called: tuple[int, ...], words: Words, change: table.Change, senses: SeenProcesses
    ) -> State:
        book = book_of(state.peer)
        guestbook.look(words, change, senses, book, called, self.dead_guests(state))
        return state._replace(peer=with_book(state.peer, book)._replace(called=()))

    @staticmethod
    def tells(state: State) -> State:
        """The peer tells the cluster what is in its guestbook for it."""
        peer, book = state.peer, book_of(state.peer)
        freed = [slot for ticket, slot in (*peer.held, *peer.arrived) if ticket in book.ended]
        pending = tuple([ticket for ticket in peer.pending if ticket not in book.ended])
        arrived, held = [tuple([one for one in part if one[0] not in book.ended]) for part in (peer.arrived, peer.held)]
        book.ended.clear()
        for ticket in list(book.new):
            guestbook.has_asked(book, ticket)
            pending += (ticket,)
        peer = with_book(peer, book)._replace(pending=pending, arrived=arrived, held=held)
        return state._replace(peer=peer, slots=without(state.slots, freed))

    def admits(self, state: State, words: Words, change: table.Change, senses: SeenProcesses) -> State:
        (ticket, slot), rest = state.peer.arrived[0], state.peer.arrived[1:]
        called = (*state.peer.called, ticket)
        state = self.looks(state._replace(peer=state.peer._replace(arrived=rest)), called, words, change, senses)
        book = book_of(state.peer)
        wanted = any(guest.phase == WAITS and guest.ticket == ticket and not guest.closed for guest in state.processes)
        seat = dict(state.peer.asked).get(ticket, 0)
        wanted = wanted or (seat > 0 and guestbook.is_waiting(words, seat, ticket))  # it died, and nobody knows yet
        until = LATER + state.peer.life if state.peer.leased else PAST
        let_in = guestbook.choose(words, change, book, ticket, until)
        if not let_in:
            return state._replace(peer=with_book(state.peer, book), slots=without(state.slots, [slot]))
        if not wanted:
            raise Broken("the turn of a guest that gave up was inherited")
        guestbook.let_in(words, change, book, let_in, slot, state.slots[slot][1], until)
        peer = with_book(state.peer, book)
        if let_in not in (ticket, *peer.pending, *peer.lost, *[other for other, _ in peer.arrived]):
            raise Broken("a guest is let in for which the peer has asked nobody")
        if let_in != ticket:  # they have swapped
            pending, lost = [
                tuple([ticket if each == let_in else each for each in part]) for part in (peer.pending, peer.lost)
            ]
            arrived = tuple([(ticket if each == let_in else each, other) for each, other in peer.arrived])
            peer = peer._replace(pending=pending, lost=lost, arrived=arrived)
        return state._replace(peer=peer._replace(held=(*peer.held, (let_in, slot))))

    def revokes(self, state: State, words: Words, change: table.Change, senses: SeenProcesses) -> State:
        book = book_of(state.peer)
        for ticket in state.peer.lost:
            guestbook.revoke(words, change, book, ticket)
            guestbook.ask_again(book, ticket)
        return state._replace(peer=with_book(state.peer, book)._replace(lost=()))

    def leaves(self, state: State, words: Words, change: table.Change, senses: SeenProcesses) -> State:
        """A planned end: all slots go back to the cluster at once."""
        state = self.spend(state, halts=1)
        guestbook.leave(words, change, book_of(state.peer))
        slots = tuple([FREE_SLOT if holder[0] == state.peer.life else holder for holder in state.slots])
        return state._replace(peer=gone(state.peer), slots=slots)

    @staticmethod
    def renews(state: State) -> State:
        """Without the lock. The peer looks at everything soon after."""
        words, book = Words(state.table), book_of(state.peer)
        guestbook.promise(words, NOW, book, LATER + book.peer)
        called = tuple(sorted({*state.peer.called, 0}))
        return state._replace(table=tuple(words), peer=state.peer._replace(leased=True, called=called))

    # What the cluster does.

    def cluster_steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        peer = state.peer
        free = [slot for slot, holder in enumerate(state.slots) if holder == FREE_SLOT]
        if peer.up and peer.leased and free:
            for ticket in peer.pending:
                yield False, [self.granted(state, ticket, free[0])]
        if state.budget.lapses:
            lives = {life for life, _ in state.slots if life}
            for life in sorted(lives | ({peer.life} if peer.up else set())):
                yield False, [self.lapsed(self.spend(state, lapses=1), life)]

    def granted(self, state: State, ticket: int, slot: int) -> State:
        peer, fence = state.peer, state.fence + 1
        pending = tuple([each for each in peer.pending if each != ticket])
        slots = (*state.slots[:slot], (peer.life, fence), *state.slots[slot + 1 :])
        arrived = (*peer.arrived, (ticket, slot))
        return state._replace(peer=peer._replace(pending=pending, arrived=arrived), slots=slots, fence=fence)

    def lapsed(self, state: State, life: int) -> State:
        """The lease of this peer is over, and so is what it has promised. Its slots are free."""
        words = list(state.table)
        for seat in self.seats:
            if words[seat + GRANTED_BY] == life and words[seat + STATE] == INSIDE:
                words[seat + PROMISED] = PAST
        slots = tuple([FREE_SLOT if holder == life else (holder, fence) for holder, fence in state.slots])
        peer = state.peer
        if peer.up and peer.life == life:
            lost = (*peer.lost, *[ticket for ticket, _ in (*peer.held, *peer.arrived)])
            peer = peer._replace(lost=lost, held=(), arrived=(), leased=False)
        return state._replace(table=tuple(words), slots=slots, peer=peer)


def gone(peer: Peer) -> Peer:
    return NO_PEER._replace(life=peer.life)


def bell_of(peer: Peer) -> int:
    return PEER_BELLS + peer.life


def without(slots: Pairs, freed: list[int]) -> Pairs:
    return tuple([FREE_SLOT if slot in freed else holder for slot, holder in enumerate(slots)])


def book_of(peer: Peer) -> guestbook.Guestbook:
    book = guestbook.Guestbook(peer.life)
    book.latest = peer.latest
    book.new, book.ended = dict(peer.new), list(peer.ended)
    book.asked, book.stopped = dict(peer.asked), dict(peer.passed)
    book.inside, book.earlier, book.owners = dict(peer.inside), dict(peer.earlier), dict(peer.owners)
    return book


def with_book(peer: Peer, book: guestbook.Guestbook) -> Peer:
    parts = (book.asked, book.stopped, book.inside, book.earlier, book.owners)
    asked, passed, inside, earlier, owners = [tuple(sorted(part.items())) for part in parts]
    new, ended = tuple(book.new.items()), tuple(book.ended)
    return peer._replace(
        latest=book.latest,
        new=new,
        asked=asked,
        passed=passed,
        inside=inside,
        earlier=earlier,
        owners=owners,
        ended=ended,
    )
