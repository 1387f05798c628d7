"""The base of dynamic overlays, which learn by messages: joining, leaving, and noticing nodes that are gone.

A node that is not on the ring, or no longer, owns nothing and sends everything through its `contact`. It joins by a
lookup of its own place. Once per period (`overlay_upkeep`) every node maintains its tables: it forgets peers that have
not answered since the last time, and asks the others again. The period must be longer than a round trip: a slower peer
is taken for dead until it is heard from again. titles.py explains who serves a key in the meantime.

The members of the setup, or the first `base` of them if that option is set, are on the ring from the start, with
settled tables. All other nodes join. A node that is its own contact starts a ring.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import place_of
from fairgate.core.layers import Layer, MakeNode
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.messages import Ask, Estate, Found, Leaving, Lookup, Ping, Pong, Said, Upkeep
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.ring import Ring, ring_of
from fairgate.overlay.spans import spans_between
from fairgate.overlay.table import Table
from fairgate.overlay.titles import TITLE, Titled

TICK = "upkeep"
UPKEEP_PINGS = "upkeep"  # the name under which riders learn of peers that fell silent


class Living(Titled):
    version = 3

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.place = place_of(me)
        self.joined = False
        # Is it joining? Without this, an answer that arrives after the node has left would bring it back.
        self.seeking = False
        self.contact = NIL
        self.awaited: dict[int, int] = {}  # peer that has not answered yet -> when it was asked
        self.told = (0, 0)  # the range of keys that the rider was told; after every step it matches the table
        Titled.__init__(self, me, setup, out, upper)

    # What a subclass provides.

    def tables(self) -> Table:
        raise NotImplementedError

    def begin(self, ring: Ring) -> None:
        """Fill the tables from the ring of the initial members."""
        raise NotImplementedError

    def upkeep(self) -> None:
        """Maintain the tables; called once per period while on the ring."""
        raise NotImplementedError

    def answer(self, src: int) -> None:
        """Tell `src`, which asked, about this node's neighbours."""
        raise NotImplementedError

    def heard(self, src: int) -> None:
        """Note that this peer is alive and on the ring."""
        raise NotImplementedError

    def forget(self, peer: int) -> None:
        """Remove a peer that seems to be gone from the tables."""
        raise NotImplementedError

    def acquainted(self) -> list[int]:
        """The peers to tell when this node leaves."""
        raise NotImplementedError

    def on_news(self, src: int, msg: Upkeep) -> None:
        """Handle a message that is specific to this kind of overlay."""
        raise NotImplementedError

    # The interface of an overlay.

    def next_hop(self, key: int) -> int:
        return self.tables().next_hop(key) if self.joined else self.contact

    def neighbours(self, count: int) -> tuple[int, ...]:
        return self.tables().neighbours(count) if self.joined else ()

    def own_range(self) -> tuple[int, int]:
        return self.tables().owned()

    def is_there(self) -> bool:
        return self.joined

    def arrive(self, src: int, msg: Keyed) -> None:
        """A node that is not on the ring only forwards what still arrives: it delivers and intercepts nothing."""
        if self.joined or src == self.me or self.contact == NIL:
            Titled.arrive(self, src, msg)
            return
        if not self.seeking:
            self.out.send(src, Leaving())  # again: an older message of this node may have arrived after its goodbye
        self.out.pass_on(self.contact, msg)

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        """Pass the view up only: this overlay learns its members by messages."""
        Layer.on_view(self, number, members, ghosts)

    # Joining and leaving.

    def on_start(self) -> None:
        ring = ring_of(self.setup)
        if ring.has(self.me):
            self.begin_ring(ring)
        Layer.on_start(self)

    def begin_ring(self, ring: Ring) -> None:
        self.begin(ring)
        self.joined = True
        self.seeking = False
        self.told = self.own_range()
        self.titles = spans_between(*self.told)
        self.start_ticking()

    def on_join(self, contact: int) -> None:
        if contact == self.me:
            self.begin_ring(Ring((self.me,)))
        elif not self.joined:
            self.contact = contact
            self.seeking = True
            self.seek()
            self.start_ticking()
        Layer.on_join(self, contact)

    def start_ticking(self) -> None:
        """Start the upkeep timer, spread over the nodes by their places rather than by random choice."""
        self.set_timer(TICK, 1 + self.place % self.period)

    def seek(self) -> None:
        """Begin to join: look up this node's own place."""
        self.out.send(self.contact, Lookup(self.place, self.me, True, 0))

    def enter_ring(self) -> None:
        self.joined = True
        self.seeking = False
        self.contact = NIL
        self.told = self.own_range()
        start, end = self.told
        self.rider.on_range(start, end)
        self.update_titles()

    def on_leave(self) -> None:
        """Leave the ring. The titles of this node's keys, and messages that still arrive, go to a neighbour."""
        self.lift().on_leave()
        self.finish_step()
        if self.joined:
            for peer in self.acquainted():
                self.out.send(peer, Leaving())
            self.pass_to_neighbour()
        self.joined = False
        self.seeking = False
        self.awaited.clear()
        self.cancel_timer(TICK)
        self.update_titles()
        self.finish_step()

    def pass_to_neighbour(self) -> None:
        self.contact = ([*self.tables().neighbours(1), NIL])[0]

    def on_leaving(self, src: int) -> None:
        self.forget(src)
        if src == self.contact and not self.seeking:  # both have left: messages must not bounce between the two
            self.pass_to_neighbour()

    # Liveness of peers.

    def probe(self, peer: int, msg: Upkeep) -> None:
        """Send a message that requires an answer."""
        if not self.joined and not self.seeking:
            return  # a node that has left needs no answers
        self.awaited.setdefault(peer, self.now)
        self.out.send(peer, msg)

    def on_upkeep(self, src: int, msg: Upkeep) -> None:
        self.awaited.pop(src, None)
        if isinstance(msg, Said):
            self.on_said(src, msg)
        elif isinstance(msg, Leaving):
            self.on_leaving(src)
        elif isinstance(msg, Estate):
            self.on_estate(src, msg)
        elif isinstance(msg, (Lookup, Found)):
            Overlay.on_upkeep(self, src, msg)
        else:
            self.on_news(src, msg)
        self.see_range()

    def on_said(self, src: int, m: Said) -> None:
        if m.member:
            self.heard(src)
        elif isinstance(m, Pong):
            self.forget(src)
        if isinstance(m, Ask) and self.joined:
            self.answer(src)
        elif not isinstance(m, Pong):
            self.out.send(src, Pong(self.joined))

    def on_layer_timer(self, name: str) -> None:
        self.rider.now = self.now
        if name == TITLE:
            self.title_due()
            return
        silent = sorted([peer for peer, asked in self.awaited.items() if self.now - asked >= self.period])
        for peer in silent:
            self.out.note("a peer fell silent")
            del self.awaited[peer]
            self.forget(peer)
            self.rider.on_suspect(peer, UPKEEP_PINGS)
        if self.joined:
            self.upkeep()
        elif self.seeking:
            self.seek()
        self.set_timer(TICK, self.period)
        self.see_range()

    def see_range(self) -> None:
        """Tell the rider if the range of keys that this node owns has changed."""
        if self.joined:
            owned = self.own_range()
            if owned != self.told:
                self.told = owned
                self.update_titles()
                self.rider.on_range(owned[0], owned[1])
            self.rider.on_tables()  # the neighbours may have changed even if the range has not

    # Input from the driver's failure detectors.

    def on_suspect(self, peer: int, detector: str) -> None:
        self.lost(peer)
        Layer.on_suspect(self, peer, detector)

    def on_crash(self, peer: int) -> None:
        self.lost(peer)
        Layer.on_crash(self, peer)

    def lost(self, peer: int) -> None:
        self.rider.now = self.now
        self.awaited.pop(peer, None)
        self.forget(peer)
        self.see_range()

    def on_trust(self, peer: int, detector: str) -> None:
        if self.joined and peer != self.me:
            self.probe(peer, Ping(True))
        Layer.on_trust(self, peer, detector)

    # The state.

    def living_key(self) -> Key:
        awaited = sorted([(peer, self.now - asked) for peer, asked in self.awaited.items()])
        return (self.joined, self.seeking, self.contact, tuple(awaited), self.titles_key())

    def load_living(self, key: Key) -> None:
        """Load this part of the state; call it after the tables are loaded."""
        self.joined, self.seeking, self.contact, awaited, titles = key
        self.load_titles(tuple(titles))
        self.awaited = {peer: self.now - age for peer, age in awaited}
        if self.joined:
            self.told = self.own_range()
