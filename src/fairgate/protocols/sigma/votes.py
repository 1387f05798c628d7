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

from fairgate.core.ids import NIL
from fairgate.core.kbr import replica_count, replica_keys
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import clockwise, place_of
from fairgate.core.message import Key, register
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER

ZONE_BITS = 24  # shares of the circle are counted without so many of their last bits, so that sums stay below 2^63


class Request(Keyed):
    """REQUEST(R[i], id, timestamp): vote for me."""

    __slots__ = ("age", "client", "i", "life", "ts")
    tag = "sg.request"

    def __init__(self, gate: int, target: int, i: int, client: int, life: int, ts: int, age: int) -> None:
        self.gate = gate
        self.target = target
        self.i = i
        self.client = client
        self.life = life
        self.ts = ts
        self.age = age

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.i, self.client, self.life, self.ts, self.age)


class Release(Keyed):
    """RELEASE(R[i], id): this request needs your vote no more, whether it has it or not."""

    __slots__ = ("client", "i", "life", "ts")
    tag = "sg.release"

    def __init__(self, gate: int, target: int, i: int, client: int, life: int, ts: int) -> None:
        self.gate = gate
        self.target = target
        self.i = i
        self.client = client
        self.life = life
        self.ts = ts

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.i, self.client, self.life, self.ts)


class Yield(Keyed):
    """YIELD(R[i], id): RELEASE and REQUEST in one, of the vote `grant` of the incarnation `inc`."""

    __slots__ = ("client", "grant", "i", "inc", "life", "ts")
    tag = "sg.yield"

    def __init__(self, gate: int, target: int, i: int, client: int, life: int, ts: int, inc: int, grant: int) -> None:
        self.gate = gate
        self.target = target
        self.i = i
        self.client = client
        self.life = life
        self.ts = ts
        self.inc = inc
        self.grant = grant

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.i, self.client, self.life, self.ts, self.inc, self.grant)


class Response(Keyed):
    """RESPONSE(R[i], owner, timestamp), to the request (client, life, ts)."""

    __slots__ = (
        "age",
        "client",
        "clock",
        "grant",
        "i",
        "inc",
        "life",
        "node",
        "owner",
        "owner_ts",
        "seq",
        "ts",
        "wait",
        "wanted",
    )
    tag = "sg.response"

    def __init__(
        self,
        gate: int,
        target: int,
        i: int,
        client: int,
        life: int,
        ts: int,
        age: int,
        node: int,
        inc: int,
        seq: int,
        grant: int,
        owner: int,
        owner_ts: int,
        clock: int,
        wait: int,
        wanted: bool,
    ) -> None:
        self.gate = gate
        self.target = target
        self.i = i
        self.client = client
        self.life = life
        self.ts = ts
        self.age = age  # of the last question that the replica had from this request
        self.node = node  # who plays the replica
        self.inc = inc
        self.seq = seq
        self.grant = grant
        self.owner = owner
        self.owner_ts = owner_ts
        self.clock = clock  # the replica's: the latest timestamp it has seen
        self.wait = wait  # Tw: ask again after that time
        self.wanted = wanted  # somebody with an earlier request waits for this vote of yours

    def key(self) -> Key:
        return (
            self.tag,
            self.gate,
            self.target,
            self.i,
            self.client,
            self.life,
            self.ts,
            self.age,
            self.node,
            self.inc,
            self.seq,
            self.grant,
            self.owner,
            self.owner_ts,
            self.clock,
            self.wait,
            self.wanted,
        )


register(Request, Release, Yield, Response)


# Messages, and below what replicas and clients keep, built field by field. `Request(...)` is the same, but compiled it
# boxes its arguments for `__init__` (docs/benchmarks.md).


def new_request(gate: int, target: int, i: int, client: int, life: int, ts: int, age: int) -> Request:
    m = Request.__new__(Request)
    m.gate = gate
    m.target = target
    m.i = i
    m.client = client
    m.life = life
    m.ts = ts
    m.age = age
    return m


def new_release(gate: int, target: int, i: int, client: int, life: int, ts: int) -> Release:
    m = Release.__new__(Release)
    m.gate = gate
    m.target = target
    m.i = i
    m.client = client
    m.life = life
    m.ts = ts
    return m


