"""The dynamic Chord overlay: nodes join, leave and repair the ring.

Stoica, Morris, Karger, Kaashoek, Balakrishnan: Chord, SIGCOMM 2001. As Zave showed, the maintenance rules of that paper
do not keep the ring intact. These are the corrected ones (Zave: How to make Chord correct, 2015):
  - a node replaces its successor list only as a whole: by a node that has just answered, followed by that node's list;
  - a node between me and my successor becomes my successor only after it has answered;
  - my successor is told of me (`Notify`) after it, or the node between us, has answered;
  - a joining node is on the ring only after its successor has answered with its list;
  - a nearer node replaces the predecessor, and so does any node if the predecessor is dead.
Besides, a node that seemed dead, but that others still name, is asked again: if it is alive, only its answer tells. And
a node to which all others seem dead keeps asking them.
The rules assume that at least one node of every successor list lives, that the ring always has a base of more than
`chord_successors` nodes that stay, and that a node that falls silent is dead.

Two things are faster than in the papers, and change nothing else. A node whose successors or predecessor changed tells
its predecessor (`Changed`), which asks again at once: a change travels along the ring without waiting for timers. And
a `Notify` names the node behind its sender, so that the keys of a dead predecessor have an owner as soon as its death
is noticed.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyspace import clockwise, past, place_of, top_bit
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.chord_table import FINGERS, SUCCESSORS, KeptChordTable
from fairgate.overlay.living import Living
from fairgate.overlay.messages import Ask, Changed, Found, Lookup, Notify, Ping, Tell, Upkeep
from fairgate.overlay.ring import Ring
from fairgate.overlay.table import Table


class Chord(Living):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        successors = setup.options.get("chord_successors", SUCCESSORS)
        self.table = KeptChordTable(me, successors, setup.options.get("chord_fingers", FINGERS))
        self.suspected: set[int] = set()  # nodes that seem to be gone, but may still be in the lists of others
        self.next_finger = 64  # the finger that was looked up last
        Living.__init__(self, me, setup, out, upper)

    def tables(self) -> Table:
        return self.table

    def begin(self, ring: Ring) -> None:
        self.table.begin(ring)

    def acquainted(self) -> list[int]:
        table = self.table
        return sorted({table.predecessor, *table.successors[:1]} - {NIL})

    def heir(self, key: int) -> int:
        """A new predecessor gets the keys up to its own place: routing would not find it among the successors."""
        predecessor = self.table.predecessor
        if self.joined and predecessor != NIL and key == place_of(predecessor):
            return predecessor
        return self.next_hop(key)

    # Joining.

    def on_found(self, src: int, m: Found) -> None:
        if not m.upkeep:
            self.rider.on_found(m.target, src)
        elif self.joined:
            self.table.set_finger(top_bit(clockwise(self.place, m.target)), src)
        else:
            self.probe(src, Ask(False))

    def become_member(self, src: int, m: Tell) -> None:
        """Enter the ring, now that the successor has answered."""
        table = self.table
        self.take_list(src, m.successors)
        table.set_predecessor(src if m.predecessor == NIL else m.predecessor, NIL)
        self.enter_ring()
        self.out.send(src, Notify(table.predecessor))

    # Stabilisation.

    def upkeep(self) -> None:
        table = self.table
        if table.successors:
            self.probe(table.successors[0], Ask(True))
            self.fix_finger()
        else:
            for peer in sorted(self.suspected):  # it is the last node, or was cut off from all others for a while
                self.probe(peer, Ask(True))
        if table.predecessor != NIL:
            self.probe(table.predecessor, Ping(True))

    def answer(self, src: int) -> None:
        self.out.send(src, Tell(self.table.predecessor, tuple(self.table.successors)))

    def heard(self, src: int) -> None:
        self.suspected.discard(src)

    def on_news(self, src: int, msg: Upkeep) -> None:
        self.suspected.discard(src)
        if isinstance(msg, Tell):
            self.on_tell(src, msg)
        elif isinstance(msg, Notify) and self.joined:
            self.on_notify(src, msg)
        elif isinstance(msg, Changed) and self.joined and src in self.table.successors[:1]:
            self.probe(src, Ask(True))

    def on_tell(self, src: int, m: Tell) -> None:
        if not self.joined:
            if self.seeking and self.is_next(src, m):
                self.become_member(src, m)
            return
        away = clockwise(self.place, place_of(src))
        first = self.table.successors[0] if self.table.successors else src
        if away > clockwise(self.place, place_of(first)):
            return  # src is not the successor any more
        self.ask_suspects(m.successors)
        self.take_list(src, m.successors)
        between = m.predecessor
        is_nearer = between not in (NIL, self.me) and clockwise(self.place, place_of(between)) < away
        if is_nearer and between not in self.suspected:
            self.probe(between, Ask(True))
        else:
            self.out.send(src, Notify(self.table.predecessor))

    def is_next(self, src: int, m: Tell) -> bool:
        """Does this node's place lie between `src` and its predecessor? Then it can join there."""
        if m.predecessor == NIL:
            return not m.successors  # src is alone; otherwise it has lost its predecessor, and waits for the next
        there = place_of(src)
        return clockwise(self.place, there) < clockwise(place_of(m.predecessor), there)

    def take_list(self, first: int, rest: tuple[int, ...]) -> None:
        if self.table.take_list(first, [peer for peer in rest if peer not in self.suspected]):
            self.tell_changed(self.table.predecessor)
        self.suspected &= {*rest, *self.table.fingers}  # nobody names the others any more

    def ask_suspects(self, named: tuple[int, ...]) -> None:
        """Ask suspected nodes that others still name.

        One that is alive may hear of this node by no other way. Left out of the list, its keys would be taken for those
        of the node after it, which would send messages for them back, forever.
        """
        for peer in named:
            if peer in self.suspected:
                self.probe(peer, Ping(True))

    def tell_changed(self, peer: int) -> None:
        if self.joined and peer != NIL:
            self.out.send(peer, Changed())

    def on_notify(self, src: int, m: Notify) -> None:
        """Zave's rectify: `src` becomes the predecessor if it is nearer than the current one, or if there is none."""
        table = self.table
        old = table.predecessor
        if old == src:
            table.behind = m.behind
        elif old == NIL or clockwise(place_of(src), self.place) < clockwise(place_of(old), self.place):
            table.set_predecessor(src, m.behind)
            self.tell_changed(old)
        else:
            self.probe(old, Ping(True))  # it may be dead
        if not table.successors:
            self.take_list(src, ())

    # Fingers.

    def fix_finger(self) -> None:
        """Look up the next finger, in turn from the farthest to the nearest that lies past the successors."""
        table = self.table
        lowest = table.lowest_needed()
        table.fingers[:lowest] = [NIL] * lowest
        self.next_finger = self.next_finger - 1 if lowest < self.next_finger <= 64 else 63
        if self.next_finger >= lowest:
            if table.fingers[self.next_finger] != NIL:
                self.probe(table.fingers[self.next_finger], Ping(True))
            self.later(Lookup(past(self.place, self.next_finger), self.me, True, 0))

    # Nodes that are gone.

    def forget(self, peer: int) -> None:
        table = self.table
        self.suspected.add(peer)
        table.drop_finger(peer)
        if table.predecessor == peer:
            table.set_predecessor(NIL if table.behind in self.suspected else table.behind, NIL)
            if table.predecessor != NIL and self.joined:
                self.probe(table.predecessor, Ping(True))
        if peer in table.successors:
            was_first = table.successors[0] == peer
            table.successors.remove(peer)
            if not table.successors:
                self.find_any()
            elif was_first:
                self.probe(table.successors[0], Ask(True))
            self.tell_changed(table.predecessor)

    def find_any(self) -> None:
        """All successors have died: fall back on the nearest known node, if there is one."""
        table = self.table
        known = [peer for peer in [*table.fingers, table.predecessor] if peer != NIL]
        if known:
            self.out.note("all successors were lost")
            table.successors.append(min([(clockwise(self.place, place_of(peer)), peer) for peer in known])[1])
            self.probe(table.successors[0], Ask(True))
        else:
            table.stand_alone()

    # The state.

    def layer_key(self) -> Key:
        return (self.living_key(), self.table.key(), tuple(sorted(self.suspected)), self.next_finger)

    def load_layer(self, key: Key) -> None:
        living, table, suspected, self.next_finger = key
        self.table.load(tuple(table))
        self.suspected = set(suspected)
        self.load_living(tuple(living))


class ChordLiteral(Chord):
    """Stabilises by the rules of 2001, for comparison.

    A node between me and my successor is accepted before it has answered, and pushes a living node out of the list. So
    a node can lose all its successors although one that belongs among them is alive. The paper has no rule for that
    case; here `find_any` takes over.
    """

    def on_tell(self, src: int, m: Tell) -> None:
        between = m.predecessor
        if self.joined and src in self.table.successors[:1] and between not in (NIL, self.me):
            away = clockwise(self.place, place_of(src))
            if clockwise(self.place, place_of(between)) < away:
                self.take_list(between, (src, *m.successors))
                self.out.send(between, Notify(self.table.predecessor))
                return
        Chord.on_tell(self, src, m)
