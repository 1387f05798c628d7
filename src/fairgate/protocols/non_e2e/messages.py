"""The messages of Non End-to-End (EE): those of section IV.B first, then those of section V.B."""

from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.keyed import Gated, Keyed
from fairgate.core.message import Key, register

LIFE = 20  # bits of an attempt's number below those of its node's life

Asked = tuple[int, ...]  # (ts, node, attempt): in this order they queue


class Request(Keyed):
    """REQUEST: `node` asks replica `replica` for its vote. `past`: do not keep it on the way.

    `asked`: (ts, node, attempt) as entries and queues have it, the same one wherever it comes.
    """

    __slots__ = ("asked", "attempt", "node", "past", "replica", "ts")
    tag = "ne.request"

    def __init__(self, gate: int, target: int, replica: int, ts: int, node: int, attempt: int, past: bool) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.ts = ts
        self.node = node
        self.attempt = attempt
        self.asked: Asked = (ts, node, attempt)
        self.past = past

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.replica, self.ts, self.node, self.attempt, self.past)


class GrantReq(Gated):
    """GRANTREQ: your request (ts, attempt) is known here, and `holder` has the replica.

    `way`: as far as a node on the way can know. `vote`: you have it, and I am the replica; `wanted`: an earlier
    request waits for it.
    """

    __slots__ = ("attempt", "clock", "holder", "replica", "ts", "vote", "wanted", "way")
    tag = "ne.grantreq"

    def __init__(
        self,
        gate: int,
        replica: int,
        ts: int,
        attempt: int,
        holder: int,
        way: bool,
        vote: bool,
        wanted: bool,
        clock: int,
    ) -> None:
        self.gate = gate
        self.replica = replica
        self.ts = ts
        self.attempt = attempt
        self.holder = holder
        self.way = way
        self.vote = vote
        self.wanted = wanted
        self.clock = clock

    def key(self) -> Key:
        said = (self.holder, self.way, self.vote, self.wanted, self.clock)
        return (self.tag, self.gate, self.replica, self.ts, self.attempt, *said)


class Gathering(Keyed):
    """On its way along the entries of the request (ts, node, attempt), which it takes out, with the requests found.

    `keeper`: the last node that keeps a copy until it has arrived, or NIL.
    """

    __slots__ = ("attempt", "keeper", "node", "queue", "replica", "ts")
    over = True  # is the request over, and its vote free?

    def __init__(
        self,
        gate: int,
        target: int,
        replica: int,
        ts: int,
        node: int,
        attempt: int,
        queue: tuple[Asked, ...],
        keeper: int,
    ) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.ts = ts
        self.node = node
        self.attempt = attempt
        self.queue = queue
        self.keeper = keeper

    def key(self) -> Key:
        asked = (self.ts, self.node, self.attempt)
        return (self.tag, self.gate, self.target, self.replica, *asked, self.queue, self.keeper)

    def with_queue(self, queue: tuple[Asked, ...], keeper: int) -> "Gathering":
        m = self.blank()
        m.gate = self.gate
        m.target = self.target
        m.replica = self.replica
        m.ts = self.ts
        m.node = self.node
        m.attempt = self.attempt
        m.queue = queue
        m.keeper = keeper
        return m

    def blank(self) -> "Gathering":
        """One of the same class, with nothing in it yet."""
        raise NotImplementedError

    @classmethod
    def from_fields(cls, *fields: Any) -> "Gathering":
        gate, target, replica, ts, node, attempt, queue, keeper = fields
        return cls(gate, target, replica, ts, node, attempt, tuple([tuple(asked) for asked in queue]), keeper)


class Release(Gathering):
    """RELEASE: that request is over."""

    __slots__ = ()
    tag = "ne.release"

    def blank(self) -> Gathering:
        return Release.__new__(Release)


class Yield(Gathering):
    """YIELD: nobody won. This attempt is over; there will be another."""

    __slots__ = ()
    tag = "ne.yield"

    def blank(self) -> Gathering:
        return Yield.__new__(Yield)


