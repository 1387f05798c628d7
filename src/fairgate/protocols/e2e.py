"""The End-to-End protocol: "Efficient Mutual Exclusion in Peer-to-Peer Systems", EE section IV.A, on any DHT.

Theory of operation. Replicas vote, each for one request at a time. Who has a majority is the owner and says so to all
replicas (IAMWINNER); on the way every node notes who owns that replica, and from whom and to whom the message went:
the *quorum set* of the replica. A REQUEST that meets such a node goes no further: it is put into the owner's queue
(ENQUEUE). The queue stays with the owner and travels on with the token; RELEASE takes the quorum sets away.

The text leaves holes. What fills them, each as a method that can be left out (papers/e2e.md has the ledger):
  (1) `named_heir`: RELEASE names who has the token now, so a replica stays owned while the token travels;
  (2) `is_news`: generations, one for each owner, order IAMWINNER and RELEASE wherever they pass;
  (3) `keep`: a replica keeps the requests that it cannot vote for, and hands them to the winner;
  (4) `dispossess`: a vote that a winner finds given to another is asked back from that one, not taken;
  (5) `on_late_enqueue`: who is no longer the owner passes an ENQUEUE on, or back, and mends the quorum set;
  (6) `on_early_enqueue`: who is not the owner yet keeps it until the token comes;
  (7) `stops`: only a first REQUEST is intercepted; `put`: nobody is queued twice; `on_unwanted_token`.

Two registers make a replica safe: the vote that is out, and the holder. It votes only if both are empty; a vote is over only
when the client has given it back or used it; the holder changes only to a newer generation. Any two majorities meet
in a replica whose vote was used before, so the later winner has seen the earlier generation, and is past it.

No timer, no random number: an earlier request that comes while a vote is out recalls it, and a client yields what is recalled
once all replicas have answered and it has not won. So the earliest request gets all the votes in the end.
Channels must be reliable; they may reorder. What survives crashes, resets and loss is e2e_ft.py.
"""

from bisect import insort
from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.kbr import Door, Keyed, Routed
from fairgate.core.message import Key, Message
from fairgate.core.setup import Setup
from fairgate.protocols.e2e_messages import (
    Enqueue,
    IAmWinner,
    Queue,
    Recall,
    Release,
    Request,
    Response,
    SentBack,
    Stale,
    Token,
    Yield,
    as_queue,
)

ASKED, OTHER, VOTE, RECALLED = range(4)  # what a client knows of a replica: nothing yet, another's, mine, mine and recalled


class Replica:
    """What the owner of a replica's key has in mind for it."""

    __slots__ = ("generation", "holder", "holder_stamp", "lineage", "recalled", "vote", "vote_round", "vote_stamp", "waiting")

    def __init__(self) -> None:
        self.vote = NIL  # whom it has voted for, and not yet heard of again
        self.vote_stamp = 0
        self.vote_round = 0
        self.recalled = False
        self.holder = NIL  # who has the token, as far as it knows
        self.holder_stamp = 0
        self.generation = 0  # the last one that it has heard of
        self.lineage = 0
        self.waiting: list[tuple[int, int, int, int]] = []  # (-known, stamp, node, round): whom to vote for, best first

    def key(self) -> Key:
        vote = (self.vote, self.vote_stamp, self.vote_round, self.recalled)
        return (*vote, self.holder, self.holder_stamp, self.generation, self.lineage, tuple(self.waiting))

    def load(self, key: Key) -> None:
        self.vote, self.vote_stamp, self.vote_round, self.recalled = key[:4]
        self.holder, self.holder_stamp, self.generation, self.lineage = key[4:8]
        self.waiting = [(rank, stamp, node, round) for rank, stamp, node, round in key[8]]


class Entry:
    """A line of the replica list: this node is in a quorum set. After clean-up the owner is NIL, the generation stays."""

    __slots__ = ("generation", "next", "owner", "previous")

    def __init__(self, owner: int, generation: int, next: int, previous: int) -> None:
        self.owner = owner
        self.generation = generation
        self.next = next
        self.previous = previous

    def key(self) -> Key:
        return (self.owner, self.generation, self.next, self.previous)


