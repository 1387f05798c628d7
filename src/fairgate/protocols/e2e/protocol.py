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
  (5) `redirect`: who is no longer the owner passes an ENQUEUE on, or back, and mends the quorum set;
  (6) `keep_early`: who is not the owner yet keeps it until the token comes;
  (7) `stops`: only a first REQUEST is intercepted; `put`: nobody is queued twice; `decline`.

No timer, no random number: an earlier request that comes while a vote is out recalls it, and a client yields what is
recalled once all replicas have answered and it has not won. So the earliest request gets all the votes in the end.
Channels must be reliable; they may reorder. What survives crashes, resets and loss is fault_tolerant.py.

Here are the client and the owner; replica.py has the replicas and the nodes on the way to them.
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

ASKED, OTHER, VOTE, RECALLED = range(4)  # what a client knows of a replica: nothing, not mine, mine, mine but recalled


@node
class E2E(Voter):
    about = About(
        name="e2e",
        paper="EE",
        kind="quorum",
        cost="about 4 n routes of O(log N) hops, n replicas; an intercepted request less",
        many=False,
        open_membership=True,
        options={"replicas": REPLICAS},
    )

    version = 2

    quorum: Option[int] = 0  # 0: a majority
    # The client.
    clock: int = 0  # Lamport's
    stamp: int = 0  # of the last request
    rounds: list[int] = []  # by replica, like `known`: they matter while it asks
    known: list[int] = []
    votes: Fixed[int] = 0
    missing: Fixed[int] = 0  # replicas that have not answered
    best: int = 0  # the highest generation among the answers
    # The owner.
    holding: bool = False
    generation: int = 0
    lineage: int = 0
    queue: list[tuple[int, Id]] = []
    early: list[tuple[int, Id]] = []  # for a token that has not come yet
    tenure: int = 0  # the last generation that was this node's and is over
    tenure_lineage: int = 0
    heir: Id = NIL  # who had the token next
    heir_stamp: int = 0

    def initialize(self, setup: Setup) -> None:
        if self.quorum == 0:
            self.quorum = len(self.keys) // 2 + 1

    # The client.

    def request_cs(self) -> None:
        self.clock += 1
        self.stamp = self.clock
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
        self.clock = max(self.clock, m.owner_stamp)
        if not self.requesting_cs or m.stamp != self.stamp:
            if m.vote:
                self.return_vote(m)
            return
        if self.holding or m.round != self.rounds[m.replica]:
            return
        if not m.vote and self.is_mine(m.replica):
            return  # the vote came later in the same round, and overtook this
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
        """EE:A4 nobody has a majority, as far as this node knows: it yields votes for which earlier requests wait."""
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
            return  # used, or given back
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
        """Of two candidates the one with more goes first, whatever the timestamps; see fault_tolerant.py."""
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
        """EE:A5 the queue is sorted by timestamps. The same tuple all the way: a new one is three objects more."""
        stamp: int
        node: int
        stamp, node = asked
        if stamp > self.clock:
            self.clock = stamp
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
            self.out.send(self.heir, Token(self.gate, self.generation + 1, self.lineage, tuple(self.queue)))  # EE:A7
            self.queue = []
        for i in range(len(self.keys)):
            self.route_release(i, self.stamp)  # EE:A6

    def route_release(self, i: int, stamp: int) -> None:
        """That the last tenure is over, and the request of this stamp."""
        heir = self.named_heir()
        self.door.route(
            Release(self.gate, self.keys[i], i, self.me, stamp, self.tenure, self.tenure_lineage, heir, self.heir_stamp)
        )

    def named_heir(self) -> int:
        return self.heir

    def on_token(self, m: Token) -> None:
        self.generation = m.generation
        self.lineage = m.lineage
        if self.requesting_cs:
            self.hold(m.requests)
        else:
            self.decline(m)

    def decline(self, m: Token) -> None:
        """A request that came late into the queue, when it was over."""
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