class CleanUp(Gathering):
    """The way of this request was cut behind you: take its entries out. The request goes on, another way."""

    __slots__ = ()
    tag = "ne.cleanup"
    over = False

    def blank(self) -> Gathering:
        return CleanUp.__new__(CleanUp)


class Ping(Keyed):
    """Question n of the request (ts, node, attempt): is the vote of this replica still mine?"""

    __slots__ = ("attempt", "n", "node", "replica", "ts")
    tag = "ne.ping"

    def __init__(self, gate: int, target: int, replica: int, ts: int, node: int, attempt: int, n: int) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.ts = ts
        self.node = node
        self.attempt = attempt
        self.n = n

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.replica, self.ts, self.node, self.attempt, self.n)


class Ack(Gated):
    """To question n: yes, and for a lease from when you asked; or no."""

    __slots__ = ("attempt", "held", "n", "replica", "ts")
    tag = "ne.ack"

    def __init__(self, gate: int, replica: int, ts: int, attempt: int, n: int, held: bool) -> None:
        self.gate = gate
        self.replica = replica
        self.ts = ts
        self.attempt = attempt
        self.n = n
        self.held = held

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.ts, self.attempt, self.n, self.held)


class Taken(Gated):
    """The replica has what you passed on for the request (ts, node, attempt): forget your copy."""

    __slots__ = ("attempt", "node", "replica", "ts")
    tag = "ne.taken"

    def __init__(self, gate: int, replica: int, ts: int, node: int, attempt: int) -> None:
        self.gate = gate
        self.replica = replica
        self.ts = ts
        self.node = node
        self.attempt = attempt

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.ts, self.node, self.attempt)


class Skip(Gated):
    """I leave: on the way of the request (ts, node, attempt) these two are next to each other now."""

    __slots__ = ("attempt", "next", "node", "previous", "replica", "ts")
    tag = "ne.skip"

    def __init__(self, gate: int, replica: int, ts: int, node: int, attempt: int, previous: int, next: int) -> None:
        self.gate = gate
        self.replica = replica
        self.ts = ts
        self.node = node
        self.attempt = attempt
        self.previous = previous
        self.next = next

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.ts, self.node, self.attempt, self.previous, self.next)


class HandOver(Keyed):
    """You own the replica's key now: this is its vote and its queue."""

    __slots__ = ("owner", "queue", "replica")
    tag = "ne.handover"

    def __init__(self, gate: int, target: int, replica: int, owner: Asked, queue: tuple[Asked, ...]) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.owner = owner
        self.queue = queue

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.replica, self.owner, self.queue)

    @classmethod
    def from_fields(cls, *fields: Any) -> "HandOver":
        gate, target, replica, owner, queue = fields
        return cls(gate, target, replica, tuple(owner), tuple([tuple(asked) for asked in queue]))


register(Request, GrantReq, Release, Yield, CleanUp, Ping, Ack, Taken, Skip, HandOver)


# Messages built field by field. `Request(...)` is the same, but compiled it boxes its arguments for `__init__`
# (docs/benchmarks.md).


def new_request(gate: int, target: int, replica: int, asked: Asked, past: bool) -> Request:
    m = Request.__new__(Request)
    m.gate = gate
    m.target = target
    m.replica = replica
    m.ts, m.node, m.attempt = asked
    m.asked = asked
    m.past = past
    return m


def new_grantreq(
    gate: int, replica: int, ts: int, attempt: int, holder: int, way: bool, vote: bool, wanted: bool, clock: int
) -> GrantReq:
    m = GrantReq.__new__(GrantReq)
    m.gate = gate
    m.replica = replica
    m.ts = ts
    m.attempt = attempt
    m.holder = holder
    m.way = way
    m.vote = vote
    m.wanted = wanted
    m.clock = clock
    return m


def new_release(gate: int, target: int, replica: int, ts: int, node: int, attempt: int) -> Release:
    m = Release.__new__(Release)
    m.gate = gate
    m.target = target
    m.replica = replica
    m.ts = ts
    m.node = node
    m.attempt = attempt
    m.queue = ()
    m.keeper = NIL
    return m
