"""A few guests of a cluster's peer at one room: every step of theirs, of the peer, and of the cluster behind it.

The guests and the peer run fairgate.room.rules and guestbook, as live ones do. The cluster is k slots: it grants any
pending request a free one, and it frees the slots of a peer when that one's lease is over. guests_properties.py says
what must hold, and explore_guests.py tries every order of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairgate.room import layout
from fairgate.room.layout import (
    CLUSTER,
    DIRTY,
    GRANTED_BY,
    OWNER,
    PEER_BELL,
    PID,
    PROMISED,
    STATE,
    TICKET,
    WAITING,
)
from tests.room.model import Broken, Words
from tests.room.plain import guestbook, links, rules, table

OUT, WAITS, IN, DEAD = range(4)
UNHEARD, LOOK, GRANTED = range(3)  # what the bell of a guest says
NOW = 100_000_000  # ns: every guest may have been stopped meanwhile
PAST, LATER = 1, 2 * NOW  # ends of a promise: it is over, or it was made by the peer with this life, which is added
PEER_BELLS = 200  # names from here on are those of the peer's bells
FREE_SLOT = (0, 0)
HEADER_WORDS = (layout.NEXT_TICKET, layout.USED, DIRTY, layout.PEER, PEER_BELL)
HEADER_LINKS = (layout.HEAD, layout.TAIL, layout.SPARE)
SEAT_WORDS = (
    STATE, TICKET, layout.SLOT, layout.FENCE, OWNER, PID, layout.SKIPPED, layout.HEARD,
    GRANTED_BY, PROMISED, layout.CLUSTER_SLOT,
)  # fmt: skip
SEAT_LINKS = (layout.NEXT, layout.PREVIOUS)

Pairs = tuple[tuple[int, int], ...]


class Guest(NamedTuple):
    phase: int
    seat: int
    ticket: int
    entries: int  # left
    heard: int
    to_ring: Pairs  # owner, ticket
    stopped: bool
    life: int


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
    to_ring: Pairs
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


class State(NamedTuple):
    table: tuple[int, ...]
    guests: tuple[Guest, ...]
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


class Seen:
    """The senses of a process in the model."""

    def __init__(self, model: Model, words: list[int], state: State) -> None:
        self.model = model
        self.words = words
        self.guests = state.guests

    def is_gone(self, seat: int) -> bool:
        return self.model.is_dead(self.guests, self.words[seat + OWNER])

    def is_stopped(self, seat: int) -> bool:
        return self.guests[self.words[seat + PID] - 1].stopped and not self.is_gone(seat)


Step = Callable[[Words, table.Change, Seen], tuple[Any, State]]  # whatever it returns, and the state without the table
Judge = Callable[["State", "State"], None]


class Model:
    def __init__(self, case: Case, judge: Judge) -> None:
        self.case = case
        self.judge = judge
        self.n = case.guests
        words = [0] * links.size(case.k + self.n, self.n + 1)
        words[CLUSTER] = 1
        table.create(words, case.k + self.n, self.n + 1, case.k, 0, 0)
        self.seats = links.all_seats(words)
        self.words = [*HEADER_WORDS, *[seat + at for seat in self.seats for at in SEAT_WORDS]]
        slots = range(layout.SLOTS, self.seats.start)
        self.links = [*HEADER_LINKS, *slots, *[seat + at for seat in self.seats for at in SEAT_LINKS]]
        self.tracked = {*self.words, *self.links}
        out = [Guest(OUT, 0, 0, entries, UNHEARD, (), False, 0) for entries in case.entries or (1,) * self.n]
        budget = Budget(case.deaths, case.cancels, case.stops, case.starts, case.halts, case.lapses, case.fails)
        self.start = State(tuple(words), tuple(out), NO_PEER, (FREE_SLOT,) * case.k, 0, budget)

    def owner(self, i: int, guest: Guest) -> int:
        return 1 + i + self.n * guest.life

    def is_dead(self, guests: tuple[Guest, ...], owner: int) -> bool:
        guest = guests[(owner - 1) % self.n]
        return guest.life != (owner - 1) // self.n or guest.phase == DEAD

    # One change under the lock.

    def locked(self, state: State, step: Step, dead: State | None) -> list[State]:
        """All states that a change can lead to: it succeeds, or its process dies after some store (`dead`)."""
        words = Words(state.table)
        senses = Seen(self, words, state)
        change = table.Change(NOW, senses.is_stopped)
        if words[DIRTY]:
            table.rebuild(words, change)
        done, after = step(words, change, senses)
        after = after._replace(table=tuple(words))
        found = [self.rung_by(after, done, self.rings(words, change, done))]
        if dead is not None:
            partial = list(state.table)
            for at, value in words.stores:
                if at in self.tracked and partial[at] != value:
                    found.append(dead._replace(table=tuple(partial)))
                partial[at] = value
        for each in found:
            self.judge(state, each)
        return found

    def rings(self, words: Words, change: table.Change, by: int | None) -> Pairs:
        """As Changes.to_ring does it. `by` is the guest that makes the change, or None: the peer."""
        told = []
        for seat in table.in_order(words, change.woken):
            granted = words[seat + STATE] in (layout.INSIDE, layout.LOST)
            told.append((words[seat + OWNER], words[seat + TICKET] if granted else 0))
        if by is not None:
            told += [(words[PEER_BELL], ticket) for ticket in change.called]
        return tuple(told)

    @staticmethod
    def rung_by(state: State, by: int | None, rings: Pairs) -> State:
        if by is None:
            return state._replace(peer=state.peer._replace(to_ring=state.peer.to_ring + rings))
        return with_guest(state, by, state.guests[by]._replace(to_ring=rings))

    @staticmethod
    def spend(state: State, **what: int) -> State:
        left = {name: getattr(state.budget, name) - count for name, count in what.items()}
        return state._replace(budget=state.budget._replace(**left))

    def change_by_guest(self, state: State, i: int, step: Callable[..., Guest]) -> list[State]:
        def whole(words: Words, change: table.Change, senses: Seen) -> tuple[int, State]:
            return i, with_guest(state, i, step(words, change, senses, state.guests[i]))

        dead = None
        if state.budget.deaths:
            dead = self.spend(with_guest(state, i, died(state.guests[i])), deaths=1)
        return self.locked(state, whole, dead)

    def turn_of_peer(self, state: State, step: Callable[..., State]) -> list[State]:
        """A change, after which the peer tells the cluster what follows, unless something fails in between."""

        def whole(words: Words, change: table.Change, senses: Seen) -> tuple[None, State]:
            return None, self.tells(step(words, change, senses))

        def half(words: Words, change: table.Change, senses: Seen) -> tuple[None, State]:
            return None, self.spend(step(words, change, senses), fails=1)

        dead = None
        if state.budget.halts:
            dead = self.spend(state._replace(peer=gone(state.peer)), halts=1)
        found = self.locked(state, whole, dead)
        return found + (self.locked(state, half, None) if state.budget.fails else [])

    # What guests do.

    def steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        """Whether a process does it on its own, and the states that it can lead to."""
        for i, guest in enumerate(state.guests):
            yield from self.guest_steps(state, i, guest)
        yield from self.peer_steps(state)
        yield from self.cluster_steps(state)

    def guest_steps(self, state: State, i: int, guest: Guest) -> Iterator[tuple[bool, list[State]]]:
        if guest.phase == DEAD:
            if guest.entries:
                yield False, [with_guest(state, i, guest._replace(phase=OUT, life=guest.life + 1))]
            return
        if state.budget.deaths:
            yield False, [self.spend(with_guest(state, i, died(guest)), deaths=1)]
        if guest.stopped:
            yield False, [with_guest(state, i, guest._replace(stopped=False))]
            return
        if state.budget.stops and guest.phase != OUT:
            yield False, [self.spend(with_guest(state, i, guest._replace(stopped=True)), stops=1)]
        if guest.to_ring:
            (owner, ticket), rest = guest.to_ring[0], guest.to_ring[1:]
            yield True, [self.ring(with_guest(state, i, guest._replace(to_ring=rest)), owner, ticket)]
        elif guest.phase == OUT and guest.entries:
            yield False, self.change_by_guest(state, i, self.ask(i))
        elif guest.phase == IN:
            yield False, self.change_by_guest(state, i, end)
        elif guest.phase == WAITS:
            if guest.heard == GRANTED:
                words = Words(state.table)
                rules.hear(words, guest.seat)
                entered = guest._replace(phase=IN, heard=UNHEARD)
                yield True, [with_guest(state._replace(table=tuple(words)), i, entered)]
            elif guest.heard:
                yield True, self.change_by_guest(state, i, look)
            if state.budget.cancels:
                yield False, self.change_by_guest(self.spend(state, cancels=1), i, end)

    def ring(self, state: State, owner: int, ticket: int) -> State:
        if owner >= PEER_BELLS or owner == 0:
            peer = state.peer
            if not peer.up or owner != bell_of(peer):
                return state
            return state._replace(peer=peer._replace(called=tuple(sorted({*peer.called, ticket}))))
        if self.is_dead(state.guests, owner):
            return state
        i = (owner - 1) % self.n
        guest = state.guests[i]
        heard = GRANTED if ticket and ticket == guest.ticket and guest.phase == WAITS else LOOK
        return with_guest(state, i, guest._replace(heard=max(guest.heard, heard)))

    def ask(self, i: int) -> Callable[..., Guest]:
        def step(words: Words, change: table.Change, senses: Seen, guest: Guest) -> Guest:
            request = rules.Request(self.owner(i, guest), i + 1, 1, 0, 1, 0)
            seat = rules.ask(words, change, senses, request)
            if not seat:
                raise Broken("there is no seat")
            asked = guest._replace(seat=seat, ticket=words[seat + TICKET], entries=guest.entries - 1)
            return waits_or_enters(words, asked)

        return step

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
        elif peer.called or self.dead_guests(state):
            yield True, self.turn_of_peer(state, lambda *about: self.looks(state, peer.called, *about))
        if peer.new or peer.ended:  # a turn has failed
            yield True, [self.tells(state)]

    def starts(self, state: State) -> list[State]:
        new = NO_PEER._replace(life=state.peer.life + 1, up=True, leased=True)
        fresh = state._replace(peer=new)

        def step(words: Words, change: table.Change, senses: Seen) -> State:
            book = guestbook.take_over(words, change, senses, new.life, bell_of(new))
            guestbook.look(words, change, senses, book, (0,), ())
            return self.tells(fresh._replace(peer=with_book(new, book)))

        dead = self.spend(state._replace(peer=gone(new)), halts=1) if state.budget.halts else None
        return self.locked(state, lambda *about: (None, step(*about)), dead)

    def dead_guests(self, state: State) -> set[int]:
        """The owners that the kernel reports to the peer, which watches all that are in its guestbook."""
        return {owner for _, owner in state.peer.owners if self.is_dead(state.guests, owner)}

    def looks(self, state: State, called: tuple[int, ...], words: Words, change: table.Change, senses: Seen) -> State:
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

    def admits(self, state: State, words: Words, change: table.Change, senses: Seen) -> State:
        (ticket, slot), rest = state.peer.arrived[0], state.peer.arrived[1:]
        called = (*state.peer.called, ticket)
        state = self.looks(state._replace(peer=state.peer._replace(arrived=rest)), called, words, change, senses)
        book = book_of(state.peer)
        wanted = any(guest.phase == WAITS and guest.ticket == ticket for guest in state.guests)
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

    def revokes(self, state: State, words: Words, change: table.Change, senses: Seen) -> State:
        book = book_of(state.peer)
        for ticket in state.peer.lost:
            guestbook.revoke(words, change, book, ticket)
            guestbook.ask_again(book, ticket)
        return state._replace(peer=with_book(state.peer, book)._replace(lost=()))

    def leaves(self, state: State, words: Words, change: table.Change, senses: Seen) -> State:
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
            if words[seat + GRANTED_BY] == life and words[seat + STATE] == layout.INSIDE:
                words[seat + PROMISED] = PAST
        slots = tuple([FREE_SLOT if holder == life else (holder, fence) for holder, fence in state.slots])
        peer = state.peer
        if peer.up and peer.life == life:
            lost = (*peer.lost, *[ticket for ticket, _ in (*peer.held, *peer.arrived)])
            peer = peer._replace(lost=lost, held=(), arrived=(), leased=False)
        return state._replace(table=tuple(words), slots=slots, peer=peer)


def end(words: Words, change: table.Change, senses: Seen, guest: Guest) -> Guest:
    rules.leave(words, change, guest.seat, guest.ticket)
    return guest._replace(phase=OUT, seat=0, ticket=0, heard=min(guest.heard, LOOK))


def look(words: Words, change: table.Change, senses: Seen, guest: Guest) -> Guest:
    rules.look(words, change, senses, guest.seat, (), False)
    return waits_or_enters(words, guest)


def waits_or_enters(words: Words, guest: Guest) -> Guest:
    if words[guest.seat + STATE] != WAITING:
        return guest._replace(phase=IN, heard=UNHEARD)
    rules.duties(words, guest.seat, NOW)
    return guest._replace(phase=WAITS, heard=UNHEARD)


def died(guest: Guest) -> Guest:
    return Guest(DEAD, 0, 0, guest.entries, UNHEARD, (), False, guest.life)


def gone(peer: Peer) -> Peer:
    return NO_PEER._replace(life=peer.life)


def bell_of(peer: Peer) -> int:
    return PEER_BELLS + peer.life


def with_guest(state: State, i: int, guest: Guest) -> State:
    return state._replace(guests=(*state.guests[:i], guest, *state.guests[i + 1 :]))


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
