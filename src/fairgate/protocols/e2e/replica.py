"""The other sides of the End-to-End protocol: replicas that vote, and nodes on the path to them.

Two registers make a replica safe: the vote that is out, and the holder. A replica votes only if both are empty. A vote
ends only when the client has given it back or used it. The holder changes only to a newer generation. Any two
majorities share a replica; its vote for the earlier winner was used before it voted for the later one. So the later
winner has seen the earlier generation, and takes a higher one.
"""

from fairgate.core.declare import Id, Option, Place, node, record
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import is_between
from fairgate.core.message import Key
from fairgate.core.queues import put
from fairgate.protocols.e2e.messages import (
    Enqueue,
    HandOver,
    IAmWinner,
    Recall,
    Release,
    Request,
    Response,
    Stale,
    Yield,
)
from fairgate.protocols.stamps import Stamped


@record
class Replica:
    """The state of a replica, stored at the node that owns its key."""

    vote: Id = NIL  # the client whose vote is out: not yet used or given back
    vote_stamp: int = 0
    vote_round: int = 0
    vote_known: int = 0
    recalled: bool = False
    holder: Id = NIL  # the node that has the token, as far as the replica knows
    holder_stamp: int = 0
    generation: int = 0  # the latest that it knows of
    lineage: int = 0
    waiting: list[tuple[int, int, Id, int]] = []  # requests as (-known, stamp, node, round), best first

    def is_better(self, known: int, stamp: int, node: Id) -> bool:
        """Is this request better than the one that the vote is out for?"""
        return (-known, stamp, node) < (-self.vote_known, self.vote_stamp, self.vote)


@record
class Entry:
    """An entry of the replica list: this node is in the replica's quorum set.

    RELEASE leaves an entry with the generation, but without an owner.
    """

    owner: Id
    generation: int
    next: Id
    previous: Id


