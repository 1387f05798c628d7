"""Non End-to-End under failures (EE, section V.B), with leases for what the paper leaves open.

On the way. When a node hears that a peer has crashed (`on_crash`), the one before it on a path routes the request
anew, which makes a new path, and the one behind it sends a CLEANUP down the old one, which takes the entries out and
brings their queues to the replica. What a RELEASE has gathered is kept where it was gathered until the replica has
acknowledged it; if that takes too long, or the next node has crashed, the keeper routes it again, to whoever
owns the key then: the paper's temporary token holder. Nothing of this ever frees a vote, but the news of its owner's
crash: so it may be wrong about a peer that is alive, and only the owner's crash must be true.

Leases (`lease` > 0). Nobody need hear of crashes then, messages may be lost or come twice, nodes may lose their memory
and leave. A vote is the requester's for one lease, counted from a question (Ping) that the replica has answered (Ack);
the replica counts longer by `drift`, and from later. A holder asks every third of a lease, and loses its permit when
fewer than a quorum of its votes are left. Entries live as long as a vote; then the requests that they keep go on. All
who wait ask again, past the entries. A replica that knows nothing, because it is new to the key or has lost
its memory, votes for nobody before a lease is over: so no vote is ever given twice at once (`wait`; without it
a replica votes at once, as in SG, and resets can let two in).

Without leases (`lease` = 0, the default) no message is sent that section IV.B does not send, until something fails;
links must be reliable, and everybody hears of every crash. A RELEASE may then be lost with a node that it was under
way to. So whoever has heard of a crash asks again as well; and who asks past the entries makes the replica tell its
owner of the vote once more, who answers by RELEASE if the request is over.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.kbr import Door
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import is_between
from fairgate.core.message import Key, Message, decode
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.messages import (
    LIFE,
    Ack,
    Asked,
    CleanUp,
    Gathering,
    HandOver,
    Ping,
    Request,
    Taken,
)
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.protocols.non_e2e.state import Ask, Entry, Replica, find, in_order, merged

DRIFT = 10_000  # parts per million by which two clocks may run apart
MILLION = 1_000_000
LIVES = 1 << 20
TRIES = 5  # of a keeper; those who wait ask again themselves
VOTE, WAIT, ENTRY = "vote:", "wait:", "entry:"


class Lease:
    """Of a vote that was offered: the questions under way, and the time until which it counts."""

    __slots__ = ("at", "questions", "until")

    def __init__(self, at: int, until: int) -> None:
        self.at = at  # the node that has the replica
        self.questions: dict[int, int] = {}  # number -> when it was asked
        self.until = until

    def key(self, now: int) -> Key:
        asked = tuple([(n, sent - now) for n, sent in sorted(self.questions.items())])
        return (self.at, asked, max(self.until - now, 0))


class Kept:
    """What was passed on and has not arrived yet."""

    __slots__ = ("before", "msg", "next", "tries")

    def __init__(self, msg: Gathering, before: int, next_hop: int, tries: int) -> None:
        self.msg = msg
        self.before = before  # the keeper before this one
        self.next = next_hop
        self.tries = tries


class NonE2EFaults(NonE2E):
    about = About(
        name="non_e2e_faults",
        paper="EE",
        kind="quorum",
        cost="as non_e2e; with leases 2n more, and 2n for every third of a lease",
        survives=("crash with leases", "reset with leases", "loss with leases", "duplication with leases"),
        many=False,
        options={**NonE2E.about.options, "lease": 0, "drift": DRIFT, "wait": True},
    )

    def __init__(self, me: int, setup: Setup, out: Door) -> None:
        NonE2E.__init__(self, me, setup, out)
        self.lease: int = setup.options.get("lease", 0)
        self.hold = self.lease + (self.lease // MILLION + 1) * setup.options.get("drift", DRIFT) if self.lease else 0
        if self.lease:  # who asks more seldom loses one vote before it has the next
            self.terms.retry = min(self.terms.retry, self.lease // 3)
            self.terms.longest = min(self.terms.longest, self.lease)
        self.wait: bool = setup.options.get("wait", True)
        self.leases: dict[int, Lease] = {}  # the requester's, by replica
        self.pings = 0  # the last question's number
        self.crashed: set[int] = set()  # as far as it has heard
        self.kept: dict[Asked, Kept] = {}  # by (replica, ts, node, attempt)

    def on_timer(self, name: str) -> None:
        if name == "again":
            self.ask_again()
        elif name == "ping":
            for replica in sorted(self.leases):
                self.ping(replica)
        elif name == "lease":
            self.lose("lease over")
        elif name == "keep":
            self.pass_kept_again(NIL)
        else:
            kind, _, number = name.partition(":")
            self.on_numbered_timer(kind + ":", int(number))

    def on_numbered_timer(self, kind: str, number: int) -> None:
        if kind == ENTRY:
            self.out.note("an entry ran out")
            entry = find(self.first, number)
            assert entry is not None, "its timer goes with it"
            self.dissolve(number, entry, False)
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
        NonE2E.request_cs(self)
        self.wait_for_votes()

    def wait_for_votes(self) -> None:
        if self.may_be_lost():
            self.ask_later()

    def may_be_lost(self) -> bool:
        return self.lease > 0 or bool(self.crashed)

    def ask_again(self) -> None:
        for replica in sorted(self.leases):
            if self.leases[replica].until <= self.now and self.asks[replica].vote:
                self.lose_vote(replica)
        NonE2E.ask_again(self)
        self.wait_for_votes()

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Ack):
            self.on_ack(src, msg)
        elif isinstance(msg, Taken):
            self.on_taken(msg)
        else:
            NonE2E.on_message(self, src, msg)

    def take_vote(self, src: int, replica: int, ask: Ask) -> None:
        if not self.lease:
            NonE2E.take_vote(self, src, replica, ask)
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
        if lease.questions:  # the last one is not answered: perhaps another node has the replica now
            self.door.route(msg)
        else:
            self.out.send(lease.at, msg)
        lease.questions[self.pings] = self.now
        self.set_timer("ping", self.lease // 3)

    def on_ack(self, src: int, m: Ack) -> None:
        lease = self.leases.get(m.replica)
        if lease is None or m.n not in lease.questions:
            return
        if m.held:
            lease.at = src
            lease.until = max(lease.until, lease.questions[m.n] + self.lease)
            NonE2E.take_vote(self, src, m.replica, self.asks[m.replica])
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
        """It is asked for again, past the entries, under the same number: it was not given back."""
        del self.leases[replica]
        ask = self.asks[replica]
        self.voted -= ask.vote
        ask.vote = ask.wanted = ask.heard = False
        ask.holder = NIL

    def votes(self) -> int:
        if not self.lease:
            return NonE2E.votes(self)
        return len([lease for lease in self.leases.values() if lease.until > self.now])

    def all_heard(self) -> bool:
        """And has every vote that was offered been confirmed? Who has asked twice waits for the silent no longer."""
        for replica in self.leases:
            if not self.asks[replica].vote:
                return False
        return NonE2E.all_heard(self) or (self.lease > 0 and self.delay > self.terms.retry)

    def enter_cs(self, slot: int, fence: int) -> None:
        NonE2E.enter_cs(self, slot, fence)
        if self.inside and self.lease:
            self.watch()

    def watch(self) -> None:
        """The permit is good as long as a quorum of votes is."""
        if self.votes() < self.terms.quorum:
            self.lose("votes were gone")
            return
        ends = sorted([lease.until for lease in self.leases.values()], reverse=True)
        self.set_timer("lease", ends[self.terms.quorum - 1] - self.now)

    def lose(self, why: str) -> None:
        """Nobody is told: the time until the replicas' own leases are over is for whoever was inside to stop."""
        self.forget()
        self.lose_cs(why)

    def forget(self) -> None:
        NonE2E.forget(self)
        self.leases = {}
        self.cancel_timer("ping")
        self.cancel_timer("lease")

    def give_vote_back(self, replica: int, ask: Ask) -> None:
        self.leases.pop(replica, None)
        NonE2E.give_vote_back(self, replica, ask)

    # The replica: what it votes for is leased, and it can move.

    def replica(self, number: int) -> Replica:
        if self.lease and self.wait and number not in self.replicas:
            self.set_timer(f"{WAIT}{number}", self.hold)
        return NonE2E.replica(self, number)

    def is_waiting(self, number: int) -> bool:
        return self.is_armed(f"{WAIT}{number}")

    def vote(self, number: int, replica: Replica) -> None:
        if replica.owner:
            NonE2E.vote(self, number, replica)
            return
        self.cancel_timer(f"{VOTE}{number}")
        if self.is_waiting(number):
            return
        if self.crashed:
            replica.queue = self.of_the_living(replica.queue)
        NonE2E.vote(self, number, replica)
        if replica.owner and self.lease:
            self.set_timer(f"{VOTE}{number}", self.hold)

    def deliver(self, src: int, msg: Keyed) -> None:
        if isinstance(msg, Ping):
            self.on_ping(msg)
        elif isinstance(msg, HandOver):
            self.on_handover(msg)
        else:
            NonE2E.deliver(self, src, msg)

    def on_request(self, src: int, m: Request) -> None:
        """A YIELD may be lost with a node on its way: the next attempt says as much. Or a RELEASE: ask the owner."""
        replica = self.replica(m.replica)
        if replica.owner and self.follows(m.asked, replica.owner):
            self.out.note("an attempt followed another without a YIELD")
            replica.owner = ()
        NonE2E.on_request(self, src, m)
        if m.past and replica.owner and replica.owner != m.asked:
            self.tell_owner(m.replica, replica)

    def follows(self, asked: Asked, before: Asked) -> bool:
        """Is this a later attempt of the same request?"""
        return asked[:2] == before[:2] and asked > before and asked[2] >> LIFE == before[2] >> LIFE

    def on_ping(self, m: Ping) -> None:
        replica = self.replicas.get(m.replica)
        held = replica is not None and replica.owner == (m.ts, m.node, m.attempt)
        if held:
            self.set_timer(f"{VOTE}{m.replica}", self.hold)
        self.out.send(m.node, Ack(self.gate, m.replica, m.ts, m.attempt, m.n, held))

    def on_range(self, start: int, end: int) -> None:
        for number in sorted(self.replicas):
            if not is_between(self.keys[number], start, end):
                self.hand_over(number)
        NonE2E.on_range(self, start, end)

    def give_replica(self, i: int) -> Key:
        waits = self.is_waiting(i)
        self.cancel_timer(f"{VOTE}{i}")
        self.cancel_timer(f"{WAIT}{i}")
        return (NonE2E.give_replica(self, i), waits)

    def take_replica(self, i: int, state: Key) -> None:
        """Its leases begin anew: the safe side."""
        replica, waits = state
        NonE2E.take_replica(self, i, replica)
        if waits:
            self.set_timer(f"{WAIT}{i}", self.hold)
        if self.replicas[i].owner and self.lease:
            self.set_timer(f"{VOTE}{i}", self.hold)

    def hand_over(self, number: int) -> None:
        replica = self.replicas.pop(number)
        self.cancel_timer(f"{VOTE}{number}")
        self.cancel_timer(f"{WAIT}{number}")
        if replica.owner or replica.queue:
            self.out.note("a replica moved")
            self.door.route(HandOver(self.gate, self.keys[number], number, replica.owner, tuple(replica.queue)))

    def on_handover(self, m: HandOver) -> None:
        """What was decided here meanwhile stands, even if it was a RELEASE that was faster."""
        is_new = m.replica not in self.replicas
        replica = self.replica(m.replica)
        if m.owner and not replica.owner and (is_new or self.is_waiting(m.replica)):
            replica.owner = m.owner
            if self.lease:
                self.set_timer(f"{VOTE}{m.replica}", self.hold)  # longer than it had: the safe side
        replica.queue = merged(replica.queue, m.queue)
        self.vote(m.replica, replica)

    # On the way.

    def pass_request(self, src: int, m: Request, next_hop: int) -> Keyed | None:
        return None if m.node in self.crashed else NonE2E.pass_request(self, src, m, next_hop)

    def make_entry(self, entry: Entry) -> None:
        NonE2E.make_entry(self, entry)
        if self.lease:
            self.set_timer(f"{ENTRY}{entry.replica}", self.hold)

    def drop_entry(self, replica: int) -> None:
        NonE2E.drop_entry(self, replica)
        self.cancel_timer(f"{ENTRY}{replica}")

    def keep(self, onward: Gathering, next_hop: int) -> Gathering:
        """EE:F3 An alive predecessor of the replica can rebuild its queue."""
        if not self.lease or not onward.queue:
            return onward
        kept = Kept(onward, onward.keeper, next_hop, TRIES)
        self.kept[onward.replica, onward.ts, onward.node, onward.attempt] = kept
        self.set_timer("keep", self.lease // 3)
        return onward.with_queue(onward.queue, self.me)

    def on_gathering(self, src: int, m: Gathering) -> None:
        NonE2E.on_gathering(self, src, m)
        if m.keeper != NIL:
            self.out.send(m.keeper, Taken(self.gate, m.replica, m.ts, m.node, m.attempt))

    def on_taken(self, m: Taken) -> None:
        kept = self.kept.pop((m.replica, m.ts, m.node, m.attempt), None)
        if kept is not None and kept.before != NIL:
            self.out.send(kept.before, m)

    def pass_kept_again(self, crashed: int) -> None:
        """To whoever owns the key now. `crashed`: only what went to this node; NIL: all."""
        for key in sorted(self.kept):
            kept = self.kept[key]
            if crashed in (NIL, kept.next):
                self.out.note("what a RELEASE had gathered was sent again")
                self.door.route(kept.msg.with_queue(kept.msg.queue, self.me))
                kept.tries -= 1
                if kept.tries == 0:
                    del self.kept[key]
        if self.kept:
            self.set_timer("keep", self.lease // 3)

    # A peer has crashed.

    def on_crash(self, peer: int) -> None:
        self.crashed.add(peer)
        if self.requesting_cs and not self.inside:
            self.wait_for_votes()
        for number in sorted(self.replicas):
            replica = self.replicas[number]
            if replica.owner and replica.owner[1] == peer:
                self.out.note("the owner crashed")
                replica.owner = ()
                self.vote(number, replica)
        for number, entry in in_order(self.first):
            self.mend(number, entry, peer)
        self.pass_kept_again(peer)

    def on_trust(self, peer: int, detector: str) -> None:
        """It is back, and remembers nothing."""
        self.crashed.discard(peer)

    def of_the_living(self, queue: list[Asked]) -> list[Asked]:
        return [asked for asked in queue if asked[1] not in self.crashed]

    def mend(self, number: int, entry: Entry, peer: int) -> None:
        entry.queue = self.of_the_living(entry.queue or [])
        ts, node, attempt = entry.holder
        if node == peer:
            self.dissolve(number, entry, False)
        elif entry.next == peer:
            self.out.note("a request was routed anew")
            self.route_again(number, entry.holder, False)  # EE:F1
        elif entry.previous == peer:
            self.out.note("a path was cleaned up")
            self.door.route(CleanUp(self.gate, self.keys[number], number, ts, node, attempt, (), NIL))  # EE:F2

    # The state, whole.

    def key(self) -> Key:
        return (
            self.version,
            NonE2E.key(self),
            tuple([(replica, *lease.key(self.now)) for replica, lease in sorted(self.leases.items())]),
            self.pings,
            tuple(sorted(self.crashed)),
            tuple([(kept.msg.key(), kept.before, kept.next, kept.tries) for _, kept in sorted(self.kept.items())]),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        _, plain, leases, self.pings, crashed, kept = key
        NonE2E.load(self, tuple(plain))
        for replica, at, questions, left in leases:
            lease = self.leases[replica] = Lease(at, self.now + left)
            lease.questions = {n: self.now + ago for n, ago in questions}
        self.crashed = set(crashed)
        for fields, before, next_hop, tries in kept:
            msg = decode(tuple(fields))
            assert isinstance(msg, Gathering)
            self.kept[msg.replica, msg.ts, msg.node, msg.attempt] = Kept(msg, before, next_hop, tries)

    def show(self) -> dict[str, Any]:
        leases = {replica: lease.key(self.now) for replica, lease in sorted(self.leases.items())}
        return {**NonE2E.show(self), "leases": leases, "kept": sorted(self.kept)}
