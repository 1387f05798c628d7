"""Non End-to-End with crashes (EE, section V.B): paths are repaired, and gathered queues are not lost.

Nodes that are next to each other on a path exchange pings, which are the overlay's: `on_suspect` says that a neighbour
is silent. On each path through it, the node before it routes the request again to that one replica, which makes a new
path. The node behind it sends a CLEANUP along the old path, which deletes the entries and brings their queues to the
replica. If the neighbour is alive after all, this does no harm.

A node that has added requests to the queue of a RELEASE keeps a copy until the replica has acknowledged it. If that
takes too long, or the next node has crashed, the keeper routes the copy to the node that owns the key by then. The
paper calls this node the temporary token holder.

Without leases, nodes must also be notified of every crash (`on_crash`), because that frees the votes of the crashed
peer. So these reports must be true.

A RELEASE may be lost with the node that it was sent to. So a requester that has heard of a crash asks again, a few
times, bypassing the entries. The replica then notifies the owner of its vote again, and an owner whose request is over
answers with RELEASE.
"""

from fairgate.core.declare import Id, Option, node
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.protocols.non_e2e.messages import LIFE, Asked, Gathering, Owner, Request, Taken
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.protocols.non_e2e.state import Entry, Kept, Replica, holder_of, in_order

TRIES = 5  # how often a keeper sends its copy; after that, it relies on requesters, which ask again themselves
ROUNDS = 5  # how often a requester asks all replicas again after a crash


@node
class Mending(NonE2E):
    """Not a protocol of its own: fault_tolerant.py adds leases for votes."""

    lease: Option[int] = 0  # a copy is sent again after a third of it; without leases no copies are kept
    crashed: set[int] = set()  # peers that this node was told have crashed
    rounds_left: int = 0  # how often to ask all replicas again, if there are no leases
    kept: dict[tuple[int, int, int, int], Kept] = {}  # by (replica, ts, node, attempt)

    def on_timer(self, name: str) -> None:
        if name == "keep":
            self.pass_kept_again(NIL)
        else:
            NonE2E.on_timer(self, name)

    # The requester asks again if a message may be lost.

    def request_cs(self) -> None:
        NonE2E.request_cs(self)
        self.wait_for_votes()

    def ask_again(self) -> None:
        NonE2E.ask_again(self)
        self.rounds_left = max(0, self.rounds_left - 1)
        self.wait_for_votes()

    def wait_for_votes(self) -> None:
        if self.may_be_lost():
            self.ask_later()

    def may_be_lost(self) -> bool:
        return self.lease > 0 or self.rounds_left > 0

    # The replica.

    def on_request(self, src: Id, m: Request) -> None:
        """Make up for messages that were lost in a crash.

        A later attempt of the owner implies a lost YIELD. A request that bypassed entries suggests a lost RELEASE, so
        the owner is notified again.
        """
        replica = self.replica(m.replica)
        if replica.owner and self.follows(m.asked, replica.owner):
            self.out.note("an attempt followed another without a YIELD")
            replica.owner = ()
        NonE2E.on_request(self, src, m)
        if m.past and replica.owner and replica.owner != m.asked:
            self.tell_owner(m.replica, replica)

    def follows(self, asked: Asked, before: Owner) -> bool:
        """Is this a later attempt of the same request?"""
        return asked[:2] == before[:2] and asked > before and asked[2] >> LIFE == before[2] >> LIFE

    def vote(self, number: int, replica: Replica) -> None:
        if self.crashed and not replica.owner:
            replica.queue = self.of_the_living(replica.queue)
        NonE2E.vote(self, number, replica)

    def on_gathering(self, src: Id, m: Gathering) -> None:
        NonE2E.on_gathering(self, src, m)
        if m.keeper != NIL:
            self.out.send(m.keeper, Taken(self.gate, m.replica, m.ts, m.node, m.attempt))

    # Nodes on the path.

    def pass_request(self, src: Id, m: Request, next_hop: Id) -> Keyed | None:
        return None if m.node in self.crashed else NonE2E.pass_request(self, src, m, next_hop)

    def keep(self, onward: Gathering, next_hop: Id) -> Gathering:
        """EE:F3 An alive predecessor of the replica can rebuild its queue."""
        if not self.lease or not onward.queue:
            return onward
        kept = Kept(onward, onward.keeper, next_hop, TRIES)
        self.kept[onward.replica, onward.ts, onward.node, onward.attempt] = kept
        self.set_timer("keep", self.lease // 3)
        return onward.with_queue(onward.queue, self.me)

    def on_taken(self, m: Taken) -> None:
        kept = self.kept.pop((m.replica, m.ts, m.node, m.attempt), None)
        if kept is not None and kept.before != NIL:
            self.out.send(kept.before, m)

    def pass_kept_again(self, crashed: Id) -> None:
        """Route copies to the nodes that own the keys now: those that went to the node `crashed`, or all if NIL."""
        for key in sorted(self.kept):
            kept = self.kept[key]
            if crashed in (NIL, kept.next):
                self.out.note("what a RELEASE had gathered was sent again")
                self.door.route(kept.msg.with_queue(kept.msg.queue, self.me))
                kept.tries -= 1
                if kept.tries == 0:
                    del self.kept[key]
        if self.kept:
            self.set_timer("keep", self.lease // 3)

    # A peer has crashed.

    def on_crash(self, peer: Id) -> None:
        self.crashed.add(peer)
        self.rounds_left = ROUNDS
        if self.requesting_cs and not self.inside:
            self.wait_for_votes()
        for number in sorted(self.replicas):
            replica = self.replicas[number]
            if replica.owner and replica.owner[1] == peer:
                self.out.note("the owner crashed")
                replica.owner = ()
                self.vote(number, replica)
        for entry in in_order(self.first):
            entry.queue = self.of_the_living(entry.queue or [])
        self.mend_paths(peer)

    def on_suspect(self, peer: Id, detector: str) -> None:
        """A neighbour on a path, or in the overlay's tables, no longer answers pings."""
        self.mend_paths(peer)

    def mend_paths(self, peer: Id) -> None:
        for entry in in_order(self.first):
            self.mend(entry, peer)
        self.pass_kept_again(peer)

    def on_trust(self, peer: Id, detector: str) -> None:
        """The peer is back, without its memory."""
        self.crashed.discard(peer)

    def of_the_living(self, queue: list[Asked]) -> list[Asked]:
        return [asked for asked in queue if asked[1] not in self.crashed]

    def mend(self, entry: Entry, peer: Id) -> None:
        number: int = entry.replica
        if entry.node == peer:
            self.dissolve(entry, False)
        elif entry.next == peer:
            self.out.note("a request was routed anew")
            self.route_again(number, holder_of(entry), False)  # EE:F1
        elif entry.previous == peer:
            self.out.note("a path was cleaned up")
            self.door.route(self.clean_up(entry))  # EE:F2
