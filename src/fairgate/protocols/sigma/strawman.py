"""The strawman of SG section III: ask all replicas for their votes, and whoever fails to get m gives back what it got.

Theory of operation. As in ALOHA, nobody waits in a queue: a replica that has voted says no, and who can no longer have
m votes releases those it has and asks again after a random time. It works while few want in, and not at all when many
do. votes.py says what a vote is, and why it is worth something on a network that loses and reorders.

Sigma (protocol.py) is built on this class: the client's count of votes, its leases and its finding of replicas are
here, lending and answering in replica.py.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Moment, Option, node
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.replica import Voters
from fairgate.protocols.sigma.votes import Release, Replica, Request, Resp, Response

PATIENCE = 8  # times `resend`: until a silent replica costs the round
BACKOFF = 2_000_000_000  # ns: SG gives no law, so it is uniform up to this

BALLOT = {"replicas": "2k+1", "quorum": "m = n // (k+1) + 1", "voting": ("replicas", "zones")}  # options of votes.py


@node
class Strawman(Voters):
    intercepts = False
    about = About(
        name="strawman",
        paper="SG",
        kind="quorum",
        cost="3n, and 3n a round that is lost",
        survives=("crash", "reset", "loss", "duplication"),
        open_membership=True,
        options={**BALLOT},
    )

    backoff: Option[int] = BACKOFF
    renewal: Fixed[int]
    whole: Fixed[int]
    needed: Fixed[int]
    k: Fixed[int]
    ts: int = NIL  # of the request that is under way
    started: Moment = NEVER  # when it began
    resp: list[Resp] = []  # made for the first request
    # Counted from `resp`.
    mine: Fixed[int] = 0  # weight of our votes
    votes: Fixed[int] = 0  # their number
    heard: Fixed[int] = 0  # weight of the replicas that others are known to own
    answered: Fixed[int] = 0  # number of replicas that have answered this request
    tally: Fixed[dict[int, int]] = {}  # another owner -> weight of its replicas
    # When the timers are armed for.
    look_at: Fixed[Moment] = NEVER
    permit_at: Fixed[Moment] = NEVER

    def initialize(self, setup: Setup) -> None:
        Voters.initialize(self, setup)
        self.renewal = self.lease // 3 if self.lease else NEVER  # a renewal that gets lost leaves time for another
        self.whole = self.ballot.whole
        self.needed = self.ballot.needed
        self.k = setup.k

    # Asking.

    def request_cs(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Request(CS) in SG's figure 5: a new timestamp, and everybody is asked."""
        self.clock += 1
        self.ts = self.clock
        self.started = self.now
        self.my_life()
        if not self.resp:
            self.resp = [Resp(i, NIL) for i in range(len(self.voters))]
            self.weigh()
        self.ask_all()

    def weigh(self) -> None:
        """Each replica's key and weight, as the ballot has them."""
        r: Resp
        for r in self.resp:
            r.key = self.voters[r.i]
            r.weight = self.ballot.weights[r.i]

    def ask_all(self) -> None:
        r: Resp
        for r in self.resp:
            self.ask(r)
            if self.resend:
                self.look_later(r, self.resend)

    def ask(self, r: Resp) -> None:
        r.silent = True
        self.reach(r, Request(self.gate, r.key, r.i, self.me, self.life, self.ts, self.now - self.started))

    def reach(self, r: Resp, msg: Keyed) -> None:
        """Straight to who played the replica last, if that is known; else it is looked up."""
        if r.node == NIL:
            self.door.route(msg)
        else:
            self.out.send(r.node, msg)

    # Counting.

    def on_response(self, m: Response) -> None:
        if m.client != self.me:
            return  # it was routed, and its client is gone
        self.hear(m.clock)
        if m.ts != self.ts or m.life != self.life:
            if m.grant:
                self.refuse(m)
            return
        r: Resp = self.resp[m.i]
        if self.is_old(r, m):
            return
        self.take(r, m)
        self.judge()
        if self.inside and self.k > 1 and r.grant and self.can_spare(r):
            self.spare(r)

    def take(self, r: Resp, m: Response) -> None:
        self.learn(r, m)
        self.count(r, m.owner, m.owner_ts, m.grant)

    def can_spare(self, r: Resp) -> bool:
        """Are the others enough? Only those count that one may come in by: of the rest the lease may be over soon, or
        is, and somebody else has them."""
        if not self.lease:
            return self.mine - r.weight >= self.needed
        return self.valid(self.renewal) - (r.weight if r.until > self.now + self.renewal else 0) >= self.needed

    def spare(self, r: Resp) -> None:
        """A vote that is not needed: where several may be inside, it is another one's way in."""
        self.out.note("a vote too many")
        self.reach(r, Release(self.gate, r.key, r.i, self.me, self.life, self.ts))
        self.uncount(r)
        r.due = NEVER

    def refuse(self, m: Response) -> None:
        """A vote for a request that is over, or that a node asked for before it lost its memory."""
        self.out.note("a vote for a request that is over")
        self.out.send(m.node, Release(self.gate, self.voters[m.i], m.i, self.me, m.life, m.ts))

    def is_old(self, r: Resp, m: Response) -> bool:
        """Late, or doubled. Incarnations have no order: who answers the later question is the later one."""
        if r.inc in (NIL, m.inc):
            return m.seq <= r.seq
        if m.age > r.age:
            self.out.note("a replica has lost its memory")
            r.yielded = 0
            return False
        if m.age == r.age:
            self.out.note("two incarnations answer one question")
            self.uncount(r)  # nobody knows whose vote it is: our question is open again
            r.silent = True
            if self.resend:
                self.look_later(r, self.resend)
        return True

    def learn(self, r: Resp, m: Response) -> None:
        """What every RESPONSE tells, whoever is the owner."""
        if r.seq == 0:
            self.answered += 1
        r.node = m.node
        r.inc = m.inc
        r.seq = m.seq
        r.age = m.age
        r.silent = False
        r.due = NEVER

    def count(self, r: Resp, owner: Id, owner_ts: int, grant: int) -> None:
        """resp[i] := owner, timestamp."""
        self.uncount(r)
        r.owner = owner
        r.owner_ts = owner_ts
        if grant:
            r.grant = grant
            self.mine += r.weight
            self.votes += 1
            if self.lease:
                r.until = self.started + r.age + self.lease  # counted from asking
                self.look_later(r, r.until - self.now - self.lease * 2 // 3)
        else:
            self.tally[owner] = self.tally.get(owner, 0) + r.weight
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
            rest: int = self.tally.pop(r.owner) - r.weight
            if rest:
                self.tally[r.owner] = rest
        r.owner = NIL
        r.owner_ts = NIL

    def judge(self) -> None:
        """Won, or not yet?"""
        if self.inside:
            if self.mine < self.needed:
                self.lose("votes lost")
        elif self.mine >= self.needed:
            self.win()
        else:
            self.contend()

    def contend(self) -> None:
        """Whoever can no longer win releases what it has and backs off."""
        if self.whole - self.heard < self.needed:
            self.out.note("a round is lost")
            self.lose_round()

    def lose_round(self) -> None:
        self.release_votes()
        self.set_timer("again", 1 + self.out.choose(self.backoff))

    # Inside, and out again.

    def win(self) -> None:
        if self.lease and self.valid(self.renewal) < self.needed:
            self.out.note("votes that must be renewed before they count")  # which `look` does, as soon as they come
            return
        self.enter_cs(NIL, NIL)
        if self.inside and self.lease:
            self.watch()

    def valid(self, margin: int) -> int:
        """Weight of the votes whose lease is not over for so long."""
        r: Resp
        weight: int = 0
        for r in self.resp:
            if r.grant and r.until > self.now + margin:
                weight += r.weight
        return weight

    def watch(self) -> None:
        """The permit is looked at again when the first of the leases ends that have not yet."""
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
            self.end_request()  # the votes run out by themselves: until then whoever was inside has time to stop
        else:
            self.release_votes()
        self.lose_cs(why)

    def release_cs(self) -> None:
        self.release_votes()

    def release_votes(self) -> None:
        """Release(CS): all that we have, and what may be on its way to us."""
        r: Resp
        for r in self.resp:
            if r.grant or r.silent:
                self.reach(r, Release(self.gate, r.key, r.i, self.me, self.life, self.ts))
        self.end_request()

    def end_request(self) -> None:
        r: Resp
        self.ts = NIL
        self.started = NEVER
        self.mine = self.votes = self.heard = self.answered = 0
        self.tally.clear()
        for r in self.resp:
            r.clear()

    # A replica.

    def on_request(self, m: Request) -> None:
        """A vote if it is free; the owner's name if not."""
        self.hear(m.ts)
        rep: Replica = self.replica(m.i)
        if m.client == rep.Cowner and m.life == rep.life:
            if m.ts < rep.Towner:
                return  # late: that request is over
            if m.ts == rep.Towner:
                self.renew(rep, m.age)
                return
            self.out.note("a request overtook the release of the one before it")
            self.free(rep)
        if rep.Cowner == NIL:
            self.vote(rep, m.client, m.life, m.ts, m.age)
        else:
            self.respond(rep, m.client, m.life, m.ts, m.age, 0, False)

    def on_release_message(self, m: Release) -> None:
        rep: Replica = self.replica(m.i)
        if m.client == rep.Cowner and m.life == rep.life and m.ts >= rep.Towner:
            self.free(rep)

    # Time.

    def look_later(self, r: Resp, delay: int) -> None:
        """Or earlier, if that was the plan."""
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
        elif self.requesting_cs and self.ts == NIL:  # again
            self.begin()

    def look(self) -> None:
        """Ask again whom it is time to ask."""
        r: Resp
        for r in self.resp:
            if r.due <= self.now:
                r.due = NEVER
                self.look_at_one(r)
        for r in self.resp:
            if r.due < self.look_at:
                self.look_later(r, r.due - self.now)

    def look_at_one(self, r: Resp) -> None:
        """Nobody waits for the silent for ever: others that said no may be free by now, and hear of it in the next
        round. Not sooner, though: a message may take longer than `resend`, and then all rounds would be lost."""
        if r.grant or (r.silent and self.now - self.started < PATIENCE * self.resend):
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
            self.look_later(r, min(self.resend, self.renewal) if r.grant else self.resend)

    def keep_permit(self) -> None:
        if self.valid(0) < self.needed:
            self.lose("lease over")
        else:
            self.watch()

    # The state, whole.

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
