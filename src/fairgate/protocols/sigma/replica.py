"""The side of the replicas that the strawman and Sigma share: lending the vote, and answering.

votes.py says what the fields mean. Whom to vote for is the protocol's own affair: `on_request`, `on_release_message`.
"""

from fairgate.core.ids import NIL
from fairgate.core.kbr import Routed
from fairgate.core.keyspace import is_between, place_of
from fairgate.core.message import Key
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.votes import Replica, Response, ballot_of

LEASE = 10_000_000_000  # ns
DRIFT = 10_000  # parts per million
MILLION = 1_000_000
LIVES = 1 << 62


class Voters(Routed):
    timed = True

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        Routed.set_up(self, me, setup, out)
        options = setup.options
        self.lease: int = options.get("lease", LEASE)
        self.hold_time = self.lease + (self.lease // MILLION + 1) * int(options.get("drift", DRIFT))
        self.lives: int = options.get("lives", LIVES)
        self.direct: bool = options.get("responses", "direct") == "direct"
        self.ballot = ballot_of(setup)
        self.voters = self.ballot.keys  # the key of replica i; the places of all members if zones vote
        self.life = NIL  # drawn when it is first needed
        self.clock = 0  # Lamport's
        self.replicas: dict[int, Replica] = {}  # those that this node plays
        self.seq = 0  # of the last RESPONSE
        self.lease_at = NEVER  # when the timer `lease` is armed for

    def my_life(self) -> int:
        if self.life == NIL:
            self.life = self.out.choose(self.lives)
        return self.life

    def hear(self, ts: int) -> None:
        if ts > self.clock:
            self.clock = ts

    def replica(self, i: int) -> Replica:
        found = self.replicas.get(i)
        if found is None:
            self.my_life()
            found = self.replicas[i] = Replica(i)
        return found

    def vote(self, rep: Replica, client: int, life: int, ts: int, age: int) -> None:
        rep.Cowner = client
        rep.Towner = ts
        rep.life = life
        rep.age = age
        rep.grant = self.seq + 1  # the number of the RESPONSE that tells of it
        self.lend(rep)
        self.tell_owner(rep)

    def renew(self, rep: Replica, age: int) -> None:
        """The owner asks again."""
        if age > rep.age:
            rep.age = age
        self.lend(rep)
        self.tell_owner(rep)

    def tell_owner(self, rep: Replica) -> None:
        self.respond(rep, rep.Cowner, rep.life, rep.Towner, rep.age, 0, False)

    def lend(self, rep: Replica) -> None:
        if self.lease:
            rep.until = self.now + self.hold_time
            if rep.until < self.lease_at:
                self.lease_at = rep.until
                self.set_timer("lease", self.hold_time)

    def free(self, rep: Replica) -> None:
        rep.Cowner = rep.Towner = rep.life = rep.age = NIL
        rep.grant = 0
        rep.until = NEVER

    def respond(self, rep: Replica, client: int, life: int, ts: int, age: int, wait: int, wanted: bool) -> None:
        """SendResponse(C, Cowner, Towner)."""
        self.seq += 1
        grant = rep.grant if client == rep.Cowner and ts == rep.Towner and life == rep.life else 0
        msg = Response.__new__(Response)  # field by field: `Response(...)` boxes them all, compiled, for `__init__`
        msg.gate = self.gate
        msg.target = place_of(client)
        msg.i = rep.i
        msg.client = client
        msg.life = life
        msg.ts = ts
        msg.age = age
        msg.node = self.me
        msg.inc = self.life
        msg.seq = self.seq
        msg.grant = grant
        msg.owner = rep.Cowner
        msg.owner_ts = rep.Towner
        msg.clock = self.clock
        msg.wait = wait
        msg.wanted = wanted
        if self.direct:
            self.out.send(client, msg)
        else:
            self.door.route(msg)

    def on_range(self, start: int, end: int) -> None:
        """Replicas whose keys are another node's now begin there with nothing in their memory."""
        for i in sorted(self.replicas):
            if not is_between(self.voters[i], start, end):
                del self.replicas[i]

    def played(self) -> list[tuple[int, int]]:
        return [(i, self.voters[i]) for i in sorted(self.replicas)]

    def give_replica(self, i: int) -> Key:
        return self.replicas.pop(i).key_at(self.now)

    def take_replica(self, i: int, state: Key) -> None:
        """With its vote, which lasts as long as it did, and by no means less."""
        rep = self.replica(i)
        rep.load(state, self.now)
        self.hear(rep.Towner)
        self.seq = max(self.seq, rep.grant)  # no vote of this node has the number of that one
        if rep.until < self.lease_at:
            self.lease_at = rep.until
            self.set_timer("lease", max(rep.until - self.now, 0))

    def end_leases(self) -> None:
        next_end = NEVER
        for i in sorted(self.replicas):
            rep = self.replicas[i]
            if rep.until <= self.now:
                self.out.note("a lease is over")
                self.free(rep)
            next_end = min(next_end, rep.until)
        if next_end < self.lease_at:
            self.lease_at = next_end
            self.set_timer("lease", next_end - self.now)

    def armed(self, name: str) -> int:
        return NEVER if self.timers is None else self.timers.get(name, NEVER)
