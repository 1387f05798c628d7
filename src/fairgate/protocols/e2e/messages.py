"""What the nodes of the End-to-End protocol say to each other.

The names are EE's; RECALL, SENT_BACK, STALE and CONFIRM are ours. `replica` is a replica's number; `node` and `stamp`,
a Lamport timestamp, are a request. `round` numbers what a client says to one replica about one request: only the answer
to the last of it counts.
"""

from typing import Any

from fairgate.core.keyed import Gated, Keyed
from fairgate.core.message import Key, register

Queue = tuple[tuple[int, int], ...]  # requests as (stamp, node), the earliest first


class Request(Keyed):
    """REQUEST. `ended`: a generation that is known to be over, with those before it; such a request was sent again.

    `known`: how much of the queue the requester has a copy of (fault_tolerant.py).
    """

    __slots__ = ("ended", "known", "node", "replica", "round", "stamp")
    tag = "e2e.request"

    def __init__(
        self, gate: int, target: int, replica: int, node: int, stamp: int, round: int, ended: int, known: int
    ) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.node = node
        self.stamp = stamp
        self.round = round
        self.ended = ended
        self.known = known

    def key(self) -> Key:
        fields = (self.replica, self.node, self.stamp, self.round, self.ended, self.known)
        return (self.tag, self.gate, self.target, *fields)


class Yield(Keyed):
    """YIELD, that is RELEASE and REQUEST: all votes before this round are given back, and asked for again."""

    __slots__ = ("known", "node", "replica", "round", "stamp")
    tag = "e2e.yield"

    def __init__(self, gate: int, target: int, replica: int, node: int, stamp: int, round: int, known: int) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.node = node
        self.stamp = stamp
        self.round = round
        self.known = known

    def key(self) -> Key:
        return (self.tag, self.gate, self.target, self.replica, self.node, self.stamp, self.round, self.known)


class Response(Gated):
    """RESPONSE: the replica's owner, and whether this is a vote for you."""

    __slots__ = ("generation", "owner", "owner_stamp", "replica", "round", "stamp", "vote")
    tag = "e2e.response"

    def __init__(
        self, gate: int, replica: int, stamp: int, round: int, vote: bool, owner: int, owner_stamp: int, generation: int
    ) -> None:
        self.gate = gate
        self.replica = replica
        self.stamp = stamp
        self.round = round
        self.vote = vote
        self.owner = owner
        self.owner_stamp = owner_stamp
        self.generation = generation

    def key(self) -> Key:
        owner = (self.owner, self.owner_stamp, self.generation)
        return (self.tag, self.gate, self.replica, self.stamp, self.round, self.vote, *owner)


class Enqueue(Gated):
    """ENQUEUE: these want in after you, the owner of this generation. `via` took you for the owner."""

    __slots__ = ("generation", "replica", "requests", "via")
    tag = "e2e.enqueue"

    def __init__(self, gate: int, replica: int, generation: int, via: int, requests: Queue) -> None:
        self.gate = gate
        self.replica = replica
        self.generation = generation
        self.via = via
        self.requests = requests

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.generation, self.via, self.requests)

    @classmethod
    def from_fields(cls, *fields: Any) -> "Enqueue":
        gate, replica, generation, via, requests = fields
        return cls(gate, replica, generation, via, as_queue(requests))


class IAmWinner(Keyed):
    """IAMWINNER: the node is the owner, of this generation. `round`: fault_tolerant.py says it again and again."""

    __slots__ = ("generation", "lineage", "node", "replica", "round", "stamp")
    tag = "e2e.winner"

    def __init__(
        self, gate: int, target: int, replica: int, node: int, stamp: int, generation: int, lineage: int, round: int
    ) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.node = node
        self.stamp = stamp
        self.generation = generation
        self.lineage = lineage
        self.round = round

    def key(self) -> Key:
        fields = (self.replica, self.node, self.stamp, self.generation, self.lineage, self.round)
        return (self.tag, self.gate, self.target, *fields)


class Release(Keyed):
    """RELEASE: the generation is over, and with it the node's requests up to this stamp. The token went to `heir`."""

    __slots__ = ("generation", "heir", "heir_stamp", "lineage", "node", "replica", "stamp")
    tag = "e2e.release"

    def __init__(
        self,
        gate: int,
        target: int,
        replica: int,
        node: int,
        stamp: int,
        generation: int,
        lineage: int,
        heir: int,
        heir_stamp: int,
    ) -> None:
        self.gate = gate
        self.target = target
        self.replica = replica
        self.node = node
        self.stamp = stamp
        self.generation = generation
        self.lineage = lineage
        self.heir = heir
        self.heir_stamp = heir_stamp

    def key(self) -> Key:
        fields = (self.replica, self.node, self.stamp, self.generation, self.lineage, self.heir, self.heir_stamp)
        return (self.tag, self.gate, self.target, *fields)


class Token(Gated):
    """TOKEN: you are the owner, of this generation, and these come after you."""

    __slots__ = ("generation", "lineage", "requests")
    tag = "e2e.token"

    def __init__(self, gate: int, generation: int, lineage: int, requests: Queue) -> None:
        self.gate = gate
        self.generation = generation
        self.lineage = lineage
        self.requests = requests

    def key(self) -> Key:
        return (self.tag, self.gate, self.generation, self.lineage, self.requests)

    @classmethod
    def from_fields(cls, *fields: Any) -> "Token":
        gate, generation, lineage, requests = fields
        return cls(gate, generation, lineage, as_queue(requests))


