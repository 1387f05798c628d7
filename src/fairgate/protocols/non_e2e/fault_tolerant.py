"""Non End-to-End under failures: path repair (mending.py), plus leases on votes for cases that the paper leaves open.

With leases (`lease` > 0), no crash notifications are needed. Messages may be lost or duplicated, and nodes may lose
their memory or leave. A requester has a vote for one lease, counted from when it sent a question (Ping) that the
replica has answered (Ack). The replica counts from a later time, and longer, to allow for `drift`. A holder asks every
third of a lease, and loses its permit when it has less than a quorum of valid votes. All requesters ask again,
bypassing the entries: those with votes ask all replicas, the others one after the other. An entry whose request has not
come by again in the meantime expires; then the requests in its queue are routed on.

A replica without state, because its node is new to the key or has lost its memory, does not vote until one lease has
passed. So no vote is ever given twice at once. Without the option `wait`, such a replica votes at once, as in SG, and
resets can let two in.

Without leases (`lease` = 0, the default), until something fails, only the messages of section IV.B are sent. Then links
must be reliable, and every node must be notified of every crash.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Option, node
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.message import Key
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.mending import Mending
from fairgate.protocols.non_e2e.messages import Ack, Ping, Request
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.protocols.non_e2e.state import Ask, Entry, Lease, Replica, find, is_of

DRIFT = 10_000  # parts per million by which two clock rates may differ
MILLION = 1_000_000
LIVES = 1 << 20
VOTE, WAIT, ENTRY = "vote:", "wait:", "entry:"


@node
class NonE2EFaults(Mending):
    about = About(
        name="non_e2e_faults",
        paper="EE",
        kind="quorum",
        cost="as non_e2e; with leases 2n more, and 2n per third of a lease",
        survives=("crash with leases", "reset with leases", "loss with leases", "duplication with leases"),
        many=False,
        options=dict(NonE2E.about.options),
    )

    drift: Option[int] = DRIFT
    wait: Option[bool] = True
    hold: Fixed[int]  # how long a vote lasts at the replica
    leases: dict[int, Lease] = {}  # the requester's, by replica
    pings: int = 0  # number of the last question
    probed: int = 0  # the replica that was asked again last, if it was one only

    def initialize(self, setup: Setup) -> None:
        Mending.initialize(self, setup)
        self.hold = self.lease + (self.lease // MILLION + 1) * self.drift if self.lease else 0
        if self.lease:  # a requester that asked less often would lose one vote before it gets the next
            self.terms.retry = min(self.terms.retry, self.lease // 3)
            self.terms.longest = min(self.terms.longest, self.lease)

    def on_timer(self, name: str) -> None:
        if name == "ping":
            for replica in sorted(self.leases):
                self.ping(replica)
        elif name == "lease":
            self.lose("lease over")
        elif ":" in name:
            kind, _, number = name.partition(":")
            self.numbered_timer_due(kind + ":", int(number))
        else:
            Mending.on_timer(self, name)

    def numbered_timer_due(self, kind: str, number: int) -> None:
        if kind == ENTRY:
            self.out.note("an entry ran out")
            entry = find(self.first, number)
            assert entry is not None, "dropping an entry cancels its timer"
            self.dissolve(entry, False)
        else:
            replica = self.replicas[number]
            if kind == VOTE:
                self.out.note("a vote ran out")
                replica.owner = ()
            self.vote(number, replica)

    # The requester: votes are leased.

    def request_cs(self) -> None:
        if self.lease and not self.life:
            self.life = 1 + self.out.choose(LIVES)
        Mending.request_cs(self)

    def ask_again(self) -> None:
        for replica in sorted(self.leases):
            if self.leases[replica].until <= self.now and self.asks[replica].vote:
                self.lose_vote(replica)
        Mending.ask_again(self)

    def ask_replicas(self) -> None:
        """A node without votes asks one replica again, each time another one.

        A request that waits needs no more than one replica that knows it: sooner or later that replica votes for it,
        and a node with votes asks all replicas.
        """
        unasked = [ask for ask in self.asks if not ask.asked]
        if not self.lease or self.leases or unasked:
            Mending.ask_replicas(self)
            return
        self.probed = (self.probed + 1) % len(self.keys)
        self.ask(self.probed, (self.ts, self.me, self.asks[self.probed].attempt), True)

    def take_vote(self, src: Id, replica: int, ask: Ask) -> None:
        if not self.lease:
            Mending.take_vote(self, src, replica, ask)
        elif replica not in self.leases:
            self.leases[replica] = Lease(src, self.now)
            self.ping(replica)
        else:
            self.leases[replica].at = src

    def ping(self, replica: int) -> None:
        lease = self.leases[replica]
        self.pings += 1
        for n in [n for n, sent in lease.questions.items() if sent + self.lease <= self.now]:
            del lease.questions[n]
        msg = Ping(self.gate, self.keys[replica], replica, self.ts, self.me, self.asks[replica].attempt, self.pings)
        if lease.questions:  # the last one is unanswered: perhaps another node serves the replica now
            self.door.route(msg)
        else:
            self.out.send(lease.at, msg)
        lease.questions[self.pings] = self.now
        self.set_timer("ping", self.lease // 3)

    def on_ack(self, src: Id, m: Ack) -> None:
        lease = self.leases.get(m.replica)
        if lease is None or m.n not in lease.questions:
            return
        if m.held:
            lease.at = src
            lease.until = max(lease.until, lease.questions[m.n] + self.lease)
            Mending.take_vote(self, src, m.replica, self.asks[m.replica])
            for n in [n for n in lease.questions if n <= m.n]:
                del lease.questions[n]
        else:
            self.out.note("a vote was gone")
            self.lose_vote(m.replica)
        if self.inside:
            self.watch()
        else:
            self.count_votes()

    def lose_vote(self, replica: int) -> None:
        """Forget a vote. It will be asked for again, bypassing entries, under the same number: no YIELD was sent."""
        del self.leases[replica]
        ask = self.asks[replica]
        self.voted -= ask.vote
        ask.vote = ask.wanted = ask.heard = False
        ask.holder = NIL

    def votes(self) -> int:
        if not self.lease:
            return Mending.votes(self)
        return len([lease for lease in self.leases.values() if lease.until > self.now])

    def all_heard(self) -> bool:
        """Has every replica answered, and is every offered vote confirmed?

        A requester that has asked twice no longer waits for replicas that are silent.
        """
        for replica in self.leases:
            if not self.asks[replica].vote:
                return False
        return Mending.all_heard(self) or (self.lease > 0 and self.delay > self.terms.retry)

    def enter_cs(self, slot: int, fence: int) -> None:
        Mending.enter_cs(self, slot, fence)
        if self.inside and self.lease:
            self.watch()

    def watch(self) -> None:
        """Set the timer to when less than a quorum of votes is valid: the permit ends then."""
        if self.votes() < self.terms.quorum:
            self.lose("votes were gone")
            return
        ends = sorted([lease.until for lease in self.leases.values()], reverse=True)
        self.set_timer("lease", ends[self.terms.quorum - 1] - self.now)

    def lose(self, why: str) -> None:
        """Give up the permit without telling anyone: until the replicas' leases end, the user has time to stop."""
        self.forget()
        self.lose_cs(why)

    def forget(self) -> None:
        Mending.forget(self)
        self.leases = {}
        self.cancel_timer("ping")
        self.cancel_timer("lease")

    def give_vote_back(self, replica: int, ask: Ask) -> None:
        self.leases.pop(replica, None)
        Mending.give_vote_back(self, replica, ask)

    # The replica: its votes are leased, and it can move to another node.

    def replica(self, number: int) -> Replica:
        if self.lease and self.wait and number not in self.replicas:
            self.set_timer(f"{WAIT}{number}", self.hold)
        return Mending.replica(self, number)

    def is_waiting(self, number: int) -> bool:
        return self.is_armed(f"{WAIT}{number}")

    def vote(self, number: int, replica: Replica) -> None:
        if replica.owner:
            Mending.vote(self, number, replica)
            return
        self.cancel_timer(f"{VOTE}{number}")
        if self.is_waiting(number):
            return
        Mending.vote(self, number, replica)
        if replica.owner and self.lease:
            self.set_timer(f"{VOTE}{number}", self.hold)

    def on_ping(self, m: Ping) -> None:
        replica = self.replicas.get(m.replica)
        held = replica is not None and replica.owner == (m.ts, m.node, m.attempt)
        if held:
            self.set_timer(f"{VOTE}{m.replica}", self.hold)
        self.out.send(m.node, Ack(self.gate, m.replica, m.ts, m.attempt, m.n, held))

    def give_replica(self, i: int) -> Key:
        waits = self.is_waiting(i)
        self.cancel_timer(f"{VOTE}{i}")
        self.cancel_timer(f"{WAIT}{i}")
        return (Mending.give_replica(self, i), waits)

    def take_replica(self, i: int, state: Key) -> None:
        """Take over a replica. Its timers start again with the full time, which is safe."""
        replica, waits = state
        Mending.take_replica(self, i, replica)
        if waits:
            self.set_timer(f"{WAIT}{i}", self.hold)
        if self.replicas[i].owner and self.lease:
            self.set_timer(f"{VOTE}{i}", self.hold)

    def knows_nothing(self, number: int) -> bool:
        return Mending.knows_nothing(self, number) or self.is_waiting(number)

    def took_owner(self, number: int) -> None:
        if self.lease:
            self.set_timer(f"{VOTE}{number}", self.hold)  # the full time again, which is safe

    # Nodes on the path.

    def make_entry(self, entry: Entry) -> None:
        Mending.make_entry(self, entry)
        if self.lease:
            self.keep_entry(entry.replica)

    def keep_entry(self, replica: int) -> None:
        """Keep an entry until its request must have come by again: it asks one replica at a time."""
        self.set_timer(f"{ENTRY}{replica}", (len(self.keys) + 1) * self.hold)

    def pass_request(self, src: Id, m: Request, next_hop: Id) -> Keyed | None:
        entry = find(self.first, m.replica)
        if self.lease and entry is not None and is_of(entry, m):
            self.keep_entry(m.replica)
        return Mending.pass_request(self, src, m, next_hop)

    def drop_entry(self, replica: int) -> None:
        Mending.drop_entry(self, replica)
        self.cancel_timer(f"{ENTRY}{replica}")

    # The whole state.

    def leases_key(self) -> Key:
        """An ended lease has 0 time left: how long ago it ended makes no difference."""
        found = [
            (replica, *lease.key_at(self.now))  # type: ignore[attr-defined]  # derived
            for replica, lease in sorted(self.leases.items())
        ]
        return tuple([(replica, at, max(left, 0), questions) for replica, at, left, questions in found])

    def load_leases(self, key: Key) -> None:
        self.leases = {
            replica: Lease.from_key(lease, self.now)  # type: ignore[attr-defined]
            for replica, *lease in key
        }

    def show(self) -> dict[str, Any]:
        leases = {replica: lease for replica, *lease in self.leases_key()}
        return {**Mending.show(self), "leases": leases, "kept": sorted(self.kept)}
