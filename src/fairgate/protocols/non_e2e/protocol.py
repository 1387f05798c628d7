"""Non End-to-End (EE, section IV.B): a quorum of replicas, with partial queues on the paths to them.

Theory of operation. Every replica of a gate has one vote, and a node with a majority of the votes is inside. A REQUEST
is routed to each replica. The nodes that it passes make an entry for that replica in their replica list, and keep every
later request for it in the entry's queue instead of passing it on. So few requests reach a replica. The RELEASE of the
request that made the entries follows the same path, deletes them and gathers their queues. The replica merges these
with its own queue and votes for the first request.

A request is (ts, node, attempt). Each of its votes can be given back by YIELD. The next attempt asks for it again under
a higher number, so a late or duplicated vote is never mistaken for a current one. Entries, queues and votes all name
their request. If an attempt is over, so are all earlier attempts of the same request.

An entry records a request that passed, not the one that has the vote. It may even be a ghost, made by a REQUEST that
was overtaken by its own RELEASE. So only a replica votes. A node that hears of a request of its own that is over sends
the RELEASE again. A node that holds votes but does not win asks the replicas that have not answered again, this time
bypassing the entries, so that it gets into all their queues. A replica tells the owner of its vote if an earlier
request is waiting, and an owner that has not won gives such votes back. So the earliest of those that hold votes
eventually gets them all.

The paper leaves holes; papers/non_e2e.md lists them, with the tests that demonstrate them. Each flag of the class
enables one correction. The replica's side is in replica.py, and literal.py is the paper as printed. mending.py and
fault_tolerant.py implement section V.B, failures.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Place, node
from fairgate.core.ids import NIL
from fairgate.core.kbr import REPLICAS
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import is_between
from fairgate.core.message import Key
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.messages import LIFE, Asked, CleanUp, Gathering, GrantReq, Release, Request, Skip, Yield
from fairgate.protocols.non_e2e.replica import ReplicaSide
from fairgate.protocols.non_e2e.state import (
    RETRY,
    Ask,
    Entry,
    find,
    holder_of,
    in_order,
    is_of,
    keep_in,
    merged,
    most_held,
    skip,
    without,
)

SHARES = 8  # a random delay is 1 to 8 eighths of `delay`
NO_ASKS: list[Ask] = []  # shared by all nodes without a request, to save memory; never modified


@node
class NonE2E(ReplicaSide):
    prefetcher = "fairgate.protocols.non_e2e.prefetch"
    about = About(
        name="non_e2e",
        paper="EE",
        kind="quorum",
        cost="n(2h+1) alone, h hops to each of n replicas; fewer under load",
        survives=("loss over a channel", "duplication over a channel"),
        many=False,
        options={"replicas": REPLICAS, "quorum": 0, "retry": RETRY},
    )

    # Corrections of the paper. Tests disable each one alone.
    from_owner = True  # (1) only a RELEASE from its owner frees a replica
    replicas_vote = True  # (2) a GRANTREQ from a node on the path is no vote, and no reason to give votes back
    asks_again = True  # (3) a node that holds votes but does not win asks the replicas again, bypassing the entries
    yield_gathers = True  # (4) YIELD deletes entries and gathers queues as RELEASE does,
    by_number = True  # and both delete their own request only, not all requests of the node
    answers_late = True  # (5) a GRANTREQ for a request that is over is answered with RELEASE
    attempts = True  # (6) a vote that was given back is asked for under a new number
    earliest_keeps = True  # (7) a vote is given back only if an earlier request is waiting for it

    life: int = 0  # random if the node may have lost its memory, to tell its requests from those before
    # Requester.
    ts: int = NIL
    delay: int = 0  # before asking again
    asks: list[Ask]  # by replica, while there is a request
    voted: Fixed[int] = 0  # how many of them have voted; counting them each time would cost many memory accesses
    # Node on the path.
    first: Entry | None = None  # of the replica list, a linked list: most nodes have one entry or none

    def initialize(self, setup: Setup) -> None:
        ReplicaSide.initialize(self, setup)
        self.asks = NO_ASKS

    # The requester.

    def request_cs(self) -> None:  # EE:B1
        self.ts = self.next_stamp()
        self.delay = self.terms.retry
        asked: Asked = (self.ts, self.me, self.life << LIFE)
        self.asks = [Ask(self.life << LIFE) for _ in self.keys]
        self.voted = 0
        for replica in range(len(self.keys)):
            self.ask(replica, asked, False)

    def ask(self, replica: int, asked: Asked, past: bool) -> None:
        ask: Ask = self.asks[replica]
        ask.asked = True
        ask.heard = False
        self.door.route(Request(self.gate, self.keys[replica], replica, asked, past))

    def release_cs(self) -> None:  # EE:B4, at the requester
        ts: int = self.ts
        asks: list[Ask] = self.asks
        self.forget()
        for replica in range(len(asks)):
            ask: Ask = asks[replica]
            if ask.asked:
                self.over(replica, ts, ask.attempt)

    def forget(self) -> None:
        self.ts = NIL
        self.asks = NO_ASKS
        self.cancel_timer("again")

    def over(self, replica: int, ts: int, attempt: int) -> None:
        self.door.route(Release(self.gate, self.keys[replica], replica, ts, self.me, attempt, (), NIL))

    def on_grantreq(self, src: Id, m: GrantReq) -> None:  # EE:B5
        self.see_stamp(m.clock)
        ask: Ask | None = self.asks[m.replica] if m.ts == self.ts else None
        if ask is None or m.attempt != ask.attempt:
            self.out.note("a GRANTREQ came for a request that is over")
            if self.terms.answers_late:
                self.over(m.replica, m.ts, m.attempt)
            return
        if not ask.heard:
            ask.heard = not (m.way and self.terms.replicas_vote)
        ask.holder = m.holder
        if m.wanted:
            ask.wanted = True
        if m.vote or (m.holder == self.me and not self.terms.replicas_vote):
            self.take_vote(src, m.replica, ask)
        if not self.inside:
            self.count_votes()

    def take_vote(self, src: Id, replica: int, ask: Ask) -> None:
        if not ask.vote:
            ask.vote = True
            self.voted += 1

    def votes(self) -> int:
        return self.voted

    def count_votes(self) -> None:  # EE:B5
        votes: int = self.votes()
        if votes >= self.terms.quorum:
            self.cancel_timer("again")
            self.enter_cs(NIL, NIL)
        elif votes == 0:
            self.wait_for_votes()
        elif self.all_heard():
            if self.terms.earliest_keeps or not self.somebody_wins():
                self.yield_votes()
        elif self.terms.asks_again:
            self.ask_later()

    def wait_for_votes(self) -> None:
        """Nothing to do: this request gets its votes when the earlier ones are released."""

    def all_heard(self) -> bool:
        """Has every replica answered in this round?"""
        heard: int = 0
        ask: Ask
        for ask in self.asks:
            heard += ask.heard
        return heard == len(self.asks)

    def somebody_wins(self) -> bool:
        """Does another node have a majority, by the answers of this round?"""
        return most_held(self.asks, self.me) >= self.terms.quorum

    def yield_votes(self) -> None:  # EE:B5, B6
        """Give back the votes that earlier requests are waiting for."""
        given: bool = False
        for replica in range(len(self.asks)):
            ask: Ask = self.asks[replica]
            if ask.vote and (ask.wanted or not self.terms.earliest_keeps):
                self.give_vote_back(replica, ask)
                given = True
        if given:
            eighths: int = self.out.choose(SHARES) + 1
            self.set_timer("again", self.delay * eighths // SHARES)
        else:
            self.wait_for_votes()

    def give_vote_back(self, replica: int, ask: Ask) -> None:
        self.door.route(Yield(self.gate, self.keys[replica], replica, self.ts, self.me, ask.attempt, (), NIL))
        ask.attempt += self.terms.attempts
        ask.asked = ask.heard = ask.vote = ask.wanted = False
        ask.holder = NIL
        self.voted -= 1

    def ask_later(self) -> None:
        if not self.is_armed("again"):
            self.set_timer("again", self.delay)

    def on_timer(self, name: str) -> None:
        if name == "again":
            self.ask_again()

    def ask_again(self) -> None:
        """EE:B6 Ask for the votes that were given back. If it has other votes, ask for all missing ones, bypassing the
        entries."""
        self.delay = min(2 * self.delay, self.terms.longest)
        self.ask_replicas()

    def ask_replicas(self) -> None:
        all_once_more: bool = self.may_be_lost()
        past: bool = self.terms.asks_again and (all_once_more or self.votes() > 0)
        for replica in range(len(self.asks)):
            ask: Ask = self.asks[replica]
            asked: Asked = (self.ts, self.me, ask.attempt)
            if not ask.asked:
                self.ask(replica, asked, False)
            elif past and not ask.vote and (all_once_more or not ask.heard):
                self.ask(replica, asked, True)

    def may_be_lost(self) -> bool:
        """Could a replica that has answered have forgotten this request since?"""
        return False

    # Nodes on the path.

    def forward(self, src: Id, msg: Keyed, next_hop: Id) -> Keyed | None:
        if isinstance(msg, Request):
            return self.pass_request(src, msg, next_hop)
        if isinstance(msg, Gathering):
            return self.pass_gathering(src, msg, next_hop)
        return msg

    def pass_request(self, src: Id, m: Request, next_hop: Id) -> Keyed | None:  # EE:B2
        if m.past:
            return m
        self.see_stamp(m.ts)
        entry: Entry | None = find(self.first, m.replica)
        if entry is None:
            self.make_entry(Entry(m.replica, m.node, m.ts, m.attempt, src, next_hop))
            return m
        if is_of(entry, m) and self.terms.attempts:  # the entry's own request comes again: pass it on
            entry.next = next_hop
            if src != self.me:
                entry.previous = src
            return m
        if src == entry.next:  # the way of the entry's own request: each node would keep the other's request for good
            self.out.note("a request came back from where the entry's own request went")
            return Request(self.gate, self.keys[m.replica], m.replica, m.asked, True)
        keep_in(entry, m.asked)
        self.inform(m, entry.node, True)
        return None

    def make_entry(self, entry: Entry) -> None:
        entry.after = self.first
        self.first = entry

    def pass_gathering(self, src: Id, m: Gathering, next_hop: Id) -> Keyed | None:  # EE:B4
        entry: Entry | None = find(self.first, m.replica)
        if entry is None or not (isinstance(m, Release) or self.terms.yield_gathers):
            return m
        if not self.is_own(m, holder_of(entry)):
            if m.over and entry.queue:
                self.take_out(entry.queue, m)
            return m
        self.drop_entry(m.replica)
        onward: Gathering = self.keep(m.with_queue(tuple(merged(entry.queue, m.queue)), m.keeper), entry.next)
        if entry.next != next_hop:  # follow the REQUEST's path too; not only that, as the node may have left
            self.out.send(entry.next, onward)
        return onward

    def keep(self, onward: Gathering, next_hop: Id) -> Gathering:
        """A hook for a subclass that keeps a copy, in case the message gets lost."""
        return onward

    def drop_entry(self, replica: int) -> None:
        self.first = without(self.first, replica)

    # Keys change owners.

    def on_range(self, start: Place, end: Place) -> None:
        """Hand over replicas that this node no longer serves, and drop entries of those that it serves now.

        It is no longer on the path to those: the RELEASE ends here, so the rest of the path is deleted now.
        """
        self.hand_over(start, end)
        entry: Entry
        for entry in in_order(self.first):
            if is_between(self.keys[entry.replica], start, end):
                self.out.send(entry.next, self.clean_up(entry))
                self.dissolve(entry, False)

    def clean_up(self, entry: Entry) -> CleanUp:
        key: Place = self.keys[entry.replica]
        return CleanUp(self.gate, key, entry.replica, entry.ts, entry.node, entry.attempt, (), NIL)

    def on_leave(self) -> None:
        """Connect its neighbours on each path: a RELEASE may arrive long after this node has stopped."""
        entry: Entry
        for entry in in_order(self.first):
            for peer in sorted({entry.previous, entry.next} - {self.me}):
                news = Skip(self.gate, entry.replica, entry.ts, entry.node, entry.attempt, entry.previous, entry.next)
                self.out.send(peer, news)
            self.dissolve(entry, True)  # bypassing entries, or this node would make one again

    def linked(self) -> list[int]:
        return [peer for entry in in_order(self.first) for peer in (entry.previous, entry.next)]

    def on_skip(self, src: Id, m: Skip) -> None:
        entry = find(self.first, m.replica)
        if entry is not None and holder_of(entry) == (m.ts, m.node, m.attempt):
            skip(entry, src, m)

    def dissolve(self, entry: Entry, past: bool) -> None:
        """Delete an entry, and route the requests in its queue on to the replica."""
        self.drop_entry(entry.replica)
        for asked in entry.queue or ():
            self.route_again(entry.replica, asked, past)

    def route_again(self, number: int, asked: Asked, past: bool) -> None:
        self.door.route(Request(self.gate, self.keys[number], number, asked, past))

    # The whole state.

    def first_key(self) -> Key:
        return tuple([entry.key() for entry in in_order(self.first)])  # type: ignore[attr-defined]  # derived

    def load_first(self, key: Key) -> None:
        for one in key:
            NonE2E.make_entry(self, Entry.from_key(one))  # type: ignore[attr-defined]

    def loaded(self) -> None:
        self.voted = sum([ask.vote for ask in self.asks])

    def show(self) -> dict[str, Any]:
        return {
            "clock": self.clock(),
            "ts": self.ts,
            "inside": self.inside,
            "votes": [i for i, ask in enumerate(self.asks) if ask.vote],
            "replica_list": {
                e.replica: (holder_of(e), tuple(e.queue or ()), e.previous, e.next) for e in in_order(self.first)
            },
            "replicas": {i: (r.owner, tuple(r.queue), r.wanted) for i, r in sorted(self.replicas.items())},
        }
