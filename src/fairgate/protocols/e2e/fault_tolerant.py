"""The End-to-End protocol under failures: EE section V.A, made safe by leases.

EE copies the queue to the first `copies` waiters, with sequence numbers. They ping the owner; if it is silent, the
waiter with the newest copy takes over. The paper assumes that a silent owner has failed. Here, a takeover is an
ordinary vote, in which the waiter with the newest copy goes first (`rank`), and every statement of a replica is a
promise that expires:
  - A replica's vote, and its confirmation of an owner, last for `lease`. The client counts from when it asked, the
    replica from when it received the question, and a little longer (`drift` bounds how far clock rates differ).
  - A client wins with a majority of unexpired promises. An owner repeats IAMWINNER, and stays the owner while a
    majority has confirmed it. Otherwise its permit is lost, before any replica's promise expires.
  - The receiver of a TOKEN enters only when a majority has confirmed it.
  - A replica under a promise accepts no other owner, except the next one of the same lineage, which got the token from
    the current one. A lineage begins with a won vote and has a random number, so late messages of one lineage never
    count for another.

Guarantee. At most one node is inside, whatever is lost, duplicated, delayed or wrongly suspected, as long as
  (a) clock rates differ by at most `drift`,
  (b) fewer than 2m-n of n replicas lose their memory within a lease (m is the quorum), by a reset or because churn
      gave their key to another node,
  (c) no node restarts without memory while messages of its former life are in transit.
Once the faults are over and messages take less than a third of a lease, every request is granted.

All messages are repeated until answered, and handling them twice is harmless: links may lose, duplicate and reorder,
and no channel is needed. Nodes on the path trust their replica list for one lease only; a repeated IAMWINNER follows
the overlay's current path.

This file contains the client, the owner and the waiters; promises.py has the replicas and the nodes on the path to
them.
"""

from dataclasses import replace

from fairgate.core.declare import Fixed, Id, Moment, Option, node
from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.core.setup import Setup
from fairgate.protocols.e2e.messages import (
    Confirm,
    Copy,
    Enqueue,
    IAmWinner,
    Ping,
    Pong,
    Queue,
    Response,
    SentBack,
    Token,
)
from fairgate.protocols.e2e.promises import PROMISE, WAIT, Promising
from fairgate.protocols.e2e.protocol import E2E, OTHER

PING = 10_000_000_000  # ns; EE suggests, for example, one in 10 minutes
MISSES = 2  # unanswered pings after which a waiter acts
SLOWEST = 8  # the longest delay between a waiting client's repetitions, as a multiple of the first
REPLY = 4  # an answer to a ping is awaited for this fraction of the interval between repetitions
SEQUENCES = 1 << 20
LINEAGES = 1 << 53


