"""FK section 5: the identities of a gate live at peers of a ring, and the peers that follow keep copies of them.

Theory of operation. An *identity* is a node of the protocol, with its place on the circle of keys. Its *home* is the
peer that owns this place: the peer of the same id while that lives, then the next living peer. Messages are addressed
to identities (`Mail`) and routed to their homes, so no protocol knows about any of this. The home sends the state of an
identity to the `backups` peers that follow (`Copy`), which acknowledge it (`Copied`). When a home dies, the next peer
takes its identities over: it loads the newest copy, ends the request of the dead client, and copies the state on to the
peers that follow itself.

Hold. The home lets out what a step said only when all backups have acknowledged the state after that step. So nobody
has heard anything from an identity that its next home does not know. A message that dies with the old home, or that the
old home took but did not copy, is sent again by the channel above this layer, which is part of the copied state. A step
that says nothing is not copied. A grant leaves at once if a message caused it: the client dies with its home, and its
turn is replayed when that message comes again. A grant that the client's own request caused waits for the copies:
nobody would replay it, and the next grant would repeat its fence. With `hold=false` everything leaves at once, as in
FK's text.

Versions. A copy is stamped with (term, distance, count). Every takeover starts a new term. Two homes of the same term
are both heirs of the same copy; the second took over because the first died, so it lies farther from the identity's
place. So a late copy of a dead home never replaces a newer one.

Joins. On a dynamic ring, identities move to the peer that now owns their places, with the titles (overlay/titles.py). A
newcomer that has to serve an identity whose home died before that asks the peers that follow for their copies.

An identity is *lost* if a peer has to serve it and has no copy. The peer notices this at once, not only when a message
arrives for the identity. What is left then is a census (recovery/regenerate.py above the channel): the driver reads
`lost` and gives all peers a new view, without the lost identities.

Assumptions: a peer that is taken for dead is dead. Messages between living peers are not lost. A peer that a newcomer
pushes out of the backups is told so (`Discard`) before it learns that the home has died.
"""

from bisect import bisect_right
from collections.abc import Iterator

from fairgate.core.ids import NIL
from fairgate.core.kbr import Door, Rider
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import clockwise, place_of
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, Message, as_tuples
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.home import Copied, Copy, Discard, Fetch, Fetched, Grant, Held, Home, HomeDoor, Kept, Mail, Stamp

BACKUPS = 4  # default of the option `backups`
WINDOW = 16  # a home that is this many states ahead of its backups waits for them before it copies again


