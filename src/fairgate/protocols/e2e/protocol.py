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

No timer, no random number: an earlier request that comes while a vote is out recalls it, and a client yields what is
recalled once all replicas have answered and it has not won. So the earliest request gets all the votes in the end.
Channels must be reliable; they may reorder. What survives crashes, resets and loss is fault_tolerant.py.

Here are the client and the owner; replica.py has the replicas and the nodes on the way to them.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.queues import put
from fairgate.core.setup import Setup
from fairgate.protocols.e2e.messages import (
    Enqueue,
    Queue,
    Recall,
    Response,
    SentBack,
    Stale,
    Token,
    Yield,
    as_queue,
    new_enqueue,
    new_release,
    new_request,
    new_winner,
)
from fairgate.protocols.e2e.replica import Voter

ASKED, OTHER, VOTE, RECALLED = range(4)  # what a client knows of a replica: nothing, not mine, mine, mine but recalled


class E2E(Voter):
    about = About(
        name="e2e",
        paper="EE",
        kind="quorum",
        cost="about 4 n routes of O(log N) hops, n replicas; an intercepted request less",
        many=False,
        open_membership=True,
        # quorum 0: a majority; tells: RESPONSE also where a winner owns the replica, and gets ENQUEUE (papers/e2e.md)
        options={"replicas": 3, "quorum": 0, "tells": False},
    )

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        Voter.set_up(self, me, setup, out)
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
        self.tenure_lineage = 0
        self.heir = NIL  # who had the token next
        self.heir_stamp = 0

    # The client.

    def request_cs(self) -> None:
        self.clock += 1
        self.stamp = self.clock
        self.forget_answers()
        for i, key in enumerate(self.keys):  # EE:A1
            self.door.route(new_request(self.gate, key, i, self.me, self.stamp, 0, 0, 0))

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
                self.on_late_vote(m)
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

    def is_mine(self, i: int) -> bool:
        return self.known[i] >= VOTE

    def is_recalled(self, i: int) -> bool:
        return self.known[i] == RECALLED

    def has_won(self) -> bool:
        return self.votes >= self.quorum

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
        """EE:A4 nobody has a majority, as far as this node knows: it yields votes for which earlier requests wait."""
        for i in range(len(self.keys)):
            if self.is_recalled(i):
                self.yield_vote(i)

    def yield_vote(self, i: int) -> None:
        self.learn(i, ASKED)
        self.rounds[i] += 1
        self.door.route(Yield(self.gate, self.keys[i], i, self.me, self.stamp, self.rounds[i], self.rank()))

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
        self.door.route(
            new_request(self.gate, self.keys[i], i, self.me, self.stamp, self.rounds[i], ended, self.rank())
        )

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
        self.votes = 0
        self.queue = []
        for asked in requests:
            self.put(asked)
        for asked in self.early:
            self.put(asked)
        self.early = []

    def route_winner(self) -> None:
        for i, key in enumerate(self.keys):
            self.door.route(new_winner(self.gate, key, i, self.me, self.stamp, self.generation, self.lineage, 0))

    def put(self, asked: tuple[int, int]) -> None:
        """EE:A5 the queue is sorted by timestamps. The same tuple all the way: a new one is three objects more."""
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
            self.pass_on(m.replica, m.requests)
            return
        for stamp, node in m.requests:
            self.out.note("an ENQUEUE was sent back")
            self.out.send(node, SentBack(self.gate, m.replica, stamp, self.tenure))

    def pass_on(self, replica: int, requests: Queue) -> None:
        self.out.note("an ENQUEUE was passed on to the heir")
        self.out.send(self.heir, new_enqueue(self.gate, replica, self.tenure + 1, NIL, requests))

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
            new_release(
                self.gate, self.keys[i], i, self.me, stamp, self.tenure, self.tenure_lineage, heir, self.heir_stamp
            )
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
            (self.tenure, self.tenure_lineage, self.heir, self.heir_stamp),
            *self.sides_key(),
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
        self.tenure, self.tenure_lineage, self.heir, self.heir_stamp = over
        self.load_sides(others[0], others[1])

    def show(self) -> dict[str, Any]:
        return {
            "holding": self.holding,
            "generation": self.generation,
            "queue": tuple(self.queue),
            "replica list": {i: (entry.owner, entry.next, entry.previous) for i, entry in sorted(self.entries.items())},
            "votes for": {i: replica.vote for i, replica in sorted(self.replicas.items())},
            "owned by": {i: replica.holder for i, replica in sorted(self.replicas.items())},
        }