class E2E(Routed):
    about = About(
        name="e2e",
        paper="EE",
        kind="token and quorum",
        cost="about 4 n routes of O(log N) hops, n replicas; an intercepted request less",
        many=False,
        open_membership=True,
        options={"replicas": 3, "quorum": 0},  # quorum 0: a majority
    )

    def __init__(self, me: int, setup: Setup, out: Door) -> None:
        Routed.__init__(self, me, setup, out)
        self.quorum: int = setup.options.get("quorum", 0) or len(self.keys) // 2 + 1
        # The client.
        self.clock = 0  # Lamport's
        self.stamp = 0  # of the last request
        self.rounds: list[int] = []  # by replica
        self.known: list[int] = []
        self.votes = 0
        self.missing = 0  # replicas that have not answered
        self.best = 0  # the highest generation among the answers
        # The owner.
        self.holding = False
        self.generation = 0
        self.lineage = 0
        self.queue: list[tuple[int, int]] = []
        self.early: list[tuple[int, int]] = []  # for a token that has not come yet
        self.tenure = 0  # the last generation that was this node's and is over
        self.heir = NIL  # who had the token next
        self.heir_stamp = 0
        # The others' replicas and owners.
        self.replicas: dict[int, Replica] = {}
        self.entries: dict[int, Entry] = {}

    # The client.

    def request_cs(self) -> None:
        self.clock += 1
        self.stamp = self.clock
        self.forget_answers()
        for i, key in enumerate(self.keys):  # EE:A1
            self.door.route(Request(self.gate, key, i, self.me, self.stamp, 0, 0, 0))

    def forget_answers(self) -> None:
        self.rounds = [0] * len(self.keys)
        self.known = [ASKED] * len(self.keys)
        self.votes = 0
        self.missing = len(self.keys)
        self.best = 0

    def on_response(self, m: Response) -> None:
        self.clock = max(self.clock, m.owner_stamp)
        if not self.requesting_cs or m.stamp != self.stamp:
            if m.vote:
                self.on_late_vote(m)
            return
        if self.holding or m.round != self.rounds[m.replica]:
            return
        if not m.vote and self.known[m.replica] >= VOTE:
            return  # the vote came later in the same round, and overtook this
        self.learn(m.replica, VOTE if m.vote else OTHER)
        if m.vote:
            self.best = max(self.best, m.generation)
        if self.votes >= self.quorum:  # EE:A4
            self.win()
        elif self.missing == 0:
            self.end_round()

    def on_late_vote(self, m: Response) -> None:
        self.out.note("a vote for a request that is over")
        self.route_release(m.replica, m.stamp)

    def learn(self, i: int, news: int) -> None:
        before = self.known[i]
        if before == ASKED:
            self.missing -= 1
        elif before != OTHER:
            self.votes -= 1
        if news == ASKED:
            self.missing += 1
        elif news != OTHER:
            self.votes += 1
        self.known[i] = news

    def end_round(self) -> None:
        """EE:A4 nobody has a majority, as far as this node knows: it yields the votes for which an earlier request waits."""
        for i in range(len(self.keys)):
            if self.known[i] == RECALLED:
                self.yield_vote(i)

    def yield_vote(self, i: int) -> None:
        self.learn(i, ASKED)
        self.rounds[i] += 1
        self.door.route(Yield(self.gate, self.keys[i], i, self.me, self.stamp, self.rounds[i], 0))

    def on_recall(self, m: Recall) -> None:
        i = m.replica
        if not self.requesting_cs or self.holding or m.stamp != self.stamp or m.round != self.rounds[i]:
            return  # used, or given back
        if m.won or self.missing == 0 or self.known[i] != VOTE:
            self.yield_vote(i)
        else:
            self.learn(i, RECALLED)

    def on_sent_back(self, m: SentBack) -> None:
        if self.requesting_cs and not self.holding and m.stamp == self.stamp:
            self.ask_again(m.replica, m.generation)

    def ask_again(self, i: int, ended: int) -> None:
        if self.known[i] == OTHER:
            self.learn(i, ASKED)
        self.rounds[i] += 1
        self.door.route(Request(self.gate, self.keys[i], i, self.me, self.stamp, self.rounds[i], ended, 0))

    # The owner.

    def win(self) -> None:
        self.generation = self.best + 1
        self.hold(())

    def hold(self, requests: Queue) -> None:
        self.take_queue(requests)
        self.route_winner()
        self.enter_cs(NIL, NIL)

    def take_queue(self, requests: Queue) -> None:
        self.holding = True
        self.votes = 0
        self.queue = []
        for stamp, node in requests:
            self.put(stamp, node)
        for stamp, node in self.early:
            self.put(stamp, node)
        self.early = []

    def route_winner(self) -> None:
        for i, key in enumerate(self.keys):
            self.door.route(IAmWinner(self.gate, key, i, self.me, self.stamp, self.generation, self.lineage, 0))

    def put(self, stamp: int, node: int) -> None:
        """EE:A5 the queue is sorted by timestamps."""
        self.clock = max(self.clock, stamp)
        if node != self.me and (stamp, node) not in self.queue:
            insort(self.queue, (stamp, node))

    def on_enqueue(self, m: Enqueue) -> None:
        if self.holding:
            for stamp, node in m.requests:  # EE:A5
                self.put(stamp, node)
        elif m.generation > self.tenure:
            self.on_early_enqueue(m)
        else:
            self.on_late_enqueue(m)

    def on_early_enqueue(self, m: Enqueue) -> None:
        self.out.note("an ENQUEUE overtook the TOKEN")
        self.early.extend(m.requests)

    def on_late_enqueue(self, m: Enqueue) -> None:
        if m.via != NIL:
            self.out.send(m.via, Stale(self.gate, m.replica, self.tenure))
        if self.heir != NIL:
            self.out.note("an ENQUEUE was passed on to the heir")
            self.out.send(self.heir, Enqueue(self.gate, m.replica, self.tenure + 1, NIL, m.requests))
            return
        for stamp, node in m.requests:
            self.out.note("an ENQUEUE was sent back")
            self.out.send(node, SentBack(self.gate, m.replica, stamp, self.tenure))

    def release_cs(self) -> None:
        self.holding = False
        self.tenure = self.generation
        self.heir = NIL
        self.heir_stamp = 0
        if self.queue:
            self.heir_stamp, self.heir = self.queue.pop(0)
            self.out.send(self.heir, Token(self.gate, self.generation + 1, self.lineage, tuple(self.queue)))  # EE:A7
            self.queue = []
        for i in range(len(self.keys)):
            self.route_release(i, self.stamp)  # EE:A6

    def route_release(self, i: int, stamp: int) -> None:
        """That the last tenure is over, and the request of this stamp."""
        heir = self.named_heir()
        self.door.route(
            Release(self.gate, self.keys[i], i, self.me, stamp, self.tenure, self.lineage, heir, self.heir_stamp)
        )

    def named_heir(self) -> int:
        return self.heir

    def on_token(self, m: Token) -> None:
        self.generation = m.generation
        self.lineage = m.lineage
        if self.requesting_cs:
            self.hold(m.requests)
        else:
            self.on_unwanted_token(m)

    def on_unwanted_token(self, m: Token) -> None:
        """A request that came late into the queue, when it was over."""
        self.out.note("a TOKEN nobody wanted")
        self.take_queue(m.requests)
        self.release_cs()

    # Nodes on the way.

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
        """EE:A2 is there an entry in the replica list?"""
        entry = self.entries.get(msg.replica)
        if entry is None or entry.owner in (NIL, msg.node):
            return False
        self.out.note("a REQUEST was intercepted")
        request = ((msg.stamp, msg.node),)
        self.out.send(entry.owner, Enqueue(self.gate, msg.replica, entry.generation, self.me, request))
        return True

    def note_owner(self, src: int, m: IAmWinner, next_hop: int) -> None:
        """EE:A4 Next and Previous are updated as IAMWINNER is routed."""
        entry = self.entries.get(m.replica)
        if entry is None or self.is_news(m.generation, entry.generation):
            self.entries[m.replica] = Entry(m.node, m.generation, next_hop, src)

    def clean_up(self, m: Release, next_hop: int) -> Keyed | None:
        """EE:A6 RELEASE goes along the Next pointers, and cleans up."""
        entry = self.entries.get(m.replica)
        if entry is None:
            self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)  # its IAMWINNER may still come
            return m
        if not self.is_news(m.generation + 1, entry.generation):
            return m
        onward = entry.next
        self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)
        if onward == NIL or onward == next_hop:
            return m
        self.out.note("a RELEASE left the overlay's way for the Next pointer")
        self.out.send(onward, m)
        return None

    def is_news(self, generation: int, known: int) -> bool:
        return generation > known

    def on_stale(self, m: Stale) -> None:
        entry = self.entries.get(m.replica)
        if entry is not None and entry.generation <= m.generation:
            self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)

    # The replica.

    def replica(self, i: int) -> Replica:
        replica = self.replicas.get(i)
        if replica is None:
            replica = self.replicas[i] = Replica()
        return replica

    def deliver(self, src: int, msg: Keyed) -> None:
        if isinstance(msg, Request):
            self.on_request(msg)
        elif isinstance(msg, IAmWinner):
            self.on_winner(msg)
        elif isinstance(msg, Release):
            self.on_release_message(msg)
        elif isinstance(msg, Yield):
            self.on_yield(msg)

    def on_request(self, m: Request) -> None:
        r = self.replica(m.replica)
        if m.ended >= r.generation and r.holder != NIL:  # what RELEASE is on its way to say
            r.generation = m.ended
            r.holder = NIL
        if r.vote == m.node and r.vote_stamp == m.stamp:
            self.vote_again(m.replica, r, m.round)
        else:
            self.consider(m.replica, r, m.node, m.stamp, m.round, m.known)

    def vote_again(self, i: int, r: Replica, round: int) -> None:
        r.vote_round = max(r.vote_round, round)
        self.respond(i, r, r.vote, r.vote_stamp, r.vote_round, True)
        if r.recalled:
            self.recall(i, r, False)

    def on_yield(self, m: Yield) -> None:
        r = self.replica(m.replica)
        if r.vote == m.node and r.vote_stamp == m.stamp:
            if r.vote_round >= m.round:
                self.vote_again(m.replica, r, m.round)
                return
            r.vote = NIL
        self.consider(m.replica, r, m.node, m.stamp, m.round, m.known)

    def consider(self, i: int, r: Replica, node: int, stamp: int, round: int, known: int) -> None:
        """EE:A3 has it voted already? The requester is told whose the replica is."""
        self.keep(r, node, stamp, round, known)
        self.settle(i, r)
        if r.vote == node and r.vote_stamp == stamp:
            return
        self.respond(i, r, node, stamp, round, False)
        if r.vote != NIL and r.holder == NIL and not r.recalled and (stamp, node) < (r.vote_stamp, r.vote):
            self.recall(i, r, False)

    def keep(self, r: Replica, node: int, stamp: int, round: int, known: int) -> None:
        r.waiting = [request for request in r.waiting if request[2] != node]
        insort(r.waiting, (-known, stamp, node, round))

    def settle(self, i: int, r: Replica) -> None:
        """Whoever waits here is handed to the holder; if there is none, the best one gets the vote as soon as it is free."""
        if not r.waiting:
            return
        if r.holder != NIL:
            requests = as_queue([(stamp, node) for _, stamp, node, _ in r.waiting])
            r.waiting = []
            self.out.send(r.holder, Enqueue(self.gate, i, r.generation, NIL, requests))
        elif r.vote == NIL:
            _, r.vote_stamp, r.vote, r.vote_round = r.waiting.pop(0)
            r.recalled = False
            self.respond(i, r, r.vote, r.vote_stamp, r.vote_round, True)

    def respond(self, i: int, r: Replica, node: int, stamp: int, round: int, vote: bool) -> None:
        if r.holder != NIL:
            owner, owner_stamp = r.holder, r.holder_stamp
        else:
            owner, owner_stamp = r.vote, r.vote_stamp
        self.out.send(node, Response(self.gate, i, stamp, round, vote, owner, owner_stamp, r.generation))

    def recall(self, i: int, r: Replica, won: bool) -> None:
        r.recalled = True
        self.out.send(r.vote, Recall(self.gate, i, r.vote_stamp, r.vote_round, won))

    def on_winner(self, m: IAmWinner) -> None:
        r = self.replica(m.replica)
        self.use_vote(r, m.node, m.stamp)
        if self.is_news(m.generation, r.generation):
            self.set_holder(m.replica, r, m.node, m.stamp, m.generation, m.lineage)
        self.settle(m.replica, r)

    def on_release_message(self, m: Release) -> None:
        r = self.replica(m.replica)
        self.use_vote(r, m.node, m.stamp)
        if self.is_news(m.generation + 1, r.generation):
            if m.heir == NIL:
                r.generation = m.generation  # EE:A6 the owner is reset
                r.holder = NIL
            else:
                self.set_holder(m.replica, r, m.heir, m.heir_stamp, m.generation + 1, m.lineage)
        self.settle(m.replica, r)

    def use_vote(self, r: Replica, node: int, stamp: int) -> None:
        """Whoever was the owner, or is, has used its vote, or will never use it."""
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

    # Every message that is not on its way to a key.

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Response):
            self.on_response(msg)
        elif isinstance(msg, Enqueue):
            self.on_enqueue(msg)
        elif isinstance(msg, Token):
            self.on_token(msg)
        elif isinstance(msg, Recall):
            self.on_recall(msg)
        elif isinstance(msg, SentBack):
            self.on_sent_back(msg)
        elif isinstance(msg, Stale):
            self.on_stale(msg)

    # The state.

    def key(self) -> Key:
        asking = self.requesting_cs and not self.holding
        client = (self.votes, self.missing, self.best, tuple(self.rounds), tuple(self.known)) if asking else ()
        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            self.clock,
            self.stamp,
            client,
            (self.holding, self.generation, self.lineage, tuple(self.queue), tuple(self.early)),
            (self.tenure, self.heir, self.heir_stamp),
            tuple([(i, self.replicas[i].key()) for i in sorted(self.replicas)]),
            tuple([(i, self.entries[i].key()) for i in sorted(self.entries)]),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, self.request, self.requesting_cs, self.inside, self.clock, self.stamp, client, owner, over, *others = key
        self.forget_answers()
        if client:
            self.votes, self.missing, self.best, rounds, known = client
            self.rounds = list(rounds)
            self.known = list(known)
        self.holding, self.generation, self.lineage, queue, early = owner
        self.queue = list(as_queue(queue))
        self.early = list(as_queue(early))
        self.tenure, self.heir, self.heir_stamp = over
        self.replicas = {}
        for i, replica in others[0]:
            self.replica(i).load(tuple(replica))
        self.entries = {i: Entry(*entry) for i, entry in others[1]}

    def show(self) -> dict[str, Any]:
        return {
            "holding": self.holding,
            "generation": self.generation,
            "queue": tuple(self.queue),
            "replica list": {i: (entry.owner, entry.next, entry.previous) for i, entry in sorted(self.entries.items())},
            "votes for": {i: replica.vote for i, replica in sorted(self.replicas.items())},
            "owned by": {i: replica.holder for i, replica in sorted(self.replicas.items())},
        }