@node
class Voter(Stamped):
    passes = Request  # a node without an entry does not intercept it

    tells: Option[bool] = False  # send RESPONSE even if the request was handed to the replica's owner (papers/e2e.md)
    replicas: dict[int, Replica] = {}  # those whose keys this node owns, created on first use
    entries: dict[int, Entry] = {}  # EE's replica list

    # Nodes on the path.

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        if isinstance(msg, IAmWinner):
            self.note_owner(src, msg, next_hop)
        elif isinstance(msg, Release):
            return self.clean_up(msg, next_hop)
        elif isinstance(msg, Request) and self.stops(msg) and self.intercept(msg):
            return None
        return msg

    def stops(self, m: Request) -> bool:
        return m.ended == 0

    def intercept(self, msg: Request) -> bool:
        """EE:A2 If the replica list has an entry, send ENQUEUE to the owner and return True."""
        entry: Entry | None = self.entries.get(msg.replica)
        if entry is None or entry.owner in (NIL, msg.node):
            return False
        self.out.note("a REQUEST was intercepted")
        request = ((msg.stamp, msg.node),)
        self.out.send(entry.owner, Enqueue(self.gate, msg.replica, entry.generation, self.me, request))
        return True

    def note_owner(self, src: int, m: IAmWinner, next_hop: int) -> None:
        """EE:A4 Next and Previous are updated while IAMWINNER is routed."""
        entry: Entry | None = self.entries.get(m.replica)
        if entry is None or self.is_news(m.generation, entry.generation):
            self.entries[m.replica] = Entry(m.node, m.generation, next_hop, src)

    def clean_up(self, m: Release, next_hop: int) -> Keyed | None:
        """EE:A6 RELEASE follows the Next pointers and removes the entries."""
        entry: Entry | None = self.entries.get(m.replica)
        if entry is None:
            self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)  # its IAMWINNER may still arrive
            return m
        if not self.is_news(m.generation + 1, entry.generation):
            return m
        onward: int = entry.next
        self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)
        if onward not in (NIL, next_hop):  # that node may have left since, so RELEASE also takes the overlay's path
            self.out.note("a RELEASE went both ways")
            self.out.send(onward, m)
        return m

    def is_news(self, generation: int, known: int) -> bool:
        return generation > known

    def on_stale(self, m: Stale) -> None:
        entry: Entry | None = self.entries.get(m.replica)
        if entry is not None and entry.generation <= m.generation:
            self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)

    # The replica.

    def replica(self, i: int) -> Replica:
        replica: Replica | None = self.replicas.get(i)
        if replica is None:
            replica = self.replicas[i] = Replica()
        return replica

    def on_request(self, m: Request) -> None:
        r: Replica = self.replica(m.replica)
        if m.ended >= r.generation and r.holder != NIL:  # the RELEASE that says the same is still in transit
            r.generation = m.ended
            r.holder = NIL
        if r.vote == m.node and r.vote_stamp == m.stamp:
            self.vote_again(m.replica, r, m.round, m.known)
        else:
            self.consider(m.replica, r, m.node, m.stamp, m.round, m.known)

    def vote_again(self, i: int, r: Replica, round: int, known: int) -> None:
        if round >= r.vote_round:
            r.vote_round = round
            r.vote_known = known
        self.respond(i, r, r.vote, r.vote_stamp, r.vote_round, True)
        if r.recalled:
            self.recall(i, r, False)

    def on_yield(self, m: Yield) -> None:
        r: Replica = self.replica(m.replica)
        if r.vote == m.node and r.vote_stamp == m.stamp:
            if r.vote_round >= m.round:
                self.vote_again(m.replica, r, m.round, m.known)
                return
            r.vote = NIL
        self.consider(m.replica, r, m.node, m.stamp, m.round, m.known)

    def consider(self, i: int, r: Replica, node: int, stamp: int, round: int, known: int) -> None:
        """EE:A3 Vote for the requester, if possible; otherwise tell it the replica's owner."""
        self.keep(r, node, stamp, round, known)
        self.serve_waiting(i, r)
        if r.vote == node and r.vote_stamp == stamp:
            return
        if self.tells or r.holder == NIL:  # otherwise an ENQUEUE went to the owner, and no answer is needed
            self.respond(i, r, node, stamp, round, False)
        if r.vote != NIL and r.holder == NIL and not r.recalled and r.is_better(known, stamp, node):
            self.recall(i, r, False)

    def keep(self, r: Replica, node: int, stamp: int, round: int, known: int) -> None:
        """Keep the latest request of each node: an earlier one that arrives late is over."""
        at: int
        other_stamp: int
        other: int
        for at in range(len(r.waiting)):
            _, other_stamp, other, _ = r.waiting[at]
            if other == node and other_stamp > stamp:
                self.out.note("a REQUEST came after a later one of the same node")
                return
            if other == node:
                del r.waiting[at]
                break
        put(r.waiting, (-known, stamp, node, round))

    def serve_waiting(self, i: int, r: Replica) -> None:
        """Hand all waiting requests to the holder. If there is none and the vote is free, vote for the best one."""
        if not r.waiting:
            return
        if r.holder != NIL:
            self.hand_over(i, r)
        elif r.vote == NIL:
            self.cast(i, r)

    def hand_over(self, i: int, r: Replica) -> None:
        requests = tuple([(stamp, node) for _, stamp, node, _ in r.waiting])
        r.waiting = []
        self.out.send(r.holder, Enqueue(self.gate, i, r.generation, NIL, requests))

    def cast(self, i: int, r: Replica) -> None:
        rank, r.vote_stamp, r.vote, r.vote_round = r.waiting.pop(0)
        r.vote_known = -rank
        r.recalled = False
        self.respond(i, r, r.vote, r.vote_stamp, r.vote_round, True)

    def respond(self, i: int, r: Replica, node: int, stamp: int, round: int, vote: bool) -> None:
        owner: int = r.vote
        owner_stamp: int = r.vote_stamp
        if r.holder != NIL:
            owner = r.holder
            owner_stamp = r.holder_stamp
        self.out.send(node, Response(self.gate, i, stamp, round, vote, owner, owner_stamp, r.generation))

    def recall(self, i: int, r: Replica, won: bool) -> None:
        r.recalled = True
        self.out.send(r.vote, Recall(self.gate, i, r.vote_stamp, r.vote_round, won))

    def on_winner(self, m: IAmWinner) -> None:
        r: Replica = self.replica(m.replica)
        self.use_vote(r, m.node, m.stamp)
        if self.is_news(m.generation, r.generation):
            self.set_holder(m.replica, r, m.node, m.stamp, m.generation, m.lineage)
        self.serve_waiting(m.replica, r)

    def on_release_message(self, m: Release) -> None:
        r: Replica = self.replica(m.replica)
        self.use_vote(r, m.node, m.stamp)
        if self.is_news(m.generation + 1, r.generation):
            if m.heir == NIL:
                r.generation = m.generation  # EE:A6 reset the owner
                r.holder = NIL
            else:
                self.set_holder(m.replica, r, m.heir, m.heir_stamp, m.generation + 1, m.lineage)
        self.serve_waiting(m.replica, r)

    def use_vote(self, r: Replica, node: int, stamp: int) -> None:
        """A node that is or was the owner has used its vote, or will never use it: the vote is no longer out."""
        if r.vote == node and r.vote_stamp <= stamp:
            r.vote = NIL

    def set_holder(self, i: int, r: Replica, node: int, stamp: int, generation: int, lineage: int) -> None:
        r.holder = node
        r.holder_stamp = stamp
        r.generation = generation
        r.lineage = lineage
        if r.vote not in (NIL, node):
            self.dispossess(i, r)

    def dispossess(self, i: int, r: Replica) -> None:
        self.recall(i, r, True)

    # Keys change owners.

    def on_range(self, start: Place, end: Place) -> None:
        """Hand over replicas whose keys have another owner now. On a dynamic ring, titles have moved them already."""
        for i in sorted(self.replicas):
            if not is_between(self.keys[i], start, end):
                self.out.note("a replica moved")
                self.door.route(HandOver(self.gate, self.keys[i], i, *self.replicas[i].key()))  # type: ignore[attr-defined]
                self.forget_replica(i)

    def forget_replica(self, i: int) -> None:
        del self.replicas[i]

    def on_handover(self, m: HandOver) -> None:
        """Take over a replica, unless this node has already decided otherwise: then only its waiting requests."""
        r: Replica = self.replica(m.replica)
        if r.vote == NIL and m.generation >= r.generation and r.holder == NIL:
            r.vote, r.vote_stamp, r.vote_round, r.vote_known = m.vote, m.vote_stamp, m.vote_round, m.vote_known
            r.recalled = m.recalled
            r.holder, r.holder_stamp = m.holder, m.holder_stamp
            r.generation, r.lineage = m.generation, m.lineage
        for rank, stamp, requester, round in m.waiting:
            self.keep(r, requester, stamp, round, -rank)
        self.serve_waiting(m.replica, r)

    def played(self) -> list[tuple[int, int]]:
        return [(i, self.keys[i]) for i in sorted(self.replicas)]

    def on_leave(self) -> None:
        """Remove the Next pointers to this node: a RELEASE might follow them long after the node has stopped."""
        for i in sorted(self.entries):
            entry: Entry = self.entries[i]
            if entry.owner != NIL and entry.previous not in (NIL, self.me):
                self.out.send(entry.previous, Stale(self.gate, i, entry.generation))

    def linked(self) -> list[int]:
        owned = [entry for entry in self.entries.values() if entry.owner != NIL]
        return [peer for entry in owned for peer in (entry.previous, entry.next)]

    def give_replica(self, i: int) -> Key:
        state: Key = self.replicas.pop(i).key()  # type: ignore[attr-defined]  # derived
        return state

    def take_replica(self, i: int, state: Key) -> None:
        self.replicas[i] = Replica.from_key(state)  # type: ignore[attr-defined]
