"""Sigma: SG section IV, figures 5 and 6, with what they leave out.

Theory of operation. As in the strawman, a client asks all replicas for their votes and enters with m of them. But a
replica that has already voted queues the request by timestamp, and votes for the next one when its owner releases.
Requests reach the replicas in different orders, so the votes may be split such that nobody can get m. A client that
detects this yields: it gives its votes back and joins the queues, and each replica votes again, for the earliest
request it knows. Eventually all replicas know the same requests, and the earliest one wins.

The figures need several additions to be safe and live when messages overtake each other. papers/sigma.md lists them,
with what happens without each:
  - requests, responses and votes are numbered (votes.py), and YIELD names the vote that it gives back;
  - a known request is not queued twice (`is_known`);
  - a vote for a request that is over is released (`refuse`);
  - a client that gets a vote in its turn forgets earlier owners, whose releases are on their way (`forget_served`);
  - a vote that came straight back after a yield is kept for a while (`may_yield`);
  - a replica tells its owner that an earlier request is waiting (`inquire`).

Informed backoff: a RESPONSE says when to ask again, Tw = Tcs (P + 1/2), and the client does so after that time, or
after `retry` percent of a long wait (0: never). This restores the queue of a replica that has lost its memory, and
makes up for lost messages.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Moment, Option, node
from fairgate.core.ids import NIL
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.replica import RESEND
from fairgate.protocols.sigma.strawman import BALLOT, Strawman
from fairgate.protocols.sigma.votes import Release, Replica, Request, Resp, Response, Waiter, Yield

RETRY = 80  # percent of Tw
LONG = 10  # multiples of the timeout: an answer that says to wait for longer is a reason to ask again early
RECENT = 2  # the same if replicas lose their memory; a replica that was asked within this time still knows us


@node
class Sigma(Strawman):
    about = About(
        name="sigma",
        paper="SG",
        kind="quorum",
        cost="4n at most loads, and 2n per retry",
        survives=("crash", "reset of up to (k+1)m-n-1 replicas", "loss", "duplication"),
        open_membership=True,
        options={**BALLOT},
    )

    backoff: Fixed[int] = 0  # unused: Sigma has no rounds to lose
    retry: Option[int] = RETRY
    prime: Option[bool] = True
    probing: bool = False  # is the first question, which updates the clock, unanswered?
    primed_at: Moment = NEVER  # when this node last received another node's clock

    def initialize(self, setup: Setup) -> None:
        Strawman.initialize(self, setup)
        if not self.retry:
            self.resend = 0

    # The client.

    def request_cs(self) -> None:
        """A client that has not heard from the gate lately asks one replica first: an old clock would jump queues."""
        self.probing = self.prime and (self.primed_at == NEVER or self.now - self.primed_at > RESEND)
        self.begin()

    def hear(self, ts: int) -> None:
        if ts > self.clock:
            self.clock = ts
        if self.prime:
            self.primed_at = self.now

    def ask_all(self) -> None:
        if self.probing:
            self.ask_again(self.resp[self.me % len(self.resp)])
        else:
            Strawman.ask_all(self)

    def is_probe(self) -> bool:
        return self.probing

    def probed(self, r: Resp, m: Response) -> None:
        """The first replica has answered: ask the others too. If our clock was behind, start again with a new one."""
        other: Resp
        self.probing = False
        if m.clock > self.ts:
            self.out.note("a clock was behind")
            self.learn(r, m)
            r.clear()
            self.answered = 0
            self.begin()
            return
        for other in self.resp:
            if other is not r:
                self.ask_again(other)
        self.take(r, m)

    def take(self, r: Resp, m: Response) -> None:
        if self.probing:
            self.probed(r, m)
            return
        promoted: bool = m.grant != 0 and r.seq != 0 and r.grant == 0  # a vote after waiting, not the first answer
        self.learn(r, m)
        if m.grant and m.grant == r.yielded:
            self.out.note("a replica has not heard of a yield")
            self.send_yield(r, m.grant)
            self.retry_later(r, m.wait)
            return
        self.count(r, m, m.grant)
        if not m.grant:
            self.retry_later(r, m.wait)
            return
        r.wanted = m.wanted
        if promoted:
            if self.votes == 1:
                self.expect_votes()
            self.forget_served()
            if r.yielded:
                self.keep_a_while(r)

    def retry_later(self, r: Resp, wait: int) -> None:
        """Informed backoff: ask again if no vote has arrived soon after Tw.

        That would be too late for a replica that has lost its memory: it must know us before our turn comes. So ask
        after `retry` percent of a long wait. Each answer then covers the rest of the wait only. How short that may get
        depends on whether this request has met a replica that lost its memory.
        """
        if not self.resend:
            return
        timeout: int = self.timeout()
        early: int = min(wait, NEVER // max(self.retry, 1)) * self.retry // 100
        long: int = RECENT if self.forgetful else LONG
        self.look_later(r, early if early > long * timeout else wait + timeout)

    def expect_votes(self) -> None:
        """Our turn has come at one replica. The others' votes must be on their way, so put off asking them again.

        But if replicas lose their memory, ask those at once that may have forgotten us.
        """
        r: Resp
        timeout: int = self.timeout()
        for r in self.resp:
            if r.grant == 0 and not r.silent:
                if self.forgetful and self.now - self.started - r.sent > RECENT * timeout:
                    self.look_later(r, 0)
                elif r.due < self.now + timeout:
                    r.due = self.now + timeout

    def forget_served(self) -> None:
        """Forget owners with earlier requests than ours: replicas vote by timestamp, so those owners have left by now.

        The replicas that we last saw voting for them will vote for us next, unless they have lost their memory. So ask
        them again soon, instead of after Tw.
        """
        r: Resp
        for r in self.resp:
            if (
                r.owner != NIL
                and r.grant == 0
                and (r.owner_ts < self.ts or (r.owner_ts == self.ts and r.owner < self.me))
            ):
                self.uncount(r)
                if self.resend:
                    self.look_later(r, self.timeout())

    def keep_a_while(self, r: Resp) -> None:
        """Keep a vote that came back after a yield, for twice as long each time. Else it would go back and forth."""
        r.delay = min(r.delay * 2, self.resend * 16 + 1) if r.delay else self.resend // 8 + 1
        r.hold = self.now + r.delay
        if self.resend:
            self.look_later(r, r.delay)

    def contend(self) -> None:
        """Not won. Case 2: others have won, so wait. Case 3: nobody can win, so yield."""
        r: Resp
        weight: int
        if self.votes and self.votes < self.answered:
            self.yield_wanted()
        unheard: int = self.whole - self.heard - self.mine
        if self.votes == 0 or self.mine + unheard >= self.needed:
            return
        winners: int = 0
        for weight in self.tally.values():
            if weight >= self.needed:
                winners += 1
            elif weight + unheard >= self.needed:
                return
        if winners < self.k:
            for r in self.resp:
                if r.grant and self.may_yield(r):
                    self.give_back(r)

    def yield_wanted(self) -> None:
        """Give back votes that an earlier request is waiting for."""
        r: Resp
        for r in self.resp:
            if r.grant and r.wanted:
                self.out.note("a vote goes to an earlier request")
                self.give_back(r)

    def may_yield(self, r: Resp) -> bool:
        return r.delay == 0 or self.now >= r.hold

    def give_back(self, r: Resp) -> None:
        r.yielded = r.grant
        r.wanted = False
        self.uncount(r)
        self.send_yield(r, r.yielded)
        r.due = NEVER
        if self.resend:
            self.look_later(r, self.timeout())

    def send_yield(self, r: Resp, grant: int) -> None:
        self.reach(r, Yield(self.gate, r.key, r.i, self.me, self.life, self.ts, r.inc, grant))

    def look_at_one(self, r: Resp) -> None:
        if self.probing:
            self.out.note("a silent replica was not waited for")
            r = self.resp[(r.i + 1) % len(self.resp)]
        if r.grant == 0:
            self.ask_again(r)
            return
        if self.lease and r.until - self.now <= self.lease * 2 // 3:
            self.ask_again(r)
        elif self.lease:
            self.look_later(r, r.until - self.now - self.lease * 2 // 3)
        if not self.inside:
            self.contend()

    def release_votes(self) -> None:
        """Release(CS), to all replicas: each of them knows of this request, or will."""
        r: Resp
        for r in self.resp:
            self.reach(r, Release(self.gate, r.key, r.i, self.me, self.life, self.ts))
        self.end_request()

    # A replica.

    def on_request(self, m: Request) -> None:
        self.hear(m.ts)
        rep: Replica = self.replica(m.i)
        if self.is_known(rep, m):
            return
        if m.probe and self.clock > m.ts:  # the client will ask again, with a later timestamp
            self.respond(rep, m.client, m.life, m.ts, m.age, 0, False)
            return
        if rep.Cowner == NIL:
            self.vote(rep, m.client, m.life, m.ts, m.age, self.arrival())
            return
        w: Waiter = Waiter(m.ts, m.client, m.life, m.age, self.arrival())
        rep.insert(w)
        self.tell_waiter(rep, w)
        if self.is_ahead(rep, w):
            self.inquire(rep)

    def is_known(self, rep: Replica, m: Request) -> bool:
        """Handle repeated and outdated requests. A later request of the same client ends its previous one.

        Returns False if the request is new.
        """
        if m.client == rep.Cowner and m.life == rep.life:
            if m.ts == rep.Towner:
                self.renew(rep, m.age)
            if m.ts <= rep.Towner:
                return True
            self.out.note("a request overtook the release of the one before it")
            self.free(rep)
        w: Waiter | None = rep.waiting.get(m.client)
        if w is None:
            return False
        if w.life == m.life and m.ts <= w.ts:
            if m.ts == w.ts:
                self.again(rep, w, m.age)
            return True
        rep.remove(w)
        return False

    def again(self, rep: Replica, w: Waiter, age: int) -> None:
        if age > w.age:
            w.age = age
            w.asked = self.arrival()
        self.tell_waiter(rep, w)
        if self.is_ahead(rep, w) or self.is_overdue(rep):
            self.inquire(rep)

    def is_ahead(self, rep: Replica, w: Waiter) -> bool:
        """Is this request earlier than the owner's?"""
        return w.ts < rep.Towner or (w.ts == rep.Towner and w.client < rep.Cowner)

    def is_overdue(self, rep: Replica) -> bool:
        """Has the owner taken more than twice the usual time? Then its RELEASE may be lost; an inquiry will show it."""
        return self.now - rep.busy_since > 2 * (rep.Tcs if rep.Tcs else self.resend)

    def inquire(self, rep: Replica) -> None:
        """Like Maekawa's INQUIRE."""
        self.tell_owner(rep)

    def tell_owner(self, rep: Replica) -> None:
        """Tell the owner that it has the vote, and whether an earlier request is waiting for it."""
        wanted = bool(rep.Queue) and self.is_ahead(rep, rep.Queue[0])
        self.respond(rep, rep.Cowner, rep.life, rep.Towner, rep.age, 0, wanted)

    def tell_waiter(self, rep: Replica, w: Waiter) -> None:
        """Answer a waiting client, with Tw = Tcs (P + 1/2)."""
        Tcs: int = rep.Tcs if rep.Tcs else self.resend
        P: int = rep.place(w.ts, w.client) if Tcs else 0  # irrelevant if Tcs is 0
        Tw: int = min(Tcs, NEVER // (2 * P + 1)) * (2 * P + 1) // 2
        self.respond(rep, w.client, w.life, w.ts, w.age, Tw, False)

    def on_release_message(self, m: Release) -> None:
        rep: Replica = self.replica(m.i)
        if m.client == rep.Cowner and m.life == rep.life:
            if m.ts >= rep.Towner:
                self.observe(rep)
                self.free(rep)
            return
        w: Waiter | None = rep.waiting.get(m.client)
        if w is not None and w.life == m.life and w.ts <= m.ts:
            rep.remove(w)

    def observe(self, rep: Replica) -> None:
        """Update Tcs, the average time from release to release."""
        if rep.busy_since != NEVER:
            took: int = min(self.now - rep.busy_since, NEVER // 8)
            rep.Tcs = (7 * rep.Tcs + took) // 8 if rep.Tcs else took

    def free(self, rep: Replica) -> None:
        Strawman.free(self, rep)
        rep.busy_since = self.now if rep.Queue and self.resend else NEVER
        if rep.Queue:
            self.resp_queue(rep)

    def vote(self, rep: Replica, client: Id, life: int, ts: int, age: int, asked: Moment) -> None:
        if rep.busy_since == NEVER and self.resend:
            rep.busy_since = self.now
        Strawman.vote(self, rep, client, life, ts, age, asked)

    def resp_queue(self, rep: Replica) -> None:
        """RespQueue(): vote for the first request in the queue."""
        w: Waiter = rep.Queue[0]
        rep.remove(w)
        self.vote(rep, w.client, w.life, w.ts, w.age, w.asked)

    def on_yield(self, m: Yield) -> None:
        rep: Replica = self.replica(m.i)
        if not self.is_current(rep, m):
            self.out.note("a yield of a vote that is no more")
            return
        w: Waiter = Waiter(rep.Towner, rep.Cowner, rep.life, rep.age, rep.asked)
        rep.insert(w)
        self.resp_queue(rep)
        if rep.Cowner != w.client:
            self.tell_waiter(rep, w)

    def is_current(self, rep: Replica, m: Yield) -> bool:
        """Does the YIELD name the vote that the replica has given now, not an earlier one?"""
        return m.client == rep.Cowner and m.life == rep.life and m.inc == self.life and m.grant == rep.grant

    def show(self) -> dict[str, Any]:
        queues = {rep.i: tuple([(w.ts, w.client) for w in rep.Queue]) for rep in self.replicas.values()}
        return {**Strawman.show(self), "queues": queues}


@node
class SigmaLiteral(Sigma):
    """Figures 5 and 6 to the letter: no numbers, no leases, no repeated questions. For comparison (papers/sigma.md)."""

    about = About(
        name="sigma_literal",
        paper="SG, figures 5 and 6",
        kind="quorum",
        cost="4n and more",
        literal=True,
        options={"replicas": "2k+1", "quorum": "m = n // (k+1) + 1", "responses": ("direct", "routed")},
    )

    lease: Fixed[int] = 0
    resend: Fixed[int] = 0
    prime: Fixed[bool] = False

    def on_response(self, m: Response) -> None:
        if m.client != self.me:
            return
        self.hear(m.clock)
        if self.ts == NIL or self.inside:
            return  # the paper does not say what to do with a response that nobody waits for
        r: Resp = self.resp[m.i]
        self.learn(r, m)
        self.count(r, m, int(m.owner == self.me))
        self.judge()

    def may_yield(self, r: Resp) -> bool:
        """A node that yields to its own replica would get the vote back at once, and loop forever within one step."""
        return r.node != self.me

    def on_request(self, m: Request) -> None:
        self.hear(m.ts)
        rep: Replica = self.replica(m.i)
        if rep.Cowner == NIL:
            self.vote(rep, m.client, m.life, m.ts, m.age, self.arrival())
        else:
            w: Waiter = Waiter(m.ts, m.client, m.life, m.age, self.arrival())
            rep.insert(w)
            self.tell_waiter(rep, w)

    def on_release_message(self, m: Release) -> None:
        rep: Replica = self.replica(m.i)
        w: Waiter
        if m.client == rep.Cowner:
            self.free(rep)
            return
        for w in rep.Queue:  # which may contain the client twice
            if w.client == m.client:
                rep.remove(w)
                return

    def is_current(self, rep: Replica, m: Yield) -> bool:
        return m.client == rep.Cowner
