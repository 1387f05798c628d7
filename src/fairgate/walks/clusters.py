"""Whole clusters under faults, a seed each: agreed rosters, leases and a gate above them, as live peers have them.

First everything fails that can: peers crash, pause, join and leave, the network loses, doubles and delays messages and
is cut in all ways, and clocks drift. Throughout:

- never more than k users are inside. Those of paused and crashed peers count until their leases are over, and so do
  users that were told to stop because their peer is about to lose its lease, or was excluded;
- the fences of each slot rise, also if no peer had a seat in between, and nobody is inside without a lease, or with a
  permit from before a gap in the lease;
- there is one sequence of rosters, and no honest message makes a seat fail.

Then nothing fails any more. If a majority of the voters has survived, k users must get in at the same time (if the
protocol lets a request have any free slot), and every user once. At last all peers leave at once, and none of them may
wait in vain for an answer. A breach raises Violation.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.live.ticket import INSIDE, WAITING, Ticket
from fairgate.recovery.agreed import Value
from fairgate.recovery.roster import Members, Newcomer, PeerRecord, Sit, as_key, members_of
from fairgate.registry import PROTOCOLS
from fairgate.scenario.manual import Violation
from fairgate.walks.cluster_peer import GATE, REAL, Parts, SimulatedPeer, User
from fairgate.walks.rosters import DRIFT, LEASE, OPTIONS, History
from fairgate.walks.unreliable import FAST, MILLION, SLOW, Unreliable

RUNNING = ("one_line", "bv95", "centralised", "fair_k", "naimi_trehel", "raymond")
K_QUEUES = ("bv95", "fair_k")  # a request waits for one slot, even if others are free
TIMES = {**OPTIONS, "period": LEASE // 5}
STORM = 4 * LEASE
LONGEST_CALM = 16 * LEASE
LONGEST_LEAVE = LEASE  # until all peers have left
RESEND = LEASE // 10  # a message between gates that was lost is repeated after this time
JOIN_TIMEOUT = 2 * LEASE
FAULT_CLOCK = -1  # the faults' place in the queue of events
NOBODY = 0  # no peer has this id
MOST_PEERS = 12
TROUBLES = (*("pause", "cut", "heal", "crash") * 2, "join", "leave")

Letter = tuple[int, int, Message]  # receiving seat, sending seat, message


class Links:
    """The reliable channels between peers: each message arrives once and in order, unless its sender dies or gives up.

    What a sender has not got across by then may have been on its way, or not."""

    def __init__(self, walk: ClusterWalk) -> None:
        self.walk = walk
        self.queues: dict[tuple[int, int], deque[Letter]] = {}

    def send(self, src: int, dst: int, letter: Letter) -> None:
        queue = self.queues.setdefault((src, dst), deque())
        queue.append(letter)
        if len(queue) == 1:
            self.walk.push(self.walk.rng.randint(FAST, SLOW), dst, "letter", (src,))

    def arrive(self, src: int, dst: int) -> Letter | None:
        queue = self.queues.get((src, dst))
        if not queue:
            return None
        walk = self.walk
        lost = (src, dst) in walk.cuts or walk.rng.random() < walk.loss
        letter = None if lost else queue.popleft()
        if queue:
            walk.push(RESEND if lost else walk.rng.randint(FAST, SLOW // 4), dst, "letter", (src,))
        return letter

    def only(self, src: int, members: set[int]) -> None:
        """The sender sends to nobody else any more."""
        for (sender, dst), queue in self.queues.items():
            if sender == src and dst not in members:
                for _ in range(self.walk.rng.randint(0, len(queue))):
                    queue.pop()


class ClusterWalk(Unreliable):
    def __init__(self, seed: int, parts: Parts = REAL) -> None:
        super().__init__(seed, DRIFT)
        rng = self.rng
        self.parts = parts
        self.seen: Counter[str] = Counter()
        self.links = Links(self)
        self.broken = ""  # what must not happen, found in the middle of a step
        self.protocol = rng.choice(RUNNING)
        self.k = rng.randint(1, 4) if PROTOCOLS[self.protocol].about.many else 1
        self.seen[self.protocol] += 1
        self.rests = seed % 3 == 1  # gates give up their seats now and then
        self.troubles = rng.randint(2, 14)
        self.storm = True
        self.was_full = False  # since the storm, as many as possible were inside at the same time
        self.fences: dict[int, int] = {}  # slot -> the last fence
        self.peers: dict[int, SimulatedPeer] = {}  # by all ids that they ever had
        self.found(rng.randint(3, MOST_PEERS))

    def found(self, n: int) -> None:
        """The first peers found the cluster together."""
        founders = tuple(range(1, n + 1))
        voters = min(7, n - 1 + n % 2)
        self.setup = Setup(founders, options={**TIMES, "voters": founders[:voters]})
        records = tuple([PeerRecord(me, f"host{me}:7400", f"key{me}", standing=True) for me in founders])
        self.first = Members("swarm", LEASE, DRIFT, 0, records)
        for me in founders:
            self.appear(SimulatedPeer(self, self.rng.randint(1, 2), True), me)
        first = self.peers[1].views.value
        self.history = History(first)
        self.rosters = {1: members_of(first[4])}
        for me in founders:
            self.do(me, "on_start")
            self.step(self.peers[me], self.peers[me].adopted, 1, first)
        self.push(self.rng.randint(0, LEASE), FAULT_CLOCK, "trouble", ())

    def processes(self) -> list[SimulatedPeer]:
        """Each peer once, whatever its id is now."""
        return list(dict.fromkeys(self.peers.values()))

    def working(self) -> list[SimulatedPeer]:
        return [peer for peer in self.processes() if not peer.has_crashed and not peer.is_leaving]

    # Peers come and get new ids.

    def appear(self, peer: SimulatedPeer, me: int) -> None:
        old = peer.me
        peer.becomes(me)
        self.peers[me] = peer
        setup = self.setup if me in self.setup.members else Setup((NOBODY,), options=TIMES)
        self.add(me, lambda out: self.parts.views(me, setup, out, peer.book, peer))
        if old in self.clocks:
            self.clocks[me] = self.clocks[old]
        peer.views = self.nodes[me]  # type: ignore[assignment]  # a mutant's class is another
        for i in range(len(peer.users)):
            self.push(self.rng.randint(0, LEASE // 5), me, "user", (i,))
        self.push(self.rng.randint(0, LEASE // 2), me, "search", ())
        if self.rests:
            self.push(self.rng.randint(0, LEASE), me, "rest", ())

    def join(self, peer: SimulatedPeer, me: int, seats: int) -> None:
        """A new id, which asks one of the members that it can reach for admission."""
        self.appear(peer, me)
        self.do(me, "on_start")
        peer.views.standing = peer.standing
        sits = (Sit(GATE, self.k, self.protocol, seats),) if seats else ()
        peer.views.about_me = as_key(Newcomer(peer.record(), sits))
        self.ask_to_join(peer)

    def ask_to_join(self, peer: SimulatedPeer) -> None:
        contacts = [other.me for other in self.reachable(peer) if other.member]
        if contacts:
            self.do(peer.me, "on_join", self.rng.choice(contacts))

    def reachable(self, peer: SimulatedPeer) -> list[SimulatedPeer]:
        me = peer.me
        cut = {one for link in self.cuts if me in link for one in link}
        there = [other for other in self.processes() if other.me not in (*cut, *self.stopped)]
        return [other for other in there if other is not peer and not other.ended]

    def again(self, peer: SimulatedPeer, why: str) -> None:
        """Its old id is void."""
        old, new = peer.me, len(self.peers) + 1
        self.stop(old)
        self.seen["new ids"] += 1
        peer.local.clear()
        self.join(peer, new, 0)
        self.step(peer, peer.gate.start_again, why)

    def search(self, peer: SimulatedPeer) -> None:
        """As live peers: try again to join, and look whether the cluster has gone on without this peer."""
        self.push(LEASE // 2, peer.me, "search", ())
        if peer.ended or peer.is_leaving:
            return
        if not peer.member:
            if self.now - peer.asked_to_join > JOIN_TIMEOUT or peer.views.contact == NIL:
                self.again(peer, "it could not join")
        elif not peer.views.has_lease():
            ours = self.rosters[peer.views.at].epoch
            for other in self.reachable(peer):
                theirs = self.rosters[other.views.at] if other.member else self.first
                if theirs.epoch > ours and theirs.peer(peer.me) is None:
                    self.step(peer, peer.excluded, "the cluster went on without this peer")
                    return

    # Steps.

    def push_local(self, delay: int, me: int, event: str, arguments: Any) -> None:
        """After a delay on the peer's own clock."""
        self.push(-(-delay * MILLION // self.clocks[me][0]), me, event, arguments)

    def moment(self) -> int:
        """What another thread of the same peer takes to notice something."""
        return self.rng.randint(0, SLOW // 10)

    def do(self, me: int, call: str, *arguments: Any) -> None:
        peer = self.peers[me]
        if me not in self.stopped and not peer.ended:
            self.step(peer, getattr(peer.views, call), *arguments)

    def step(self, peer: SimulatedPeer, call: Callable[..., Any], *arguments: Any) -> None:
        with peer.step():
            call(*arguments)

    def happen(self, me: int, event: str, arguments: Any) -> None:
        if me == FAULT_CLOCK:
            self.trouble()
            return
        peer = self.peers[me]
        if event == "letter":
            self.letter(peer, *arguments)
        elif event == "user":
            self.user(peer, *arguments)
        elif event == "search":
            self.search(peer)
        elif event == "ask":
            self.seen["asked another"] += 1
            self.ask_to_join(peer)
        elif event == "again":
            self.again(peer, *arguments)
        elif event == "call":
            arguments[0]()
        elif event == "sit":
            self.step(peer, peer.sit_now)
        elif event == "rest":
            self.push(self.rng.randint(0, 2 * LEASE), me, "rest", ())
            self.step(peer, peer.rest)
        elif event == "rested":
            self.step(peer, peer.rested, *arguments)
        elif event == "census":
            self.step(peer, peer.tell_census)
        elif event == "part":
            self.step(peer, peer.leave_cluster)
        else:
            super().happen(me, event, arguments)

    def letter(self, peer: SimulatedPeer, src: int) -> None:
        found = self.links.arrive(src, peer.me)
        if found is not None:
            self.seen["messages"] += 1
            self.step(peer, peer.gate.on_message, *found)

    def user(self, peer: SimulatedPeer, i: int) -> None:
        user = peer.users[i]
        state = user.ticket.state
        if peer.is_leaving:
            return
        self.push(self.rng.randint(FAST, LEASE // 5), peer.me, "user", (i,))
        if state == INSIDE and (self.storm or self.was_full):
            user.done = not self.storm
            self.step(peer, peer.gate.release, user.ticket)
        elif state == WAITING and self.storm and self.rng.random() < 0.05:
            self.seen["cancelled"] += 1
            self.step(peer, peer.gate.release, user.ticket)
        elif state not in (INSIDE, WAITING) and not user.done:
            self.step(peer, peer.ask, user)

    # What is judged.

    def break_off(self, what: str) -> None:
        """A breach that was found where an exception could be caught by the code that is judged."""
        self.broken = self.broken or what

    def learned(self, at: int, value: Value) -> Members:
        if self.history.learned(at, value):
            self.seen["versions"] += 1
            self.rosters[at] = members_of(value[4])
            self.seen["forgotten gates"] += bool(self.rosters[at - 1].gates) and not self.rosters[at].gates
        return self.rosters[at]

    def stepped(self, me: int) -> None:
        if self.broken:
            raise Violation(self.broken)
        peer = self.peers[me]
        for ticket in peer.inside():
            if ticket.entered < peer.regained:
                raise Violation(f"lease: a permit of peer {me} is valid again after a gap in its lease")
        if peer.may_stop():
            self.seen["left"] += 1
            self.stop(me)

    def holders(self) -> list[tuple[SimulatedPeer, Ticket]]:
        return [(peer, ticket) for peer in self.processes() for ticket in peer.may_be_inside()]

    def entered(self, peer: SimulatedPeer, ticket: Ticket) -> None:
        self.seen["grants"] += 1
        holders = self.holders()
        found = sorted([(one.me, held.slot, held.fence) for one, held in holders])
        if ticket not in [held for _, held in holders] or not peer.traffic.has_lease():
            self.break_off(f"lease: a user of peer {peer.me} was let in without one")
        elif len(found) > self.k or (ticket.slot != NIL and len({slot for _, slot, _ in found}) < len(found)):
            self.break_off(f"exclusion: peers, slots and fences inside are {found}, with k={self.k}")
        elif ticket.slot != NIL and ticket.fence <= self.fences.get(ticket.slot, 0):
            self.break_off(f"fences: {ticket.fence} after {self.fences[ticket.slot]} in slot {ticket.slot}")
        self.fences[ticket.slot] = ticket.fence

    # Troubles.

    def trouble(self) -> None:
        self.troubles -= 1
        if self.storm and self.troubles:
            self.push(self.rng.randint(0, 2 * STORM // (self.troubles + 1)), FAULT_CLOCK, "trouble", ())
        if self.storm and self.working():
            peer = self.rng.choice(self.working())
            getattr(self, f"do_{self.rng.choice(TROUBLES)}")(peer)

    def do_pause(self, peer: SimulatedPeer) -> None:
        self.seen["pause"] += 1
        self.paused[peer.me] = self.now + self.rng.randint(0, 2 * LEASE)

    def do_cut(self, peer: SimulatedPeer) -> None:
        links = self.random_cut()
        both = all((dst, src) in links for src, dst in links)
        self.seen["one-way cut" if not both else "full cut" if len(links) > 2 else "partial cut"] += 1
        self.cut(links)

    def do_heal(self, peer: SimulatedPeer) -> None:
        self.seen["heal"] += bool(self.cuts)
        self.cut(set())

    def do_crash(self, peer: SimulatedPeer) -> None:
        """Mostly so that a majority of the voters is left."""
        voters = self.history.last[1]
        left = [one for one in voters if one not in self.stopped and one != peer.me]
        if len(left) > len(voters) // 2 or self.rng.random() < 0.03:
            self.seen["crash"] += 1
            peer.has_crashed = True
            self.stop(peer.me)

    def stop(self, me: int) -> None:
        super().stop(me)
        self.links.only(me, set())

    def do_join(self, contact: SimulatedPeer) -> None:
        if len(self.working()) < MOST_PEERS:
            self.seen["join"] += 1
            peer = SimulatedPeer(self, self.rng.randint(1, 2), self.rng.random() < 0.8)
            self.join(peer, len(self.peers) + 1, self.rng.randint(0, 2))

    def do_leave(self, peer: SimulatedPeer) -> None:
        if peer.member and not peer.ended and self.history.last[1] != (peer.me,):
            self.seen["leave"] += 1
            self.step(peer, peer.leave)

    # A whole walk.

    def whole(self) -> None:
        self.run(STORM)
        self.storm = False
        self.was_full = self.protocol in K_QUEUES
        self.calm_down()
        if self.serve_all():
            self.leave_at_once()

    def serve_all(self) -> bool:
        """False if that cannot be: no majority has survived."""
        while self.now < STORM + LONGEST_CALM:
            if not self.has_majority():
                self.seen["no majority"] += 1
                return False
            if all(user.done for _, user in self.waited_for()):
                self.seen["calm leases"] += (self.now - STORM) // LEASE
                return True
            self.was_full = self.was_full or len(self.holders()) >= min(self.k, len(self.waited_for()))
            self.run(self.now + LEASE // 4)
        raise Violation(self.what_is_missing())

    def leave_at_once(self) -> None:
        going = self.working()
        gap = self.rng.choice((0, FAST, SLOW))
        self.rng.shuffle(going)
        for peer in going:
            self.run(self.now + self.rng.randint(0, gap))
            if peer.member and not peer.ended:
                self.step(peer, peer.leave)
            else:
                peer.is_leaving = True
                self.stop(peer.me)
        self.run(self.now + LONGEST_LEAVE)
        left = [peer.me for peer in going if peer.me not in self.stopped]
        if left:
            raise Violation(f"leaving: peers {left} of {len(going)} wait in vain: {self.history.last[:4]}")

    def waited_for(self) -> list[tuple[SimulatedPeer, User]]:
        return [(peer, user) for peer in self.working() for user in peer.users]

    def has_majority(self) -> bool:
        """Can the living go on?"""
        voters = self.history.voters_known_to([self.peers[me].views for me in self.alive()])
        return len(self.stopped.intersection(voters)) * 2 < len(voters)

    def what_is_missing(self) -> str:
        found = sorted([(one.me, held.slot, held.fence) for one, held in self.holders()])
        users = sorted([(peer.me, user.ticket.state) for peer, user in self.waited_for() if not user.done])
        what = "liveness" if self.was_full else "slots"
        return f"{what}: k={self.k}, inside are {found}, not served are {users}: {self.history.last[:4]}"


def cluster_walks(seeds: range | list[int], parts: Parts = REAL) -> Counter[str]:
    """Run one walk per seed; returns how often what happened. A Violation names the seed."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        walk = ClusterWalk(seed, parts)
        try:
            walk.whole()
        except Violation as broken:
            raise Violation(f"{broken} [{walk.protocol}, seed {seed}]") from broken
        seen.update(walk.seen)
    return seen
