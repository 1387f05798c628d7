"""The strawman of SG section III: ask all replicas for their votes, and release them all if m are out of reach.

Theory of operation. As in ALOHA, there are no queues: a replica that has voted refuses other requests, and a client
that can no longer get m votes releases those it has and asks again after a random time. This works under light load,
and not at all under heavy load. votes.py explains what a vote is, and why votes are safe on a network that loses and
reorders messages.

Sigma (protocol.py) extends this class. The client's counting of votes, its leases and its addressing of replicas are
here; lending votes and answering are in replica.py.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Moment, Option, Place, node
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.replica import Voters
from fairgate.protocols.sigma.votes import Release, Replica, Request, Resp, Response

PATIENCE = 8  # multiple of the timeout after which a silent replica makes the client give up the round
BACKOFF = 2_000_000_000  # ns: SG gives no distribution, so it is uniform up to this

BALLOT = {"replicas": "2k+1", "quorum": "m = n // (k+1) + 1"}  # options of votes.py


@node
class Strawman(Voters):
    intercepts = False
    about = About(
        name="strawman",
        paper="SG",
        kind="quorum",
        cost="3n, and 3n per lost round",
        survives=("crash", "reset of up to (k+1)m-n-1 replicas", "loss", "duplication"),
        open_membership=True,
        options={**BALLOT},
    )

    backoff: Option[int] = BACKOFF
    renewal: Fixed[int]
    whole: Fixed[int]
    needed: Fixed[int]
    k: Fixed[int]
    shortest_timeout: Fixed[int]
    trip: int = 0  # how long an answer takes on average
    spread: int = 0  # mean deviation from that
    over_at: Moment = NEVER  # when the last request ended
    ts: int = NIL  # timestamp of the current request
    started: Moment = NEVER  # when it began
    forgetful: bool = False  # has a replica lost its memory since then?
    resp: list[Resp] = []  # created with the first request
    # Totals over `resp`.
    mine: Fixed[int] = 0  # weight of our votes
    votes: Fixed[int] = 0  # their number
    heard: Fixed[int] = 0  # weight of the replicas that are known to have voted for others
    answered: Fixed[int] = 0  # number of replicas that have answered this request
    tally: Fixed[dict[int, int]] = {}  # other owner -> weight of the replicas that voted for it
    # When the timers `look` and `permit` are due.
    look_at: Fixed[Moment] = NEVER
    permit_at: Fixed[Moment] = NEVER

    def initialize(self, setup: Setup) -> None:
        Voters.initialize(self, setup)
        self.renewal = self.lease // 3 if self.lease else NEVER  # if one renewal is lost, there is time for another
        self.whole = self.ballot.whole
        self.needed = self.ballot.needed
        self.k = setup.k
        self.shortest_timeout = self.resend // 20
        self.trip = self.resend // 2  # as good as any guess, and makes the first timeout equal to `resend`
        self.spread = self.resend // 8

    # Asking.

    def request_cs(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Request(CS) in SG's figure 5: take a new timestamp and ask all replicas."""
        self.clock += 1
        self.ts = self.clock
        self.started = self.now
        self.draw_life()
        if not self.resp:
            self.meet_voters()
            self.weigh()
        self.ask_all()

    def meet_voters(self) -> None:
        self.resp = [Resp(i, NIL, NIL) for i in range(len(self.voters))]

    def weigh(self) -> None:
        """Set each replica's key and weight from the ballot."""
        r: Resp
        for r in self.resp:
            r.key = self.voters[r.i]
            r.weight = self.ballot.weights[r.i]

    def ask_all(self) -> None:
        r: Resp
        for r in self.resp:
            self.ask(r)
            if self.resend:
                self.look_later(r, self.timeout())

    def ask(self, r: Resp) -> None:
        r.silent = True
        r.sent = self.now - self.started
        self.reach(r, Request(self.gate, r.key, r.i, self.me, self.life, self.ts, r.sent, self.is_probe()))

    def is_probe(self) -> bool:
        return False

    # How long an answer takes.

    def timeout(self) -> int:
        """How long to wait for an answer, given how long answers took so far. TCP computes it similarly."""
        margin: int = max(4 * self.spread, self.trip)
        return max(self.trip + margin, self.shortest_timeout)

    def measure(self, took: int) -> None:
        off: int = took - self.trip if took > self.trip else self.trip - took
        self.spread = (3 * self.spread + off) // 4  # of positive numbers only: compiled, `//` rounds others differently
        self.trip = (7 * self.trip + max(took, 0)) // 8

    def reach(self, r: Resp, msg: Keyed) -> None:
        """Send directly to the node that last served the replica, if known; otherwise route by key."""
        if r.node == NIL:
            self.door.route(msg)
        else:
            self.out.send(r.node, msg)

    # Counting.

    def on_response(self, m: Response) -> None:
        if m.client != self.me:
            return  # it was routed by the client's place, and that client has left
        self.hear(m.clock)
        if m.ts != self.ts or m.life != self.life:
            if m.grant and not self.is_released(m):
                self.refuse(m)
            return
        r: Resp = self.record_of(m)
        if self.is_old(r, m):
            return
        self.take(r, m)
        self.judge()
        if self.inside and self.k > 1 and r.grant and self.can_spare(r):
            self.spare(r)

    def record_of(self, m: Response) -> Resp:
        """What we know of the replica that has sent this answer."""
        r: Resp = self.resp[m.i]
        return r

    def take(self, r: Resp, m: Response) -> None:
        self.learn(r, m)
        self.count(r, m, m.grant)

    def can_spare(self, r: Resp) -> bool:
        """Are the other votes enough? Only those with a long enough lease count: another lease may have ended, and that
        vote may already be somebody else's."""
        if not self.lease:
            return self.mine - r.weight >= self.needed
        return self.valid(self.renewal) - (r.weight if r.until > self.now + self.renewal else 0) >= self.needed

    def spare(self, r: Resp) -> None:
        """Release a vote that is not needed: if k > 1, another client may need it to enter."""
        self.out.note("a vote too many")
        self.reach(r, Release(self.gate, r.key, r.i, self.me, self.life, self.ts))
        self.uncount(r)
        r.due = NEVER

    def refuse(self, m: Response) -> None:
        """Release a vote for a request that is over, or that this node made before it lost its memory."""
        self.out.note("a vote for a request that is over")
        self.out.send(m.node, Release(self.gate, self.key_of_voter(m), m.i, self.me, m.life, m.ts))

    def key_of_voter(self, m: Response) -> Place:
        key: Place = self.voters[m.i]
        return key

    def is_released(self, m: Response) -> bool:
        """Is a RELEASE of this vote on its way, which the RESPONSE has crossed?

        If it is lost, the replica tells its owner again later, and is refused then.
        """
        if not self.resend or m.life != self.life or not self.resp:
            return False
        r: Resp = self.record_of(m)
        return r.over_ts == m.ts and self.now - self.over_at < self.timeout()

    def is_old(self, r: Resp, m: Response) -> bool:
        """Is this RESPONSE late or duplicated? Incarnations have no order: the answer to a later question is newer."""
        if r.inc in (NIL, m.inc):
            return m.seq <= r.seq
        if m.age > r.age:
            self.out.note("a replica has lost its memory")
            r.yielded = 0
            self.forgetful = True
            return False
        if m.age == r.age:
            self.out.note("two incarnations answer one question")
            self.uncount(r)  # it is not clear which of them has the vote, so treat the question as unanswered
            r.silent = True
            if self.resend:
                self.look_later(r, self.timeout())
        return True

    def learn(self, r: Resp, m: Response) -> None:
        """Record what every RESPONSE contains, whoever the owner is."""
        if r.seq == 0:
            self.answered += 1
        if self.resend and m.age > r.age:  # the first answer to this question
            self.measure(self.now - self.started - m.age - m.late)
        r.node = m.node
        r.inc = m.inc
        r.seq = m.seq
        r.age = m.age
        r.silent = False
        r.due = NEVER

    def count(self, r: Resp, m: Response, grant: int) -> None:
        """resp[i] := owner, timestamp."""
        self.uncount(r)
        r.owner = m.owner
        r.owner_ts = m.owner_ts
        if grant:
            r.grant = grant
            self.mine += r.weight
            self.votes += 1
            if self.lease:
                r.until = self.started + m.age + m.late + self.lease  # counted from before the replica lent it
                self.look_later(r, r.until - self.now - self.lease * 2 // 3)
        else:
            self.tally[m.owner] = self.tally.get(m.owner, 0) + r.weight
            self.heard += r.weight

    def uncount(self, r: Resp) -> None:
        """Clear(resp[i])."""
        if r.grant:
            r.grant = 0
            r.until = NEVER
            self.mine -= r.weight
            self.votes -= 1
        elif r.owner != NIL:
            self.heard -= r.weight
            rest: int = self.tally.pop(r.owner, 0) - r.weight  # 0: a zone may have no weight yet
            if rest:
                self.tally[r.owner] = rest
        r.owner = NIL
        r.owner_ts = NIL

    def judge(self) -> None:
        """Enter if we have won, lose the permit if we no longer have enough votes, else `contend`."""
        if self.inside:
            if self.mine < self.needed:
                self.lose("votes lost")
        elif self.mine >= self.needed:
            self.win()
        else:
            self.contend()

    def contend(self) -> None:
        """If we can no longer win, release our votes and back off."""
        if self.whole - self.heard < self.needed:
            self.out.note("a round is lost")
            self.lose_round()

    def lose_round(self) -> None:
        self.release_votes()
        self.set_timer("again", 1 + self.out.choose(self.backoff))

    # Entering and leaving.

    def win(self) -> None:
        if self.lease and self.valid(self.renewal) < self.needed:
            self.out.note("votes that must be renewed before they count")  # `look` does that as soon as they arrive
            return
        self.enter_cs(NIL, NIL)
        if self.inside and self.lease:
            self.watch()

    def valid(self, margin: int) -> int:
        """The weight of our votes whose leases last longer than `margin` from now."""
        r: Resp
        weight: int = 0
        for r in self.resp:
            if r.grant and r.until > self.now + margin:
                weight += r.weight
        return weight

    def watch(self) -> None:
        """Set the timer that checks the permit again when the next lease ends."""
        r: Resp
        end: int = NEVER
        for r in self.resp:
            if r.grant and self.now < r.until < end:
                end = r.until
        if end < self.permit_at:
            self.permit_at = end
            self.set_timer("permit", end - self.now)

    def lose(self, why: str) -> None:
        if self.lease:
            self.end_request()  # the votes' leases expire by themselves; until then, the user has time to stop
        else:
            self.release_votes()
        self.lose_cs(why)

    def release_cs(self) -> None:
        self.release_votes()

    def release_votes(self) -> None:
        """Release(CS): the votes that we have, and those that may be in transit to us."""
        r: Resp
        for r in self.resp:
            if r.grant or r.silent:
                self.reach(r, Release(self.gate, r.key, r.i, self.me, self.life, self.ts))
        self.end_request()

    def end_request(self) -> None:
        r: Resp
        if self.resend:
            self.over_at = self.now
            for r in self.resp:
                r.over_ts = self.ts if not r.silent and r.age == r.sent else NIL
        self.ts = NIL
        self.forgetful = False
        self.started = NEVER
        self.mine = self.votes = self.heard = self.answered = 0
        self.tally.clear()
        for r in self.resp:
            r.clear()

    # A replica.

    def on_request(self, m: Request) -> None:
        """Vote for the client if the replica is free; otherwise answer with the owner's id."""
        self.hear(m.ts)
        rep: Replica = self.replica(m.i)
        if m.client == rep.Cowner and m.life == rep.life:
            if m.ts < rep.Towner:
                return  # a late message of a request that is over
            if m.ts == rep.Towner:
                self.renew(rep, m.age)
                return
            self.out.note("a request overtook the release of the one before it")
            self.free(rep)
        if rep.Cowner == NIL:
            self.vote(rep, m.client, m.life, m.ts, m.age, self.arrival())
        else:
            self.respond(rep, m.client, m.life, m.ts, m.age, 0, False)

    def on_release_message(self, m: Release) -> None:
        rep: Replica = self.replica(m.i)
        if m.client == rep.Cowner and m.life == rep.life and m.ts >= rep.Towner:
            self.free(rep)

    # Timers.

    def look_later(self, r: Resp, delay: int) -> None:
        """Look at this replica again after the delay, or earlier if that is already planned."""
        due: int = self.now + delay if delay > 0 else self.now
        if due < r.due:
            r.due = due
        if r.due < self.look_at:
            self.look_at = r.due
            self.set_timer("look", r.due - self.now)

    def on_timer(self, name: str) -> None:
        if name == "look":
            self.look_at = NEVER
            self.look()
        elif name == "permit":
            self.permit_at = NEVER
            if self.inside:
                self.keep_permit()
        elif name == "lease":
            self.lease_at = NEVER
            self.end_leases()
        elif self.requesting_cs and self.ts == NIL:  # the timer is `again`
            self.begin()

    def look(self) -> None:
        """Deal with all replicas that are due."""
        r: Resp
        for r in self.resp:
            if r.due <= self.now:
                r.due = NEVER
                self.look_at_one(r)
        for r in self.resp:
            if r.due < self.look_at:
                self.look_later(r, r.due - self.now)

    def look_at_one(self, r: Resp) -> None:
        """Ask the replica again, or give up the round if it has been silent for too long.

        A client must not wait forever for a silent replica: others that refused may be free by now, and are asked in
        the next round. But giving up after one timeout would lose every round if messages take longer than that.
        """
        if r.grant or (r.silent and self.now - self.started < PATIENCE * self.timeout()):
            self.ask_again(r)
        elif r.silent and not self.inside:
            self.out.note("a round is lost to a silent replica")
            self.lose_round()
            r.node = NIL

    def ask_again(self, r: Resp) -> None:
        if r.silent and r.node != NIL:
            self.out.note("a replica is looked up again")
            r.node = NIL
        self.ask(r)
        if self.resend:
            self.look_later(r, min(self.timeout(), self.renewal) if r.grant else self.timeout())

    def keep_permit(self) -> None:
        if self.valid(0) < self.needed:
            self.lose("lease over")
        else:
            self.watch()

    # The whole state.

    def loaded(self) -> None:
        r: Resp
        self.weigh()
        self.mine = self.votes = self.heard = self.answered = 0
        self.tally = {}
        for r in self.resp:
            self.answered += r.seq > 0
            if r.grant:
                self.mine += r.weight
                self.votes += 1
            elif r.owner != NIL:
                self.heard += r.weight
                self.tally[r.owner] = self.tally.get(r.owner, 0) + r.weight
        self.look_at, self.permit_at, self.lease_at = [self.armed(name) for name in ("look", "permit", "lease")]

    def show(self) -> dict[str, Any]:
        resp = {r.i: (r.owner, r.owner_ts) for r in self.resp if r.owner != NIL}
        replicas = {rep.i: (rep.Cowner, rep.Towner) for rep in self.replicas.values()}
        return {"ts": self.ts, "resp": resp, "inside": self.inside, "replicas": replicas}