class Resp:
    """resp[i]: what a client knows of replica i. Only the node outlives a request."""

    def __init__(self, i: int, key: int, weight: int) -> None:
        self.i = i
        self.key = key
        self.weight = weight
        self.node = NIL
        self.clear()

    def clear(self) -> None:
        self.inc = NIL
        self.seq = 0  # of the last RESPONSE that counted; 0: none has come
        self.age = NIL  # of the last question that was answered
        self.owner = NIL  # NIL: not known
        self.owner_ts = NIL
        self.grant = 0  # the vote that we have
        self.until = NEVER  # when its lease is over
        self.due = NEVER  # when to look at this replica again
        self.silent = False  # did it leave our last question unanswered, so far?
        self.yielded = 0  # the last vote that we gave back (Sigma)
        self.wanted = False  # does an earlier request wait for our vote? (Sigma)
        self.hold = 0  # until when a vote that came straight back is kept (Sigma)
        self.delay = 0  # and for how long that is (Sigma)

    def key_at(self, now: int) -> Key:
        return (
            self.i,
            self.node,
            self.inc,
            self.seq,
            self.age,
            self.owner,
            self.owner_ts,
            self.grant,
            left(self.until, now),
            left(self.due, now),
            self.silent,
            self.yielded,
            self.wanted,
            self.hold - now if self.delay else 0,
            self.delay,
        )

    def load(self, key: Key, now: int) -> None:
        (
            _,
            self.node,
            self.inc,
            self.seq,
            self.age,
            self.owner,
            self.owner_ts,
            self.grant,
            until,
            due,
            self.silent,
            self.yielded,
            self.wanted,
            hold,
            self.delay,
        ) = key
        self.until = moment(until, now)
        self.due = moment(due, now)
        self.hold = now + hold if self.delay else 0


def new_resp(i: int, key: int, weight: int) -> Resp:
    r = Resp.__new__(Resp)
    r.i = i
    r.key = key
    r.weight = weight
    r.node = NIL
    r.clear()
    return r


class Waiter:
    """A request in a replica's queue."""

    def __init__(self, ts: int, client: int, life: int, age: int) -> None:
        self.ts = ts
        self.client = client
        self.life = life
        self.age = age

    def is_before(self, ts: int, client: int) -> bool:
        return self.ts < ts or (self.ts == ts and self.client < client)

    def key(self) -> Key:
        return (self.ts, self.client, self.life, self.age)


def new_waiter(ts: int, client: int, life: int, age: int) -> Waiter:
    w = Waiter.__new__(Waiter)
    w.ts = ts
    w.client = client
    w.life = life
    w.age = age
    return w


class Replica:
    """A replica's state, in SG's names, and of its owner's request besides `life`, `age` and the vote's number.

    The strawman's has no queue. Of one client at most one request is in the queue: `waiting` finds it.
    """

    def __init__(self, i: int) -> None:
        self.i = i
        self.Cowner = NIL
        self.Towner = NIL
        self.life = NIL
        self.age = NIL
        self.grant = 0
        self.until = NEVER  # when the owner's lease is over
        self.Queue: list[Waiter] = []  # by timestamp and client
        self.waiting: dict[int, Waiter] = {}
        self.Tcs = 0  # SG section IV: the average time from release to release; 0: not known yet
        self.busy_since = NEVER  # the last release, or the vote that followed a time without an owner

    def place(self, ts: int, client: int) -> int:
        """Where such a request stands in the queue, or would: mostly at the end, as its timestamp is the latest."""
        low, high = 0, len(self.Queue)
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

    def key_at(self, now: int) -> Key:
        return (
            self.i,
            self.Cowner,
            self.Towner,
            self.life,
            self.age,
            self.grant,
            left(self.until, now),
            tuple([w.key() for w in self.Queue]),
            self.Tcs,
            left(self.busy_since, now),
        )

    def load(self, key: Key, now: int) -> None:
        _, self.Cowner, self.Towner, self.life, self.age, self.grant, until, queue, self.Tcs, busy_since = key
        self.until = moment(until, now)
        self.busy_since = moment(busy_since, now)
        self.Queue = [Waiter(*waiter) for waiter in queue]
        self.waiting = {w.client: w for w in self.Queue}


def left(at: int, now: int) -> int:
    """A moment as a key has it: how far away it is."""
    return NEVER if at == NEVER else at - now


def moment(left: int, now: int) -> int:
    return NEVER if left == NEVER else now + left


class Ballot:
    """Who votes, with what weight, and how much of it all is needed: the same for all nodes of a gate."""

    def __init__(self, setup: Setup) -> None:
        options = setup.options
        n = replica_count(setup)
        m: int = options.get("quorum", n // (setup.k + 1) + 1)
        if options.get("voting", "replicas") == "zones":
            self.keys, self.weights = zones(setup.members)
        else:
            self.keys, self.weights = replica_keys(setup), (1,) * n
        self.whole = sum(self.weights)
        self.needed = -(-self.whole * m // n)  # m/n of it, rounded up
        if not 1 <= m <= n or self.whole // self.needed != setup.k:
            raise ValueError(
                f"{m} of {n} votes let {n // max(m, 1)} in, and k is {setup.k}: choose other replicas or quorum"
            )


def zones(members: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """SG section VII: each member, found at its own place, with its share of the circle: from its predecessor on."""
    places = sorted([place_of(member) for member in members])
    if len(places) == 1:
        return tuple(places), (1,)
    before = [places[len(places) - 1], *places]
    shares = [clockwise(start, end) >> ZONE_BITS for start, end in zip(before, places, strict=False)]
    return tuple(places), tuple(shares)


def ballot_of(setup: Setup) -> Ballot:
    """The one ballot of all nodes of this setup."""
    ballot: Ballot | None = setup.shared.get("ballot")
    if ballot is None:
        ballot = setup.shared["ballot"] = Ballot(setup)
    return ballot
