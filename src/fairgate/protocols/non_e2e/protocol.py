"""Non End-to-End (EE, section IV.B): a quorum of replicas, with partial queues on the way to them.

Theory of operation. Every replica of a gate has one vote, and who has a majority of the votes is inside. A REQUEST is
routed to each replica. The nodes that it passes make an entry for that replica in their replica list, and keep every
later request for it in the entry's own queue instead of passing it on. So few requests reach a replica. The RELEASE of
the entry's holder goes the same way, takes the entries out and gathers their queues; the replica merges what comes
with its own queue and votes for the first.

A request is (ts, node, attempt). Each of its votes can be given back by YIELD, and the next attempt asks for it again
under a higher number: a vote that comes late, or for the second time, is never taken for one that was not given back.
An entry, a queue and a vote name the request that they are about, and what is over is so for all its earlier attempts.

An entry says who once passed, not who has the vote, and it may be a ghost: made by a REQUEST that its own RELEASE
has overtaken. So only a replica votes; whoever hears of a request of its own that is over sends the RELEASE again;
and who holds votes but does not win asks those replicas that have not answered themselves, past the entries. Then it
stands in all their queues. A replica tells who has its vote that an earlier request waits, and who has not won gives
such votes back: so the earliest of those who hold votes gets them all.

The paper leaves holes here; papers/non_e2e.md has them one by one, with the tests that fall into them. Each of the
class's flags mends one. literal.py is the text as printed. Section V.B, failures, is in fault_tolerant.py.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.kbr import REPLICAS, Routed
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import is_between
from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.queues import is_same, put
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.messages import (
    LIFE,
    Asked,
    Gathering,
    GrantReq,
    Release,
    Request,
    Skip,
    Yield,
    new_grantreq,
    new_release,
    new_request,
)
from fairgate.protocols.non_e2e.state import (
    RETRY,
    Ask,
    Entry,
    Replica,
    find,
    in_order,
    is_earlier,
    is_of,
    keep_in,
    load_ask,
    load_entry,
    merged,
    most_held,
    new_ask,
    new_entry,
    skip,
    terms_of,
    without,
)

SHARES = 8  # a random delay is one to so many eighths
NO_ASKS: list[Ask] = []  # shared by all nodes that ask for nothing: nearly all, where there are many; so never changed
NO_REPLICAS: dict[int, Replica] = {}  # and by all that play nothing


class NonE2E(Routed):
    timed = True
    about = About(
        name="non_e2e",
        paper="EE",
        kind="quorum",
        cost="n(2h+1) alone, h hops to each of n replicas; fewer under load",
        survives=("loss over a channel", "duplication over a channel"),
        many=False,
        options={"replicas": REPLICAS, "quorum": 0, "retry": RETRY},
    )

    # What was added to the text. A test leaves each out alone.
    from_owner = True  # (1) only a RELEASE of its owner frees a replica
    replicas_vote = True  # (2) a GRANTREQ from the way is information: no vote, and no reason to give votes back
    asks_again = True  # (3) who holds votes and does not win asks the replicas themselves, past the entries
    yield_gathers = True  # (4) YIELD takes entries out and gathers queues as RELEASE does,
    by_number = True  # and both take out their own request only, not all of the node's
    answers_late = True  # (5) a GRANTREQ for a request that is over is answered by RELEASE
    attempts = True  # (6) a vote that was given back is asked for under a new number
    earliest_keeps = True  # (7) a vote is given back only if an earlier request waits for it

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        Routed.set_up(self, me, setup, out)
        self.terms = terms_of(type(self), setup, len(self.keys))
        self.clock = 0
        self.life = 0  # drawn by a node that may have lost its memory: its requests are not those from before
        # The requester.
        self.ts = NIL
        self.asks = NO_ASKS  # by replica, while a request is under way
        self.voted = 0  # how many of them have voted: ten of these are ten looks into memory
        self.delay = 0  # before asking again
        # On the way.
        self.first: Entry | None = None  # of the replica list, which is linked: most have one entry or none
        # The replica.
        self.replicas = NO_REPLICAS

    # The requester.

    def request_cs(self) -> None:  # EE:B1
        self.clock += 1
        self.ts = self.clock
        self.delay = self.terms.retry
        asked = (self.ts, self.me, self.life << LIFE)
        self.asks = [new_ask(self.life << LIFE) for _ in self.keys]
        self.voted = 0
        for replica in range(len(self.keys)):
            self.ask(replica, asked, False)

    def ask(self, replica: int, asked: Asked, past: bool) -> None:
        ask = self.asks[replica]
        ask.asked = True
        ask.heard = False
        self.door.route(new_request(self.gate, self.keys[replica], replica, asked, past))

    def release_cs(self) -> None:  # EE:B4, where it begins
        ts, asks = self.ts, self.asks
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
        self.door.route(new_release(self.gate, self.keys[replica], replica, ts, self.me, attempt))

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, GrantReq):
            self.on_grantreq(src, msg)
        elif isinstance(msg, Skip):
            self.on_skip(src, msg)

    def on_grantreq(self, src: int, m: GrantReq) -> None:  # EE:B5
        self.clock = max(self.clock, m.clock)
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

    def take_vote(self, src: int, replica: int, ask: Ask) -> None:
        if not ask.vote:
            ask.vote = True
            self.voted += 1

    def votes(self) -> int:
        return self.voted

    def count_votes(self) -> None:  # EE:B5
        votes = self.votes()
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
        """Whoever is before this request will release: nothing is to be done."""

    def all_heard(self) -> bool:
        """Has every GRANTREQ of this round reached its destination?"""
        heard = 0
        for ask in self.asks:
            heard += ask.heard
        return heard == len(self.asks)

    def somebody_wins(self) -> bool:
        """By what was heard in this round, somebody else has a majority."""
        return most_held(self.asks, self.me) >= self.terms.quorum

    def yield_votes(self) -> None:  # EE:B5, B6
        """Those that an earlier request waits for."""
        given = False
        for replica in range(len(self.asks)):
            ask: Ask = self.asks[replica]
            if ask.vote and (ask.wanted or not self.terms.earliest_keeps):
                self.give_vote_back(replica, ask)
                given = True
        if given:
            eighths = self.out.choose(SHARES) + 1
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
        """EE:B6 for the votes that were given back; who has others asks for those that it lacks, past the entries."""
        self.delay = min(2 * self.delay, self.terms.longest)
        all_once_more = self.may_be_lost()
        past = self.terms.asks_again and (all_once_more or self.votes() > 0)
        for replica in range(len(self.asks)):
            ask: Ask = self.asks[replica]
            asked = (self.ts, self.me, ask.attempt)
            if not ask.asked:
                self.ask(replica, asked, False)
            elif past and not ask.vote and (all_once_more or not ask.heard):
                self.ask(replica, asked, True)

    def may_be_lost(self) -> bool:
        """What a replica that has answered knows of this request."""
        return False

    # On the way.

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        if isinstance(msg, Request):
            return self.pass_request(src, msg, next_hop)
        if isinstance(msg, Gathering):
            return self.pass_gathering(src, msg, next_hop)
        return msg

    def pass_request(self, src: int, m: Request, next_hop: int) -> Keyed | None:  # EE:B2
        if m.past:
            return m
        if m.ts > self.clock:
            self.clock = m.ts
        entry = find(self.first, m.replica)
        if entry is None:
            self.make_entry(new_entry(m, src, next_hop, self.first))
            return m
        if is_of(entry, m) and self.terms.attempts:  # it comes again; its entry is no reason to keep it
            entry.next = next_hop
            if src != self.me:
                entry.previous = src
            return m
        keep_in(entry, m.asked)
        self.inform(m, entry.node, True)
        return None

    def make_entry(self, entry: Entry) -> None:
        self.first = entry

    def inform(self, m: Request, holder: int, way: bool) -> None:
        news = new_grantreq(self.gate, m.replica, m.ts, m.attempt, holder, way, False, False, self.clock)
        self.out.send(m.node, news)

    def pass_gathering(self, src: int, m: Gathering, next_hop: int) -> Keyed | None:  # EE:B4
        entry = find(self.first, m.replica)
        if entry is None or not (isinstance(m, Release) or self.terms.yield_gathers):
            return m
        if not self.is_own(m, entry.holder):
            if m.over and entry.queue:
                self.take_out(entry.queue, m)
            return m
        self.drop_entry(m.replica)
        onward = self.keep(m.with_queue(tuple(merged(entry.queue, m.queue)), m.keeper), entry.next)
        if entry.next != next_hop:  # the quorum set is where the REQUEST went; but who is there may have left since
            self.out.send(entry.next, onward)
        return onward

    def keep(self, onward: Gathering, next_hop: int) -> Gathering:
        """For those who fear that it gets lost on its way."""
        return onward

    def drop_entry(self, replica: int) -> None:
        self.first = without(self.first, replica)

    def is_own(self, m: Gathering, asked: Asked) -> bool:
        """Is this the request that the message is about? Its earlier attempts are over as well."""
        node: int = asked[1]
        if node != m.node or not self.terms.by_number:
            return node == m.node
        ts: int = asked[0]
        attempt: int = asked[2]
        return ts == m.ts and attempt <= m.attempt and attempt >> LIFE == m.attempt >> LIFE

    def take_out(self, queue: list[Asked], m: Gathering) -> None:
        for at in range(len(queue) - 1, -1, -1):
            if self.is_own(m, queue[at]):
                del queue[at]

    # The replica.

    def deliver(self, src: int, msg: Keyed) -> None:
        if isinstance(msg, Request):
            self.on_request(src, msg)
        elif isinstance(msg, Gathering):
            self.on_gathering(src, msg)

    def replica(self, number: int) -> Replica:
        replica: Replica | None = self.replicas.get(number)
        return self.add_replica(number) if replica is None else replica

    def add_replica(self, number: int) -> Replica:
        replica = Replica()
        self.replicas = {**self.replicas, number: replica}
        return replica

    def on_request(self, src: int, m: Request) -> None:  # EE:B3
        if m.ts > self.clock:
            self.clock = m.ts
        replica = self.replica(m.replica)
        asked = m.asked
        if is_same(replica.owner, asked):
            self.tell_owner(m.replica, replica)
            return
        put(replica.queue, asked)
        self.vote(m.replica, replica)
        if replica.owner and not is_same(replica.owner, asked):
            self.inform(m, replica.owner[1], False)

    def vote(self, number: int, replica: Replica) -> None:
        """For the first in the queue, if the vote is free. If not, its owner hears once that an earlier one waits."""
        if not replica.queue:
            return
        if not replica.owner:
            replica.owner = replica.queue.pop(0)
            replica.wanted = False
            self.tell_owner(number, replica)
        elif not replica.wanted and self.terms.earliest_keeps and is_earlier(replica.queue[0], replica.owner):
            replica.wanted = True
            self.tell_owner(number, replica)

    def tell_owner(self, number: int, replica: Replica) -> None:
        ts, node, attempt = replica.owner
        self.out.send(node, new_grantreq(self.gate, number, ts, attempt, node, False, True, replica.wanted, self.clock))

    def on_gathering(self, src: int, m: Gathering) -> None:  # EE:B4, where it ends
        replica = self.replica(m.replica)
        replica.queue = merged(replica.queue, m.queue)
        if m.over:
            self.take_out(replica.queue, m)
            if replica.owner and (self.is_own(m, replica.owner) or not self.from_owner):
                replica.owner = ()
        self.vote(m.replica, replica)

    # A key gets another owner.

    def played(self) -> list[tuple[int, int]]:
        return [(number, self.keys[number]) for number in sorted(self.replicas)]

    def give_replica(self, i: int) -> Key:
        replica: Replica = self.replicas.pop(i)
        return replica.key()

    def take_replica(self, i: int, state: Key) -> None:
        self.add_replica(i).load(state)

    def on_range(self, start: int, end: int) -> None:
        """Who plays a replica is not on the way to it."""
        for number, entry in in_order(self.first):
            if is_between(self.keys[number], start, end):
                self.dissolve(number, entry, False)

    def on_leave(self) -> None:
        """Its quorum sets close up: a RELEASE may come long after this node has stopped."""
        for number, entry in in_order(self.first):
            ts, node, attempt = entry.holder
            for peer in sorted({entry.previous, entry.next} - {self.me}):
                self.out.send(peer, Skip(self.gate, number, ts, node, attempt, entry.previous, entry.next))
            self.dissolve(number, entry, True)  # past the entries, or this node would make one again

    def on_skip(self, src: int, m: Skip) -> None:
        entry = find(self.first, m.replica)
        if entry is not None and entry.holder == (m.ts, m.node, m.attempt):
            skip(entry, src, m)

    def dissolve(self, number: int, entry: Entry, past: bool) -> None:
        """The entry has no use any more: the requests that it keeps go on."""
        self.drop_entry(number)
        for asked in entry.queue or ():
            self.route_again(number, asked, past)

    def route_again(self, number: int, asked: Asked, past: bool) -> None:
        self.door.route(new_request(self.gate, self.keys[number], number, asked, past))

    # The state, whole.

    def key(self) -> Key:
        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            self.clock,
            self.life,
            self.ts,
            self.delay,
            tuple([ask.key() for ask in self.asks]),
            tuple([(number, *entry.key()) for number, entry in in_order(self.first)]),
            tuple([(number, *replica.key()) for number, replica in sorted(self.replicas.items())]),
            self.timers_key(),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, self.request, self.requesting_cs, self.inside, self.clock, self.life, self.ts, self.delay = key[:8]
        asks, entries, replicas, timers = key[8:]
        self.asks = [load_ask(ask) for ask in asks]
        self.voted = sum([ask.vote for ask in self.asks])
        for number, *entry in entries:
            self.first = load_entry(number, entry, self.first)
        for number, *replica in replicas:
            self.add_replica(number).load(replica)
        self.load_timers(tuple(timers))

    def show(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "ts": self.ts,
            "inside": self.inside,
            "votes": [number for number, ask in enumerate(self.asks) if ask.vote],
            "replica_list": {number: entry.key() for number, entry in in_order(self.first)},
            "replicas": {number: replica.key() for number, replica in sorted(self.replicas.items())},
        }
