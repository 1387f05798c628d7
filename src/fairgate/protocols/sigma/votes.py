"""What the strawman and Sigma share: replicas with one vote each, and what a client knows of them (SG sections II-III).

Theory of operation. A gate has n replicas. They are names on the circle of keys; whoever owns the key of a name plays
the replica. A replica votes for one request at a time, its owner. A client that has m votes is inside. Two winners need
2m votes of n replicas: one of them would have had to vote twice, which only a replica that lost its memory does.

All that has to hold while messages are lost, doubled and overtaken, so everything has a number:

- A request is (client, life, ts). `ts` is a Lamport clock's, `life` a number drawn by a node that knows nothing yet: a
  node that lost its memory is never taken for what it was before.
- A RESPONSE has its replica's incarnation `inc` (the life of the node that plays it) and a number `seq`, by which late
  ones are dropped. `grant` is the number of the vote: that of the RESPONSE that first told of it; 0 if the vote is
  somebody else's.
- A vote is lent (`lease`, 0: for good). The replica counts from the moment it votes, and a little longer, by what
  clocks may run apart (`drift`); the client from the moment it asked. No clock is compared with another one: a REQUEST
  says its `age`, how long after the start of the request it was sent, and the RESPONSE says it again. Asking again
  renews.

A client's record of a replica (`Resp`) keeps the node that plays it: later messages are sent there, and routed on from
there if it is no longer the owner of the key. If an answer fails to come, the replica is looked up again.

`voting` = "zones" is SG section VII: every member votes, with its share of the circle, and m/n of the circle wins.
"""

from fairgate.core.declare import Fixed, Id, Moment, Place, message, record
from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_count, replica_keys
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import clockwise, place_of
from fairgate.core.node import Record
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER

ZONE_BITS = 24  # shares of the circle are counted without so many of their last bits, so that sums stay below 2^63


@message("sg.request")
class Request(Keyed):
    """REQUEST(R[i], id, timestamp): vote for me."""

    i: int
    client: Id
    life: int
    ts: int
    age: int


@message("sg.release")
class Release(Keyed):
    """RELEASE(R[i], id): this request needs your vote no more, whether it has it or not."""

    i: int
    client: Id
    life: int
    ts: int


@message("sg.yield")
class Yield(Keyed):
    """YIELD(R[i], id): RELEASE and REQUEST in one, of the vote `grant` of the incarnation `inc`."""

    i: int
    client: Id
    life: int
    ts: int
    inc: int
    grant: int


@message("sg.response")
class Response(Keyed):
    """RESPONSE(R[i], owner, timestamp), to the request (client, life, ts)."""

    i: int
    client: Id
    life: int
    ts: int
    age: int  # of the last question that the replica had from this request
    node: Id  # who plays the replica
    inc: int
    seq: int
    grant: int
    owner: Id
    owner_ts: int
    clock: int  # the replica's: the latest timestamp it has seen
    wait: int  # Tw: ask again after that time
    wanted: bool  # somebody with an earlier request waits for this vote of yours


@record
class Resp(Record):
    """resp[i]: what a client knows of replica i. Only the node outlives a request: `clear` forgets the rest."""

    i: int
    node: Id  # who played the replica last; NIL: not known
    key: Fixed[Place] = 0  # the ballot's
    weight: Fixed[int] = 0
    inc: int = NIL
    seq: int = 0  # of the last RESPONSE that counted; 0: none has come
    age: int = NIL  # of the last question that was answered
    owner: Id = NIL  # NIL: not known
    owner_ts: int = NIL
    grant: int = 0  # the vote that we have
    until: Moment = NEVER  # when its lease is over
    due: Moment = NEVER  # when to look at this replica again
    silent: bool = False  # did it leave our last question unanswered, so far?
    yielded: int = 0  # the last vote that we gave back (Sigma)
    wanted: bool = False  # does an earlier request wait for our vote? (Sigma)
    hold: Moment = NEVER  # until when a vote that came straight back is kept (Sigma)
    delay: int = 0  # and for how long that is (Sigma)


@record
class Waiter:
    """A request in a replica's queue."""

    ts: int
    client: Id
    life: int
    age: int

    def is_before(self, ts: int, client: Id) -> bool:
        return self.ts < ts or (self.ts == ts and self.client < client)


@record
class Replica(Record):
    """A replica's state, in SG's names, and of its owner's request besides `life`, `age` and the vote's number.

    The strawman's has no queue. Of one client at most one request is in the queue: `waiting` finds it.
    """

    i: int
    Cowner: Id = NIL
    Towner: int = NIL
    life: int = NIL
    age: int = NIL
    grant: int = 0
    until: Moment = NEVER  # when the owner's lease is over
    Queue: list[Waiter] = []  # by timestamp and client
    waiting: Fixed[dict[int, Waiter]] = {}
    Tcs: int = 0  # SG section IV: the average time from release to release; 0: not known yet
    busy_since: Moment = NEVER  # the last release, or the vote that followed a time without an owner

    def complete(self) -> None:
        w: Waiter
        for w in self.Queue:
            self.waiting[w.client] = w

    def place(self, ts: int, client: Id) -> int:
        """Where such a request stands in the queue, or would: mostly at the end, as its timestamp is the latest."""
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
        self.waiting.pop(w.client, None)  # gone already if it was there twice, as in the literal Sigma


@record
class Ballot:
    """Who votes, with what weight, and how much of it all is needed: the same for all nodes of a gate."""

    keys: tuple[Place, ...]
    weights: tuple[int, ...]
    whole: int
    needed: int


def ballot_of(setup: Setup) -> Ballot:
    """The one ballot of all nodes of this setup."""
    ballot: Ballot | None = setup.shared.get("ballot")
    if ballot is None:
        ballot = setup.shared["ballot"] = make_ballot(setup)
    return ballot


def make_ballot(setup: Setup) -> Ballot:
    """Raises ValueError where so many votes would not let k in."""
    n = replica_count(setup)
    m: int = setup.options.get("quorum", n // (setup.k + 1) + 1)
    if setup.options.get("voting", "replicas") == "zones":
        keys, weights = zones(setup.members)
    else:
        keys, weights = replica_keys(setup), (1,) * n
    whole = sum(weights)
    needed = -(-whole * m // n)  # m/n of it, rounded up
    if not 1 <= m <= n or whole // needed != setup.k:
        raise ValueError(
            f"{m} of {n} votes let {n // max(m, 1)} in, and k is {setup.k}: choose other replicas or quorum"
        )
    return Ballot(keys, weights, whole, needed)


def zones(members: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """SG section VII: each member, found at its own place, with its share of the circle: from its predecessor on."""
    places = sorted([place_of(member) for member in members])
    if len(places) == 1:
        return tuple(places), (1,)
    before = [places[len(places) - 1], *places]
    shares = [clockwise(start, end) >> ZONE_BITS for start, end in zip(before, places, strict=False)]
    return tuple(places), tuple(shares)
