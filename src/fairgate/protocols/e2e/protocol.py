"""The End-to-End protocol: "Efficient Mutual Exclusion in Peer-to-Peer Systems", EE section IV.A, on any DHT.

Theory of operation. Each replica votes for one request at a time. A client with a majority of votes is the owner, and
tells all replicas (IAMWINNER). Every node on the path to a replica records the owner and the message's previous and
next hop; these nodes are the replica's *quorum set*. A REQUEST that reaches a node of a quorum set goes no further: the
node sends it to the owner's queue (ENQUEUE). The queue travels from owner to owner with the token. RELEASE removes the
quorum sets.

The paper leaves holes. Each correction is a method that can be disabled (papers/e2e.md lists what happens then):
  (1) `named_heir`: RELEASE names the next owner, so a replica has an owner even while the token is in transit.
  (2) `is_news`: each owner has a higher generation number, which orders IAMWINNER and RELEASE wherever they pass.
  (3) `keep`: a replica keeps the requests that it cannot vote for, and hands them to the winner.
  (4) `dispossess`: if a replica that has voted learns of another winner, it asks for the vote back first.
  (5) `redirect`: a former owner passes an ENQUEUE on to its heir, or sends it back, and corrects the quorum set.
  (6) `keep_early`: a node that is not the owner yet keeps an ENQUEUE until the token arrives.
  (7) `stops`: only a first REQUEST is intercepted. `put`: a request is queued only once. `decline`: a token that is no
      longer wanted is passed on.

There are no timers and no random numbers; time only serves to stamp requests fairly (stamps.py). When an earlier
request arrives at a replica whose vote is out, the replica recalls the vote; a client yields recalled votes once all
replicas have answered and it has not won. So the earliest request eventually gets all votes. Channels must be reliable,
but may reorder. fault_tolerant.py has the version that survives crashes, resets and loss.

This file contains the client and the owner; replica.py has the replicas and the nodes on the path to them.
"""

from collections.abc import Iterable
from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Option, node
from fairgate.core.ids import NIL
from fairgate.core.kbr import REPLICAS
from fairgate.core.message import Key
from fairgate.core.queues import put
from fairgate.core.setup import Setup
from fairgate.protocols.e2e.messages import (
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
)
from fairgate.protocols.e2e.replica import Voter

# What a client knows about a replica's vote: nothing yet, it is not ours, it is ours, it is ours but recalled.
ASKED, OTHER, VOTE, RECALLED = range(4)


