"""The other sides of End-to-End under failures: replicas whose votes and holders are promises that expire.

fault_tolerant.py explains what is promised, and why that is safe. This file makes it live. Nobody waits forever for a
replica: a promise that is not renewed expires, and requests that were handed to a vanished holder are taken back.
Replicas agree on the best waiting request, because they go by what each client said last (`keep`, `vote_again`). So
that request eventually gets all votes, and keeps them. A node that lost its memory restarts with earlier stamps, lower
rounds and no rank. If replicas went by the highest values they had ever received, that node would wait for votes that
nobody recalls on its behalf.
"""

from fairgate.core.declare import Fixed, Id, Moment, Option, node
from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.core.queues import put
from fairgate.core.setup import Setup
from fairgate.protocols.e2e.messages import Confirm, HandOver, IAmWinner, Release, Request
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.e2e.replica import Entry, Replica

LEASE = 30_000_000_000  # ns
DRIFT = 10_000  # parts per million
MILLION = 1_000_000
PROMISE, WAIT = "promise:", "wait:"


@node
class Promising(E2E):
    lease: Option[int] = LEASE
    drift: Option[int] = DRIFT
    wait: Option[bool] = False  # does a replica without state wait for one lease before it votes or confirms?
    promise_time: Fixed[int]
    handed: dict[int, list[tuple[int, int, Id, int]]] = {}  # by replica: requests that were handed to the holder
    trusted: dict[int, Moment] = {}  # by replica: until when its entry in the replica list is trusted

    def initialize(self, setup: Setup) -> None:
        E2E.initialize(self, setup)
        self.promise_time = self.lease + (self.lease // MILLION + 1) * self.drift  # lease * (1 + drift), rounded up

    # The replica.

    def replica(self, i: int) -> Replica:
        if self.wait and i not in self.replicas:
            self.set_timer(f"{WAIT}{i}", self.promise_time)
        return E2E.replica(self, i)

    def is_waiting(self, i: int) -> bool:
        """May the replica have made promises that it has forgotten?"""
        return self.is_armed(f"{WAIT}{i}")

    def wait_over(self, i: int) -> None:
        self.serve_waiting(i, self.replica(i))

    def promise(self, i: int) -> None:
        self.set_timer(f"{PROMISE}{i}", self.promise_time)

    def is_promised(self, i: int) -> bool:
        return self.is_armed(f"{PROMISE}{i}")

    def promise_over(self, i: int) -> None:
        self.out.note("a promise ended")
        r: Replica = self.replica(i)
        r.vote = NIL
        self.take_back(i, r)
        self.serve_waiting(i, r)

    def take_back(self, i: int, r: Replica) -> None:
        """Put the requests that were handed to the holder back into the replica's own queue."""
        for rank, stamp, requester, round in self.handed.pop(i, []):
            if requester not in [request[2] for request in r.waiting]:
                self.keep(r, requester, stamp, round, -rank)

    def serve_waiting(self, i: int, r: Replica) -> None:
        if r.waiting and r.holder != NIL and not self.is_promised(i):
            r.holder = NIL
        if r.holder != NIL or not self.is_waiting(i):
            E2E.serve_waiting(self, i, r)

    def hand_over(self, i: int, r: Replica) -> None:
        nodes = [request[2] for request in r.waiting]
        told = [request for request in self.handed.get(i, []) if request[2] not in nodes]
        self.handed[i] = told + r.waiting
        E2E.hand_over(self, i, r)

    def cast(self, i: int, r: Replica) -> None:
        E2E.cast(self, i, r)
        self.promise(i)

    def keep(self, r: Replica, node: int, stamp: int, round: int, known: int) -> None:
        """Keep what each node said last, even with an earlier stamp: the node may have lost its memory.

        If this message was merely late, the node will ask again.
        """
        r.waiting = [request for request in r.waiting if request[2] != node]
        put(r.waiting, (-known, stamp, node, round))

    def vote_again(self, i: int, r: Replica, round: int, known: int) -> None:
        E2E.vote_again(self, i, r, round, known)
        self.promise(i)

    def is_bound(self, i: int, r: Replica, lineage: int) -> bool:
        """Is the replica bound by a promise that excludes an owner of this lineage? While it waits, it may well be."""
        return self.is_waiting(i) or r.vote != NIL or (r.holder != NIL and r.lineage != lineage and self.is_promised(i))

    def on_winner(self, m: IAmWinner) -> None:
        i: int = m.replica
        r: Replica = self.replica(i)
        if not self.is_waiting(i):  # it cannot accept the owner yet, so it must keep a vote that was handed over to it
            self.use_vote(r, m.node, m.stamp)
        known = (r.holder, r.lineage, r.generation) == (m.node, m.lineage, m.generation)
        if self.is_bound(i, r, m.lineage) or not (known or self.is_news(m.generation, r.generation)):
            self.refuse(i, r)
            return
        self.set_holder(i, r, m.node, m.stamp, m.generation, m.lineage)
        self.out.send(m.node, Confirm(self.gate, i, m.lineage, m.generation, m.round))
        self.serve_waiting(i, r)

    def on_release_message(self, m: Release) -> None:
        i: int = m.replica
        r: Replica = self.replica(i)
        self.use_vote(r, m.node, m.stamp)
        if self.is_bound(i, r, m.lineage) or not self.is_news(m.generation + 1, r.generation):
            self.refuse(i, r)
        elif m.heir != NIL:
            self.set_holder(i, r, m.heir, m.heir_stamp, m.generation + 1, m.lineage)
        else:
            r.generation = m.generation
            r.holder = NIL
            self.cancel_timer(f"{PROMISE}{i}")
            self.take_back(i, r)
            self.serve_waiting(i, r)

    def refuse(self, i: int, r: Replica) -> None:
        if r.vote != NIL:
            self.recall(i, r, True)
        else:
            self.serve_waiting(i, r)  # a vote may have been used

    def set_holder(self, i: int, r: Replica, node: int, stamp: int, generation: int, lineage: int) -> None:
        if (r.holder, r.lineage, r.generation) != (node, lineage, generation):
            self.handed.pop(i, None)  # the token carries them to the new holder
            E2E.set_holder(self, i, r, node, stamp, generation, lineage)
        self.promise(i)

    def give_replica(self, i: int) -> Key:
        promised, waits = self.is_promised(i), self.is_waiting(i)
        self.cancel_timer(f"{PROMISE}{i}")
        self.cancel_timer(f"{WAIT}{i}")
        return (E2E.give_replica(self, i), promised, waits, tuple(self.handed.pop(i, [])))

    def take_replica(self, i: int, state: Key) -> None:
        replica, promised, waits, handed = state
        E2E.take_replica(self, i, replica)
        self.handed[i] = list(handed)
        if promised:
            self.promise(i)  # the full time again, which is longer than before, and safe
        if waits:
            self.set_timer(f"{WAIT}{i}", self.promise_time)

    def forget_replica(self, i: int) -> None:
        E2E.forget_replica(self, i)
        self.handed.pop(i, None)  # those requesters will ask again
        self.cancel_timer(f"{PROMISE}{i}")
        self.cancel_timer(f"{WAIT}{i}")

    def on_handover(self, m: HandOver) -> None:
        """Take over the replica's promises as well. If it had waited, the node that had it did not know of all."""
        E2E.on_handover(self, m)
        r: Replica = self.replica(m.replica)
        if r.vote != NIL or r.holder != NIL:
            self.promise(m.replica)

    # Nodes on the path.

    def stops(self, m: Request) -> bool:
        return m.round == 0 and self.trusted.get(m.replica, 0) > self.now

    def note_owner(self, src: int, m: IAmWinner, next_hop: int) -> None:
        entry: Entry | None = self.entries.get(m.replica)
        if (
            entry is None
            or self.is_news(m.generation, entry.generation)
            or (entry.owner == m.node and entry.generation == m.generation)
            or (entry.owner != NIL and self.trusted.get(m.replica, 0) <= self.now)
        ):
            self.entries[m.replica] = Entry(m.node, m.generation, next_hop, src)
            self.trusted[m.replica] = self.now + self.promise_time