@node
class E2EFT(Promising):
    about = replace(
        E2E.about,
        name="e2e_ft",
        cost="as e2e, and about 6n routes per lease while inside",
        survives=("crash", "reset of fewer than 2m-n replicas per lease", "loss", "duplication"),
        options=dict(E2E.about.options),
    )

    ping: Option[int] = PING
    copies: Option[int] = 2
    every: Fixed[int]  # interval between repetitions
    # Client and owner; `asked` and `ends` are by replica.
    asked: list[Moment] = []  # when it was last sent a message
    ends: list[Moment] = []  # when its promise expires
    delay: int
    probed: int = 0  # the replica that was asked again last
    sequence: int = 0
    passed: list[tuple[int, Id]] = []  # requests that were passed on to the heir
    passed_until: Moment = 0  # when they may be passed on again
    # Waiter.
    copy: Queue = ()
    copy_of: Id = NIL
    copy_generation: int = 0
    copy_sequence: int = 0
    unanswered: int = 0

    def initialize(self, setup: Setup) -> None:
        Promising.initialize(self, setup)
        self.every = self.lease // 3
        self.delay = self.every

    # The client.

    def forget_answers(self) -> None:
        E2E.forget_answers(self)
        self.asked = [self.now] * len(self.keys)
        self.ends = [self.now] * len(self.keys)

    def request_cs(self) -> None:
        E2E.request_cs(self)
        self.ask_later(self.lease)

    def ask_later(self, delay: int) -> None:
        self.delay = delay
        self.set_timer("ask", delay)

    def on_response(self, m: Response) -> None:
        E2E.on_response(self, m)
        i: int = m.replica
        if not (m.vote and self.is_asking() and m.stamp == self.stamp and m.round >= self.rounds[i]):
            return
        if m.round > self.rounds[i]:
            self.out.note("a vote from before this node lost its memory")
            self.rounds[i] = m.round
            self.ask_again(i, 0)
        elif self.ends[i] < self.now + self.every:
            self.out.note("a vote came so late that it must be had again")
            self.ask_again(i, 0)

    def learn_vote(self, m: Response) -> None:
        E2E.learn_vote(self, m)
        self.ends[m.replica] = self.asked[m.replica] + self.lease
        if self.delay > self.every:
            self.ask_later(self.every)  # otherwise the vote would expire before it is renewed

    def has_won(self) -> bool:
        lasting = [i for i in range(len(self.keys)) if self.is_mine(i) and self.ends[i] > self.now]
        return len(lasting) >= self.quorum

    def yield_vote(self, i: int) -> None:
        self.asked[i] = self.now
        E2E.yield_vote(self, i)

    def ask_again(self, i: int, ended: int) -> None:
        if self.is_mine(i) and self.ends[i] <= self.now:
            self.learn(i, OTHER)  # the replica may have voted for another client by now
        self.asked[i] = self.now
        E2E.ask_again(self, i, 0)  # `ended` may belong to another lineage, so it is not passed on

    def on_sent_back(self, m: SentBack) -> None:
        if self.is_asking() and m.stamp == self.stamp and self.rounds[m.replica] == 0:
            self.ask_again(m.replica, 0)  # only after round 0: later requests reach the replica and wait there

    def ask_all_again(self) -> None:
        """Ask all replicas again, but yield recalled votes: if a replica stays silent, `missing` never becomes 0."""
        for i in range(len(self.keys)):
            if self.is_recalled(i):
                self.out.note("a vote was yielded though a replica was silent")
                self.yield_vote(i)
            else:
                self.ask_again(i, 0)

    def probe(self) -> None:
        """Ask one replica again, each time another one.

        A request that waits needs no more than one replica that knows it. If that replica has a holder, the request
        goes to the holder's queue. Otherwise the replica votes for it sooner or later; and a client with a vote asks
        all replicas.
        """
        self.probed = (self.probed + 1) % len(self.keys)
        self.ask_again(self.probed, 0)

    # The owner.

    def win(self) -> None:
        self.lineage = 1 + self.out.choose(LINEAGES)
        self.generation = max(self.best, self.tenure) + 1
        requests: Queue = ()
        if self.copy and self.copy_generation >= self.best:
            self.out.note("a waiter took the queue over")
            requests = self.copy
        for i in range(len(self.keys)):
            if not self.is_mine(i):
                self.ends[i] = self.now
        self.begin(requests)
        self.extend()

    def hold(self, requests: Queue) -> None:
        """The TOKEN has arrived. The node enters when a majority has confirmed it."""
        self.ends = [self.now] * len(self.keys)
        self.begin(requests)
        self.set_timer("lease", self.lease)

    def begin(self, requests: Queue) -> None:
        self.cancel_timer("ask")
        self.take_queue(requests)
        self.forget_copy()
        self.route_winner()
        self.copy_queue()

    def route_winner(self) -> None:
        for i, key in enumerate(self.keys):
            self.rounds[i] += 1
            self.asked[i] = self.now
            self.door.route(
                IAmWinner(self.gate, key, i, self.me, self.stamp, self.generation, self.lineage, self.rounds[i])
            )
        self.set_timer("renew", self.every)

    def on_confirm(self, m: Confirm) -> None:
        i: int = m.replica
        if self.holding and (m.lineage, m.generation, m.round) == (self.lineage, self.generation, self.rounds[i]):
            self.ends[i] = self.asked[i] + self.lease
            self.extend()

    def extend(self) -> None:
        """Extend the tenure for as long as the promises of a majority last, and enter if that is not yet done."""
        time_left: int = sorted(self.ends)[len(self.ends) - self.quorum] - self.now
        if time_left <= 0:
            return
        self.set_timer("lease", time_left)
        if not self.inside:
            self.enter_cs(NIL, NIL)

    def release_cs(self) -> None:
        self.cancel_timer("lease")
        self.cancel_timer("renew")
        E2E.release_cs(self)

    def lease_over(self) -> None:
        """Give up the tenure without a RELEASE: until the replicas' promises expire, the user has time to stop."""
        self.cancel_timer("renew")
        self.holding = False
        self.tenure = self.generation
        self.tenure_lineage = self.lineage
        self.heir = NIL
        self.queue = []
        if self.inside:
            self.lose_cs("lease over")
            return
        self.out.note("a TOKEN that was not confirmed")
        self.know_nothing()
        self.ask_all_again()
        self.ask_later(self.every)

    def on_token(self, m: Token) -> None:
        if self.holding or (m.lineage == self.tenure_lineage and m.generation <= self.tenure):
            self.out.note("a TOKEN came again")
        else:
            E2E.on_token(self, m)

    def keep_early(self, m: Enqueue) -> None:
        fresh = tuple([request for request in m.requests if request not in self.early])
        E2E.keep_early(self, Enqueue(m.gate, m.replica, m.generation, m.via, fresh))

    def pass_on(self, replica: int, requests: Queue) -> None:
        """Pass each request on once per interval: ENQUEUEs that follow a TOKEN would multiply if links duplicate."""
        if self.now >= self.passed_until:
            self.passed, self.passed_until = [], self.now + self.every
        fresh = tuple([request for request in requests if request not in self.passed])
        if fresh:
            self.passed.extend(fresh)
            E2E.pass_on(self, replica, fresh)

    # Copies of the queue, and pings.

    def on_enqueue(self, m: Enqueue) -> None:
        before = len(self.queue)
        E2E.on_enqueue(self, m)
        if self.holding and len(self.queue) != before:
            self.copy_queue()

    def copy_queue(self) -> None:
        self.sequence += 1
        requests = tuple(self.queue)
        for _, waiter in self.queue[: self.copies]:
            self.out.send(waiter, Copy(self.gate, self.generation, self.sequence, requests))

    def on_copy(self, src: int, m: Copy) -> None:
        if self.is_asking() and (m.generation, m.sequence) > (self.copy_generation, self.copy_sequence):
            self.copy = m.requests
            self.copy_of = src
            self.copy_generation = m.generation
            self.copy_sequence = m.sequence
            self.unanswered = 0
            self.set_timer("ping", self.first_ping(m.requests))

    def first_ping(self, requests: Queue) -> int:
        """When to send the first ping: the waiters with a copy take turns, so that the owner gets `copies` per period.

        So its failure is noticed within a period divided by their number.
        """
        waiters = [waiter for _, waiter in requests[: self.copies]]
        place = waiters.index(self.me) if self.me in waiters else 0
        return self.ping * (place + 1) // max(1, len(waiters))

    def on_ping(self, src: int, m: Ping) -> None:
        if self.holding and m.generation == self.generation:
            self.out.send(src, Pong(self.gate, m.generation))

    def on_pong(self, m: Pong) -> None:
        if m.generation == self.copy_generation and self.unanswered:
            self.unanswered = 0
            self.set_timer("ping", self.ping)

    def forget_copy(self) -> None:
        self.copy = ()
        self.copy_of = NIL
        self.copy_generation = 0
        self.copy_sequence = 0
        self.cancel_timer("ping")

    def rank(self) -> int:
        return self.copy_generation * SEQUENCES + min(self.copy_sequence, SEQUENCES - 1)

    def send_ping(self) -> None:
        if self.unanswered < MISSES:
            self.unanswered += 1
            self.out.send(self.copy_of, Ping(self.gate, self.copy_generation))
            self.set_timer("ping", min(self.ping, max(1, self.every // REPLY)))
        else:
            self.out.note("the owner was silent")
            self.ask_all_again()

    def on_timer(self, name: str) -> None:
        if name == "ask" and self.votes:
            self.ask_all_again()
            self.ask_later(self.every)
        elif name == "ask":
            self.probe()
            self.ask_later(min(2 * self.delay, SLOWEST * self.every))
        elif name == "ping":
            self.send_ping()
        elif name == "renew":
            self.route_winner()
        elif name == "lease":
            self.lease_over()
        elif name.startswith(WAIT):
            self.wait_over(int(name.removeprefix(WAIT)))
        else:
            self.promise_over(int(name.removeprefix(PROMISE)))

    # The state.

    def rounds_key(self) -> Key:
        return tuple(self.rounds)  # always, because an owner uses them too

    def passed_until_key(self) -> int:
        return max(0, self.passed_until - self.now)

    def load_passed_until(self, left: int) -> None:
        self.passed_until = self.now + left
