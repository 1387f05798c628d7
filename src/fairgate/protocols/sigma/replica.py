"""The replica's side of the strawman and Sigma: lending the vote, and answering.

votes.py explains the fields. Each protocol decides for itself which request to vote for (`on_request`,
`on_release_message`).
"""

from typing import Any

from fairgate.core.declare import Fixed, Id, Moment, Option, Place, node, one_of
from fairgate.core.ids import NIL
from fairgate.core.kbr import Routed
from fairgate.core.keyspace import is_between, place_of
from fairgate.core.message import Key
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.votes import Ballot, Replica, Response, ballot_of

LEASE = 10_000_000_000  # ns
DRIFT = 10_000  # parts per million
RESEND = 1_000_000_000  # ns until the first unanswered question is repeated; 0: never
LIVES = 1 << 62
MILLION = 1_000_000


@node
class Voters(Routed):
    """A node that serves replicas. It declares the options of both the replica's and the client's side."""

    timed = True

    responses: Option[str] = one_of("direct", "routed")
    lease: Option[int] = LEASE
    drift: Option[int] = DRIFT
    resend: Option[int] = RESEND
    lives: Option[int] = LIVES
    direct: Fixed[bool]
    hold_time: Fixed[int]
    ballot: Fixed[Ballot]
    voters: Fixed[tuple[Place, ...]]  # the key of replica i
    life: int = NIL  # drawn at random on first use
    clock: int = 0  # Lamport clock
    seq: int = 0  # of the last RESPONSE
    replicas: dict[int, Replica] = {}  # those that this node serves, by number
    lease_at: Fixed[Moment] = NEVER  # when the timer `lease` is due

    def initialize(self, setup: Setup) -> None:
        self.direct = self.responses == "direct"
        self.hold_time = self.lease + (self.lease // MILLION + 1) * self.drift
        self.ballot = self.find_ballot(setup)
        self.voters = self.ballot.keys

    def find_ballot(self, setup: Setup) -> Ballot:
        return ballot_of(setup)

    def draw_life(self) -> None:
        if self.life == NIL:
            self.life = self.out.choose(self.lives)

    def hear(self, ts: int) -> None:
        if ts > self.clock:
            self.clock = ts

    def replica(self, i: int) -> Replica:
        found: Replica | None = self.replicas.get(i)
        if found is None:
            self.draw_life()
            found = self.replicas[i] = Replica(i)
        return found

    def vote(self, rep: Replica, client: Id, life: int, ts: int, age: int, asked: Moment) -> None:
        rep.Cowner = client
        rep.Towner = ts
        rep.life = life
        rep.age = age
        rep.asked = asked
        rep.grant = self.seq + 1  # the number of the RESPONSE that announces it
        self.lend(rep)
        self.tell_owner(rep)

    def renew(self, rep: Replica, age: int) -> None:
        """The owner has asked again: extend its lease."""
        if age > rep.age:
            rep.age = age
            rep.asked = self.arrival()
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

    def arrival(self) -> int:
        """The time at which the current message has arrived, for a question that may have to wait."""
        return self.now if self.lease else NEVER

    def late(self, rep: Replica) -> int:
        """How long the owner's question had waited when the vote was lent, at least, on any clock within `drift`."""
        if not self.lease:
            return 0
        return self.less_drift(rep.until - self.hold_time - rep.asked)

    def less_drift(self, waited: int) -> int:
        shortest: int = waited - (waited // MILLION + 1) * self.drift
        return shortest if shortest > 0 else 0

    def free(self, rep: Replica) -> None:
        rep.Cowner = rep.Towner = rep.life = rep.age = NIL
        rep.grant = 0
        rep.asked = rep.until = NEVER

    def respond(self, rep: Replica, client: Id, life: int, ts: int, age: int, wait: int, wanted: bool) -> None:
        """SendResponse(C, Cowner, Towner)."""
        self.seq += 1
        grant: int = rep.grant if client == rep.Cowner and ts == rep.Towner and life == rep.life else 0
        msg: Response = self.response(rep, client, life, ts, age, grant, wait, wanted)
        if self.direct:
            self.out.send(client, msg)
        else:
            self.door.route(msg)

    def response(
        self, rep: Replica, client: Id, life: int, ts: int, age: int, grant: int, wait: int, wanted: bool
    ) -> Response:
        return Response(
            self.gate, place_of(client), rep.i, client, life, ts, age,
            self.me, self.life, self.seq, grant, rep.Cowner, rep.Towner, self.clock, wait, wanted,
            self.late(rep) if grant else 0,
        )  # fmt: skip

    def on_range(self, start: Place, end: Place) -> None:
        """Drop replicas whose keys another node owns now. They start there with an empty memory."""
        for i in sorted(self.replicas):
            if not is_between(self.voters[i], start, end):
                del self.replicas[i]

    def played(self) -> list[tuple[int, int]]:
        return [(i, self.voters[i]) for i in sorted(self.replicas)]

    def give_replica(self, i: int) -> Key:
        rep: Replica = self.replicas.pop(i)
        return rep.key_at(self.now)

    def take_replica(self, i: int, state: Key) -> None:
        """Take over a replica with its vote. The vote's lease lasts at least as long as before."""
        self.draw_life()
        rep: Replica = Replica.from_key(state, self.now)
        self.replicas[i] = rep
        self.hear(rep.Towner)
        self.seq = max(self.seq, rep.grant)  # so that no later vote of this node gets the same number
        if rep.until < self.lease_at:
            self.lease_at = rep.until
            self.set_timer("lease", max(rep.until - self.now, 0))

    def end_leases(self) -> None:
        rep: Replica
        next_end: int = NEVER
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

    def replicas_key(self) -> Key:
        return tuple([self.replicas[i].key_at(self.now) for i in sorted(self.replicas)])

    def load_replicas(self, key: Any) -> None:
        self.replicas = {state[0]: Replica.from_key(state, self.now) for state in key}