class Recall(Gated):
    """Give the vote back if you have not won: an earlier request came, or (`won`) somebody has won."""

    __slots__ = ("replica", "round", "stamp", "won")
    tag = "e2e.recall"

    def __init__(self, gate: int, replica: int, stamp: int, round: int, won: bool) -> None:
        self.gate = gate
        self.replica = replica
        self.stamp = stamp
        self.round = round
        self.won = won

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.stamp, self.round, self.won)


class SentBack(Gated):
    """Your request came for a generation that is over, and no other one followed: ask that replica again."""

    __slots__ = ("generation", "replica", "stamp")
    tag = "e2e.sent_back"

    def __init__(self, gate: int, replica: int, stamp: int, generation: int) -> None:
        self.gate = gate
        self.replica = replica
        self.stamp = stamp
        self.generation = generation

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.stamp, self.generation)


class Stale(Gated):
    """Your replica list is out of date: generations up to this one are over."""

    __slots__ = ("generation", "replica")
    tag = "e2e.stale"

    def __init__(self, gate: int, replica: int, generation: int) -> None:
        self.gate = gate
        self.replica = replica
        self.generation = generation

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.generation)


class Confirm(Gated):
    """The replica takes you for the owner, for a lease from when you asked."""

    __slots__ = ("generation", "lineage", "replica", "round")
    tag = "e2e.confirm"

    def __init__(self, gate: int, replica: int, lineage: int, generation: int, round: int) -> None:
        self.gate = gate
        self.replica = replica
        self.lineage = lineage
        self.generation = generation
        self.round = round

    def key(self) -> Key:
        return (self.tag, self.gate, self.replica, self.lineage, self.generation, self.round)


class Copy(Gated):
    """The owner's queue, for one of the first waiters. `sequence` orders the copies of one owner."""

    __slots__ = ("generation", "requests", "sequence")
    tag = "e2e.copy"

    def __init__(self, gate: int, generation: int, sequence: int, requests: Queue) -> None:
        self.gate = gate
        self.generation = generation
        self.sequence = sequence
        self.requests = requests

    def key(self) -> Key:
        return (self.tag, self.gate, self.generation, self.sequence, self.requests)

    @classmethod
    def from_fields(cls, *fields: Any) -> "Copy":
        gate, generation, sequence, requests = fields
        return cls(gate, generation, sequence, as_queue(requests))


class Ping(Gated):
    """Are you there, and still the owner of this generation?"""

    __slots__ = ("generation",)
    tag = "e2e.ping"

    def __init__(self, gate: int, generation: int) -> None:
        self.gate = gate
        self.generation = generation

    def key(self) -> Key:
        return (self.tag, self.gate, self.generation)


class Pong(Gated):
    """I am."""

    __slots__ = ("generation",)
    tag = "e2e.pong"

    def __init__(self, gate: int, generation: int) -> None:
        self.gate = gate
        self.generation = generation

    def key(self) -> Key:
        return (self.tag, self.gate, self.generation)


register(Request, Yield, Response, Enqueue, IAmWinner, Release, Token, Recall, SentBack, Stale)
register(Confirm, Copy, Ping, Pong)


# Messages built field by field. `Request(...)` is the same, but compiled it boxes its arguments for `__init__`
# (docs/benchmarks.md).


def new_request(
    gate: int, target: int, replica: int, node: int, stamp: int, round: int, ended: int, known: int
) -> Request:
    m = Request.__new__(Request)
    m.gate = gate
    m.target = target
    m.replica = replica
    m.node = node
    m.stamp = stamp
    m.round = round
    m.ended = ended
    m.known = known
    return m


def new_response(
    gate: int, replica: int, stamp: int, round: int, vote: bool, owner: int, owner_stamp: int, generation: int
) -> Response:
    m = Response.__new__(Response)
    m.gate = gate
    m.replica = replica
    m.stamp = stamp
    m.round = round
    m.vote = vote
    m.owner = owner
    m.owner_stamp = owner_stamp
    m.generation = generation
    return m


def new_enqueue(gate: int, replica: int, generation: int, via: int, requests: Queue) -> Enqueue:
    m = Enqueue.__new__(Enqueue)
    m.gate = gate
    m.replica = replica
    m.generation = generation
    m.via = via
    m.requests = requests
    return m


def new_winner(
    gate: int, target: int, replica: int, node: int, stamp: int, generation: int, lineage: int, round: int
) -> IAmWinner:
    m = IAmWinner.__new__(IAmWinner)
    m.gate = gate
    m.target = target
    m.replica = replica
    m.node = node
    m.stamp = stamp
    m.generation = generation
    m.lineage = lineage
    m.round = round
    return m


def new_release(
    gate: int,
    target: int,
    replica: int,
    node: int,
    stamp: int,
    generation: int,
    lineage: int,
    heir: int,
    heir_stamp: int,
) -> Release:
    m = Release.__new__(Release)
    m.gate = gate
    m.target = target
    m.replica = replica
    m.node = node
    m.stamp = stamp
    m.generation = generation
    m.lineage = lineage
    m.heir = heir
    m.heir_stamp = heir_stamp
    return m


def as_queue(requests: Any) -> Queue:
    return tuple([(stamp, node) for stamp, node in requests])
