"""Messages and records of the strawman and Sigma: replicas with one vote each (SG sections II-III).

Theory of operation. A gate has n replicas. They are names on the circle of keys; the node that owns the key of a name
serves that replica. A replica votes for one request at a time; that client is its owner. A client with m votes is
inside. Two winners would need 2m votes of n replicas, so some replica would have voted twice. That only happens if a
replica loses its memory.

This must hold while messages are lost, duplicated and reordered, so everything is numbered:

- A request is (client, life, ts). `ts` is a Lamport timestamp. `life` is a random number that a node draws when it has
  no memory yet, so a node that lost its memory is not mistaken for its former self.
- A RESPONSE carries the replica's incarnation `inc` (the life of the node that serves it) and a number `seq`, by which
  late ones are recognised and dropped. `grant` is the number of the vote: the `seq` of the RESPONSE that first
  announced it, or 0 if the vote is not the receiver's.
- A vote is lent for the time `lease` (0: without limit). The replica counts it from the moment it votes, plus a margin
  for clock drift (`drift`). Clock readings are never compared: a REQUEST contains its `age`, the time from the start of
  the request until it was sent. The RESPONSE repeats the age, and says how long the question had waited at the replica
  when it voted (`late`, less the drift). The client counts the lease from the end of that wait. Asking again renews the
  lease.

A client's record of a replica (`Resp`) contains the node that serves it. Later messages are sent directly to that node,
which routes them on if it no longer owns the key. If no answer arrives, the replica is looked up again by routing.

In zones.py every member votes, with the weight of its share of the circle, and m/n of the circle wins.
"""

from fairgate.core.declare import Fixed, Id, Moment, Place, message, record
from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_count, replica_keys
from fairgate.core.keyed import Keyed
from fairgate.core.node import Record
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER


@message("sg.request")
class Request(Keyed):
    """REQUEST(R[i], id, timestamp): the client asks replica i for its vote."""

    i: int
    client: Id
    life: int
    ts: int
    age: int
    probe: bool  # may this question be answered without queueing it, because a later one follows? (Sigma)


@message("sg.release")
class Release(Keyed):
    """RELEASE(R[i], id): the request no longer needs the vote of replica i, whether it has it or not."""

    i: int
    client: Id
    life: int
    ts: int


@message("sg.yield")
class Yield(Keyed):
    """YIELD(R[i], id): RELEASE and REQUEST in one, for the vote `grant` of the incarnation `inc`."""

    i: int
    client: Id
    life: int
    ts: int
    inc: int
    grant: int


@message("sg.response")
class Response(Keyed):
    """RESPONSE(R[i], owner, timestamp): replica i's answer to the request (client, life, ts)."""

    i: int
    client: Id
    life: int
    ts: int
    age: int  # of the latest question that the replica received from this request
    node: Id  # the node that serves the replica
    inc: int
    seq: int
    grant: int
    owner: Id
    owner_ts: int
    clock: int  # the replica's clock: the latest timestamp it has seen
    wait: int  # Tw: ask again after this time
    wanted: bool  # is an earlier request waiting for this vote?
    late: int  # how long at least, on the client's clock, the question had waited when the vote was lent


@record
class Resp(Record):
    """resp[i]: what a client knows about replica i. `clear` resets what belongs to one request."""

    i: int
    node: Id  # the node that last served the replica; NIL: not known
    over_ts: int  # timestamp of the last request, if this replica had answered its last question; otherwise NIL
    key: Fixed[Place] = 0  # from the ballot
    weight: Fixed[int] = 0
    inc: int = NIL
    seq: int = 0  # of the last RESPONSE that was accepted; 0: none yet
    age: int = NIL  # of the last question that was answered
    owner: Id = NIL  # NIL: not known
    owner_ts: int = NIL
    grant: int = 0  # the number of our vote; 0: none
    until: Moment = NEVER  # when its lease ends
    due: Moment = NEVER  # when to look at this replica again
    sent: int = NIL  # age of our last question
    silent: bool = False  # is it still unanswered?
    yielded: int = 0  # number of the last vote that we gave back (Sigma)
    wanted: bool = False  # is an earlier request waiting for our vote? (Sigma)
    hold: Moment = NEVER  # keep a vote that came straight back until then (Sigma)
    delay: int = 0  # how long that is (Sigma)


@record
class Waiter:
    """A request in a replica's queue."""

    ts: int
    client: Id
    life: int
    age: int
    asked: Moment  # when that question arrived, on the replica's clock; NEVER: nothing here depends on time

    def is_before(self, ts: int, client: Id) -> bool:
        return self.ts < ts or (self.ts == ts and self.client < client)


@record
class Replica(Record):
    """A replica's state in SG's names, plus `life` and `age` of its owner's request and the number of its vote.

    In the strawman, the queue stays empty. It contains at most one request per client, which `waiting` finds.
    """

    i: int
    Cowner: Id = NIL
    Towner: int = NIL
    life: int = NIL
    age: int = NIL
    asked: Moment = NEVER  # when the owner's last question arrived
    grant: int = 0
    until: Moment = NEVER  # when the owner's lease ends
    Queue: list[Waiter] = []  # by timestamp and client
    waiting: Fixed[dict[int, Waiter]] = {}
    Tcs: int = 0  # SG section IV: the average time from release to release; 0: not known yet
    busy_since: Moment = NEVER  # time of the last release, or of the first vote after a time without an owner

    def complete(self) -> None:
        w: Waiter
        for w in self.Queue:
            self.waiting[w.client] = w

    def place(self, ts: int, client: Id) -> int:
        """The index of this request in the queue, or where it would be inserted.

        Usually that is the end, because its timestamp is the latest; so the end is tried first.
        """
        w: Waiter
        low: int = 0
        high: int = len(self.Queue)
        middle: int
        if high:
            w = self.Queue[high - 1]
            if w.is_before(ts, client):
                return high
        while low < high:
            middle = (low + high) // 2
            w = self.Queue[middle]
            if w.is_before(ts, client):
                low = middle + 1
            else:
                high = middle
        return low

    def insert(self, w: Waiter) -> None:
        self.Queue.insert(self.place(w.ts, w.client), w)
        self.waiting[w.client] = w

    def remove(self, w: Waiter) -> None:
        self.Queue.pop(self.place(w.ts, w.client))
        self.waiting.pop(w.client, None)  # may be gone already: in SigmaLiteral a client can be in the queue twice


@record
class Ballot:
    """The voters, their weights, and the weight needed to win. All nodes of a gate share one ballot."""

    keys: tuple[Place, ...]
    weights: tuple[int, ...]
    whole: int
    needed: int


def ballot_of(setup: Setup) -> Ballot:
    """The ballot that all nodes of this setup share."""
    ballot: Ballot | None = setup.shared.get("ballot")
    if ballot is None:
        ballot = setup.shared["ballot"] = make_ballot(setup)
    return ballot


def make_ballot(setup: Setup) -> Ballot:
    """Compute the ballot. Raises ValueError if replicas and quorum do not let exactly k in."""
    n = replica_count(setup)
    return Ballot(replica_keys(setup), (1,) * n, n, quorum_of(setup, n))


def quorum_of(setup: Setup, whole: int) -> int:
    """The weight that wins: m/n of the whole weight, rounded up."""
    n = replica_count(setup)
    m: int = setup.options.get("quorum", n // (setup.k + 1) + 1)
    needed = -(-whole * m // n)
    if not 1 <= m <= n or whole // needed != setup.k:
        raise ValueError(
            f"{m} of {n} votes let {n // max(m, 1)} in, but k is {setup.k}: change the number of replicas or the quorum"
        )
    return needed