@node
class E2E(Voter):
    about = About(
        name="e2e",
        paper="EE",
        kind="quorum",
        cost="about 4n routes of O(log N) hops (n replicas), fewer if a request is intercepted",
        many=False,
        open_membership=True,
        options={"replicas": REPLICAS},
    )

    version = 3

    quorum: Option[int] = 0  # 0: a majority
    # Client.
    stamp: int = 0  # of the last request
    rounds: list[int] = []  # by replica, like `known`; used only while a request is waiting
    known: list[int] = []
    votes: Fixed[int] = 0
    missing: Fixed[int] = 0  # number of replicas that have not answered
    best: int = 0  # the highest generation among the answers
    # Owner.
    holding: bool = False
    generation: int = 0
    lineage: int = 0
    queue: list[tuple[int, Id]] = []
    early: list[tuple[int, Id]] = []  # requests that arrived before the token
    tenure: int = 0  # this node's last generation that is over
    tenure_lineage: int = 0
    heir: Id = NIL  # the node that got the token after that
    heir_stamp: int = 0

    def initialize(self, setup: Setup) -> None:
        if self.quorum == 0:
            self.quorum = len(self.keys) // 2 + 1

    # The client.

    def request_cs(self) -> None:
        self.stamp = self.next_stamp()
        self.forget_answers()
        for i, key in enumerate(self.keys):  # EE:A1
            self.door.route(Request(self.gate, key, i, self.me, self.stamp, 0, 0, 0))

    def forget_answers(self) -> None:
        self.rounds = [0] * len(self.keys)
        self.know_nothing()

    def know_nothing(self) -> None:
        self.known = [ASKED] * len(self.keys)
        self.votes = 0
        self.missing = len(self.keys)
        self.best = 0

    def on_response(self, m: Response) -> None:
        self.see_stamp(m.owner_stamp)
        if not self.requesting_cs or m.stamp != self.stamp:
            if m.vote:
                self.return_vote(m)
            return
        if self.holding or m.round != self.rounds[m.replica]:
            return
        if not m.vote and self.is_mine(m.replica):
            return  # the replica voted later in the same round, and that RESPONSE overtook this one
        if m.vote:
            self.learn_vote(m)
        else:
            self.learn(m.replica, OTHER)
        if self.has_won():  # EE:A4
            self.win()
        elif self.missing == 0:
            self.end_round()

    def learn_vote(self, m: Response) -> None:
        self.learn(m.replica, VOTE)
        self.best = max(self.best, m.generation)

    def is_asking(self) -> bool:
        return self.requesting_cs and not self.holding

    def is_mine(self, i: int) -> bool:
        return self.known[i] >= VOTE

    def is_recalled(self, i: int) -> bool:
        return self.known[i] == RECALLED

    def has_won(self) -> bool:
        return self.votes >= self.quorum

    def return_vote(self, m: Response) -> None:
        self.out.note("a vote for a request that is over")
        self.route_release(m.replica, m.stamp)

    def learn(self, i: int, news: int) -> None:
        before: int = self.known[i]
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
        """EE:A4 As far as this node knows, nobody has a majority: it yields votes that earlier requests wait for."""
        i: int
        for i in range(len(self.keys)):
            if self.is_recalled(i):
                self.yield_vote(i)

    def yield_vote(self, i: int) -> None:
        self.learn(i, ASKED)
        self.rounds[i] += 1
        self.door.route(Yield(self.gate, self.keys[i], i, self.me, self.stamp, self.rounds[i], self.rank()))

    def on_recall(self, m: Recall) -> None:
        i: int = m.replica
        if not self.requesting_cs or self.holding or m.stamp != self.stamp or m.round != self.rounds[i]:
            return  # the vote was used, or given back
        if m.won or self.missing == 0 or self.known[i] != VOTE:
            self.yield_vote(i)
        else:
            self.learn(i, RECALLED)

    def on_sent_back(self, m: SentBack) -> None:
        if self.is_asking() and m.stamp == self.stamp:
            self.ask_again(m.replica, m.generation)

    def ask_again(self, i: int, ended: int) -> None:
        if self.known[i] == OTHER:
            self.learn(i, ASKED)
        self.rounds[i] += 1
        self.door.route(Request(self.gate, self.keys[i], i, self.me, self.stamp, self.rounds[i], ended, self.rank()))

    def rank(self) -> int:
        """A candidate with a higher rank goes first, whatever its timestamp; see fault_tolerant.py."""
        return 0

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
        self.best = 0
        self.queue = []
        for asked in requests:
            self.put(asked)
        for asked in self.early:
            self.put(asked)
        self.early = []

    def route_winner(self) -> None:
        i: int
        for i, key in enumerate(self.keys):
            self.door.route(IAmWinner(self.gate, key, i, self.me, self.stamp, self.generation, self.lineage, 0))

    def put(self, asked: tuple[int, Id]) -> None:
        """EE:A5 The queue is sorted by timestamp. The tuple is passed on as it is: a new one would be three objects."""
        stamp: int
        node: int
        stamp, node = asked
        self.see_stamp(stamp)
        if node != self.me:
            put(self.queue, asked)

    def on_enqueue(self, m: Enqueue) -> None:
        if self.holding:
            for asked in m.requests:  # EE:A5
                self.put(asked)
        elif m.generation > self.tenure:
            self.keep_early(m)
        else:
            self.redirect(m)

    def keep_early(self, m: Enqueue) -> None:
        self.out.note("an ENQUEUE overtook the TOKEN")
        self.early.extend(m.requests)

    def redirect(self, m: Enqueue) -> None:
        if m.via != NIL:
            self.out.send(m.via, Stale(self.gate, m.replica, self.tenure))
        if self.heir != NIL:
            self.pass_on(m.replica, m.requests)
            return
        for stamp, requester in m.requests:
            self.out.note("an ENQUEUE was sent back")
            self.out.send(requester, SentBack(self.gate, m.replica, stamp, self.tenure))

    def pass_on(self, replica: int, requests: Queue) -> None:
        self.out.note("an ENQUEUE was passed on to the heir")
        self.out.send(self.heir, Enqueue(self.gate, replica, self.tenure + 1, NIL, requests))

    def release_cs(self) -> None:
        self.holding = False
        self.tenure = self.generation
        self.tenure_lineage = self.lineage
        self.heir = NIL
        self.heir_stamp = 0
        if self.queue:
            self.heir_stamp, self.heir = self.queue.pop(0)
            self.out.send(self.heir, self.next_token())  # EE:A7
            self.queue = []
        for i in range(len(self.keys)):
            self.route_release(i, self.stamp)  # EE:A6

    def next_token(self) -> Token:
        return Token(self.gate, self.generation + 1, self.lineage, tuple(self.queue), self.clock())

    def route_release(self, i: int, stamp: int) -> None:
        """Tell replica i that the last tenure, and the request with this stamp, are over."""
        heir = self.named_heir()
        self.door.route(
            Release(self.gate, self.keys[i], i, self.me, stamp, self.tenure, self.tenure_lineage, heir, self.heir_stamp)
        )

    def named_heir(self) -> int:
        return self.heir

    def on_token(self, m: Token) -> None:
        self.see_stamp(m.clock)
        self.generation = m.generation
        self.lineage = m.lineage
        if self.requesting_cs:
            self.hold(m.requests)
        else:
            self.decline(m)

    def decline(self, m: Token) -> None:
        """Pass on a token that came for a request which was already over when it was queued."""
        self.out.note("a TOKEN nobody wanted")
        self.take_queue(m.requests)
        self.release_cs()

    # The state.

    def rounds_key(self) -> Key:
        return tuple(self.rounds) if self.is_asking() else ()

    def load_rounds(self, key: Iterable[int]) -> None:
        self.rounds = list(key)

    def known_key(self) -> Key:
        return tuple(self.known) if self.is_asking() else ()

    def load_known(self, key: Iterable[int]) -> None:
        self.known = list(key)
        self.votes = len([news for news in self.known if news >= VOTE])
        self.missing = self.known.count(ASKED)

    def show(self) -> dict[str, Any]:
        return {
            "holding": self.holding,
            "generation": self.generation,
            "queue": tuple(self.queue),
            "replica list": {i: (entry.owner, entry.next, entry.previous) for i, entry in sorted(self.entries.items())},
            "votes for": {i: replica.vote for i, replica in sorted(self.replicas.items())},
            "owned by": {i: replica.holder for i, replica in sorted(self.replicas.items())},
        }