class Homes(Rider):
    timed = True  # because the nodes of the identities may be
    intercepts = False

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        assert isinstance(out, Door), "homes stand on an overlay"
        Rider.__init__(self, me, setup, out)
        self.door = out
        self.make = upper
        self.hold: bool = setup.options.get("hold", True)
        self.most: int = setup.options.get("backups", BACKUPS)
        self.places = identity_places(setup)
        self.members: frozenset[int] = setup.shared["identities"]  # those that no view has excluded
        self.view = 0
        self.view_members: tuple[int, ...] = ()
        self.homes: dict[int, Home] = {}
        self.copies: dict[int, Kept] = {}
        self.backups: tuple[int, ...] = ()  # the peers that keep copies of the identities here
        self.lost: set[int] = set()  # identities that this peer should serve, and has no copy of
        self.postponed = NIL  # the client's request, if its identity has not come home yet
        self.newcomer = False  # did it join the ring? Then it may have to serve identities whose copies others have
        self.asked: dict[int, set[int]] = {}  # identity to serve -> peers that have not said yet if they have a copy

    # The client of this peer.

    def on_start(self) -> None:
        self.backups = self.door.neighbours(self.most)
        self.newcomer = not self.door.serves(place_of(self.me))
        if self.me in self.members and not self.newcomer:
            home = self.open(self.me, 0)
            self.at(home).on_start()
            self.finish(home)
            self.copy_first(home)

    def on_acquire(self, request: int) -> None:
        home = self.homes.get(self.me)
        if home is None:
            self.postponed = request
        else:
            home.request = request
            self.at(home).on_acquire(request)
            self.finish(home, own=True)

    def on_release(self, request: int) -> None:
        home = self.homes[self.me]
        home.request = NIL
        self.at(home).on_release(request)
        self.finish(home)

    def on_cancel(self, request: int) -> None:
        home = self.homes.get(self.me)
        if home is None:
            self.postponed = NIL
        else:
            self.end_request(home)
            self.finish(home)

    # Steps of an identity.

    def open(self, identity: int, term: int) -> Home:
        home = self.homes[identity] = Home(identity, term)
        home.node = self.make(identity, self.setup, HomeDoor(self, home))
        self.copies.pop(identity, None)
        return home

    def at(self, home: Home) -> Node:
        """The node of an identity, with its clock set. `finish` must follow every step."""
        home.node.now = self.now
        return home.node

    def deliver(self, src: int, msg: Keyed) -> None:
        assert isinstance(msg, Mail)
        home = self.homes.get(msg.to)
        if home is not None:
            self.at(home).on_message(msg.sender, msg.inner)
            self.finish(home)
        else:
            self.out.note("a message came for an identity that is not here")

    def on_timer(self, name: str) -> None:
        identity, _, rest = name.partition("/")
        home = self.homes.get(int(identity))
        if home is not None:
            self.at(home).timer_due(rest)
            self.finish(home)

    def finish(self, home: Home, own: bool = False) -> None:
        """Copy the state after a step and hold back what it said. `own`: the client's own request was the input."""
        mails, grant = home.mails, home.grant
        home.mails, home.grant = [], None
        if grant is not None and not (own and self.hold):
            self.enter(home, grant)
            grant = None
        if mails or grant is not None or not self.hold:
            home.count += 1
            home.held.append(Held(home.count, mails, grant))
            self.let_out(home)

    def copy(self, home: Home) -> None:
        home.copied = home.count
        self.copy_to(home, self.backups)

    def copy_first(self, home: Home) -> None:
        """Copy the state of a new home, unless its first step said something and was copied for that."""
        if home.count == 0:
            self.copy(home)

    def copy_to(self, home: Home, peers: tuple[int, ...]) -> None:
        if peers:
            term, distance, count = self.stamp(home)
            copy = Copy(home.identity, term, distance, count, home.request, self.at(home).key())
            for peer in peers:
                self.out.send(peer, copy)

    def stamp(self, home: Home) -> Stamp:
        return home.term, clockwise(home.place, place_of(self.me)), home.count

    def let_out(self, home: Home) -> None:
        """Send what was held back until now, as far as all backups have acknowledged the states after it.

        Copy the latest state first, if something waits for that. A busy home, such as the root's when all nodes ask it
        at once, copies once per round trip: otherwise as many copies as messages would be on their way.
        """
        safe = min([home.acknowledged.get(peer, NIL) for peer in self.backups], default=home.count)
        if home.held and home.held[-1].count > home.copied and (home.copied - safe < WINDOW or not self.hold):
            self.copy(home)
        while home.held and (home.held[0].count <= safe or not self.hold):
            held = home.held.pop(0)
            for mail in held.mails:
                self.door.route(mail)
            if held.grant is not None and held.grant[0] == home.request:
                self.enter(home, held.grant)

    def enter(self, home: Home, grant: Grant) -> None:
        assert home.identity == self.me, f"identity {home.identity} entered, but its client is dead"
        self.out.granted(*grant)

    # Copies.

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Copy):
            self.on_copy(src, msg)
        elif isinstance(msg, Copied):
            self.on_copied(src, msg)
        elif isinstance(msg, Discard):
            self.on_discard(msg)
        elif isinstance(msg, Fetch):
            self.on_fetch(src, msg)
        elif isinstance(msg, Fetched):
            self.on_fetched(src, msg)

    def on_copy(self, src: int, m: Copy) -> None:
        if m.identity in self.homes or m.identity not in self.members:
            self.out.note("a copy came too late")
            return
        stamp = (m.term, m.distance, m.count)
        known = self.copies.get(m.identity)
        if known is None or known[0] < stamp:
            self.copies[m.identity] = (stamp, m.request, m.state)
        if m.identity in self.lost and self.kept(m.identity) is not None:
            self.lost.remove(m.identity)
            self.take_over(m.identity)
        else:
            self.out.send(src, Copied(m.identity, m.term, m.count))

    def on_copied(self, src: int, m: Copied) -> None:
        home = self.homes.get(m.identity)
        if home is not None and home.term == m.term:
            home.acknowledged[src] = max(m.count, home.acknowledged.get(src, NIL))
            self.let_out(home)

    def on_discard(self, m: Discard) -> None:
        known = self.copies.get(m.identity)
        stamp = (m.term, m.distance, m.count)
        if m.identity in self.members and (known is None or known[0] < stamp):
            self.copies[m.identity] = (stamp, NIL, ())  # so that a late copy, sent before this message, is not kept

    def kept(self, identity: int) -> Kept | None:
        """The copy of an identity, if there is one that was not discarded."""
        kept = self.copies.get(identity)
        return kept if kept is not None and kept[2] else None

    def on_fetch(self, src: int, m: Fetch) -> None:
        kept = self.kept(m.identity)
        (term, distance, count), request, state = kept if kept is not None else ((NIL, 0, 0), NIL, ())
        self.out.send(src, Fetched(m.identity, term, distance, count, request, state))

    def on_fetched(self, src: int, m: Fetched) -> None:
        stamp = (m.term, m.distance, m.count)
        known = self.copies.get(m.identity)
        if m.identity in self.asked:
            if m.term != NIL and (known is None or known[0] < stamp):
                self.copies[m.identity] = (stamp, m.request, m.state)
            self.asked[m.identity].discard(src)
            self.see_answers(m.identity)

    # The ring has changed.

    def on_crash(self, peer: int) -> None:
        self.on_tables()

    def on_range(self, start: int, end: int) -> None:
        self.on_tables()

    def on_tables(self) -> None:
        """Find out which peers keep copies now, and which identities this peer has to take over."""
        before, self.backups = self.backups, self.door.neighbours(self.most)
        if self.backups != before:
            for _, home in sorted(self.homes.items()):
                self.change_backups(home, before)
        for identity, peers in sorted(self.asked.items()):
            peers.intersection_update(self.backups)
            self.see_answers(identity)
        for identity in self.served():
            if identity not in self.homes and identity not in self.asked and identity in self.members:
                self.take_over(identity)

    def change_backups(self, home: Home, before: tuple[int, ...]) -> None:
        home.count += 1  # above the copies that a peer is told to discard
        for peer in before:
            if peer not in self.backups:
                home.acknowledged.pop(peer, None)
                if self.is_pushed_out(peer):
                    self.out.send(peer, Discard(home.identity, *self.stamp(home)))
        home.count += 1  # a copy that a peer is sent after that is newer
        self.copy_to(home, tuple([peer for peer in self.backups if peer not in before]))
        self.let_out(home)

    def is_pushed_out(self, peer: int) -> bool:
        """Is this former backup alive, but too far away now? One that is not farther than the last backup has died."""
        here = place_of(self.me)
        last = place_of(self.backups[-1]) if self.backups else here
        return clockwise(here, place_of(peer)) > clockwise(here, last)

    def served(self) -> Iterator[int]:
        """The identities whose home is this peer: those at and before its place, as far as it owns their places."""
        at = bisect_right(self.places, (place_of(self.me), self.me)) - 1
        for step in range(len(self.places)):
            place, identity = self.places[at - step]
            if self.door.next_hop(place) != NIL:
                return
            if self.door.serves(place):
                yield identity

    def take_over(self, identity: int) -> None:
        kept = self.kept(identity)
        if kept is None and identity not in self.lost:
            if self.newcomer and self.backups:
                self.asked[identity] = set(self.backups)
                for peer in self.backups:
                    self.out.send(peer, Fetch(identity))
            else:
                self.lose(identity)
        elif kept is not None:
            self.load_copy(identity, kept)

    def see_answers(self, identity: int) -> None:
        """Take an identity over when all backups have answered, or died."""
        if not self.asked[identity]:
            del self.asked[identity]
            kept = self.kept(identity)
            if identity in self.homes or identity not in self.members or not self.door.serves(place_of(identity)):
                self.out.note("an identity came home while its copies were fetched")
            elif kept is None:
                self.lose(identity)
            else:
                self.load_copy(identity, kept)

    def lose(self, identity: int) -> None:
        self.out.note("an identity was lost")
        self.lost.add(identity)

    def load_copy(self, identity: int, kept: Kept) -> None:
        self.out.note("an identity was taken over")
        (term, _, _), request, state = kept
        self.load_home(identity, term + 1, request, state)

    def load_home(self, identity: int, term: int, request: int, state: Key) -> None:
        """Serve an identity from now on, from a state that another home copied or gave away."""
        home = self.open(identity, term)
        home.request = request
        self.at(home).load(state)
        self.end_request(home)
        if self.view:
            self.show_view(home, self.setup.shared["identities"] - self.members)
        self.finish(home)
        self.copy_first(home)
        if identity == self.me and self.postponed != NIL:
            request, self.postponed = self.postponed, NIL
            self.on_acquire(request)

    def end_request(self, home: Home) -> None:
        """End the client's request: a cancel releases what has been granted."""
        request, home.request = home.request, NIL
        if request != NIL:
            self.at(home).on_cancel(request)

    # Identities move when a peer joins a dynamic ring.

    def give_keys(self, first: int, last: int) -> Key:
        """What is held back stays behind: the channel sends it again from the identity's next home."""
        given = []
        for identity, home in sorted(self.homes.items()):
            if first <= home.place <= last:
                del self.homes[identity]
                self.copies[identity] = (self.stamp(home), home.request, self.at(home).key())
                given.append((home.place, identity, home.term + 1, home.request, home.node.key(), self.backups))
        return tuple(given)

    def take_keys(self, heirlooms: Key) -> None:
        for _, identity, term, request, state, backups in heirlooms:
            if identity in self.members:
                self.load_home(identity, term, request, tuple(state))
                for peer in backups:
                    if peer != self.me and self.is_pushed_out(peer):
                        self.out.send(peer, Discard(identity, term, 0, 0))
        self.on_tables()

    # A census: identities that a view excludes are gone.

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        if number <= self.view:
            return
        before = self.members
        self.view = number
        self.view_members = tuple(members)
        self.members = identities_in(self.setup, self.view_members)
        gone = before - self.members
        for identity in gone:
            self.homes.pop(identity, None)
            self.copies.pop(identity, None)
        self.lost.clear()
        for _, home in sorted(self.homes.items()):
            self.show_view(home, gone)
            self.finish(home)
        self.on_tables()

    def show_view(self, home: Home, gone: frozenset[int]) -> None:
        for identity in sorted(gone):
            self.at(home).on_crash(identity)
        self.at(home).on_view(self.view, self.view_members, ())  # the excluded are dead

    # The state.

    def key(self) -> Key:
        return (
            self.version,
            tuple([home.key(self.now) for _, home in sorted(self.homes.items())]),
            tuple([(identity, *kept) for identity, kept in sorted(self.copies.items())]),
            self.backups,
            tuple(sorted(self.lost)),
            self.view,
            self.view_members,
            self.postponed,
            self.newcomer,
            tuple([(identity, tuple(sorted(peers))) for identity, peers in sorted(self.asked.items())]),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, homes, copies, backups, lost, self.view, members, self.postponed, self.newcomer, asked = key
        self.asked = {identity: set(peers) for identity, peers in asked}
        self.view_members = tuple(members)
        self.members = identities_in(self.setup, tuple(members)) if self.view else self.setup.shared["identities"]
        self.backups = tuple(backups)
        self.lost = set(lost)
        self.homes = {}
        self.copies = {i: (as_tuples(stamp), request, as_tuples(state)) for i, stamp, request, state in copies}
        for identity, term, count, copied, request, acknowledged, held, state in homes:
            home = self.open(identity, term)
            home.count, home.copied, home.request = count, copied, request
            home.acknowledged = dict(acknowledged)
            home.held = [Held.from_key(as_tuples(one)) for one in held]
            self.at(home).load(tuple(state))

    def tokens(self) -> int:
        return sum([home.node.tokens() for home in self.homes.values()])

    def coordinators(self) -> int:
        return sum([home.node.coordinators() for home in self.homes.values()])


def identities_in(setup: Setup, members: tuple[int, ...]) -> frozenset[int]:
    """The members of a view as a set, which all peers share: sets of their own would take memory with N^2."""
    found: frozenset[int] = setup.shared.setdefault(("identities", members), frozenset(members))
    return found


def identity_places(setup: Setup) -> list[tuple[int, int]]:
    """(place, identity) of all members in the order of their places, shared by all peers."""
    places: list[tuple[int, int]] | None = setup.shared.get("identity_places")
    if places is None:
        places = setup.shared["identity_places"] = sorted([(place_of(member), member) for member in setup.members])
        setup.shared["identities"] = frozenset(setup.members)
    return places
