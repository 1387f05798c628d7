"""What the nodes of the End-to-End protocol say to each other.

The names are EE's; RECALL, SENT_BACK, STALE and CONFIRM are ours. `replica` is a replica's number; `node` and `stamp`,
a Lamport timestamp, are a request. `round` numbers what a client says to one replica about one request: only the answer
to the last of it counts.
"""

from fairgate.core.declare import Id, message
from fairgate.core.keyed import Gated, Keyed

Queue = tuple[tuple[int, Id], ...]  # requests as (stamp, node), the earliest first


@message("e2e.request")
class Request(Keyed):
    """REQUEST. `ended`: a generation that is known to be over, with those before it; such a request was sent again.

    `known`: how much of the queue the requester has a copy of (fault_tolerant.py).
    """

    replica: int
    node: Id
    stamp: int
    round: int
    ended: int
    known: int


@message("e2e.yield")
class Yield(Keyed):
    """YIELD, that is RELEASE and REQUEST: all votes before this round are given back, and asked for again."""

    replica: int
    node: Id
    stamp: int
    round: int
    known: int


@message("e2e.response")
class Response(Gated):
    """RESPONSE: the replica's owner, and whether this is a vote for you."""

    replica: int
    stamp: int
    round: int
    vote: bool
    owner: Id
    owner_stamp: int
    generation: int


@message("e2e.enqueue")
class Enqueue(Gated):
    """ENQUEUE: these want in after you, the owner of this generation. `via` took you for the owner."""

    replica: int
    generation: int
    via: Id
    requests: Queue


@message("e2e.winner")
class IAmWinner(Keyed):
    """IAMWINNER: the node is the owner, of this generation. `round`: fault_tolerant.py says it again and again."""

    replica: int
    node: Id
    stamp: int
    generation: int
    lineage: int
    round: int


@message("e2e.release")
class Release(Keyed):
    """RELEASE: the generation is over, and with it the node's requests up to this stamp. The token went to `heir`."""

    replica: int
    node: Id
    stamp: int
    generation: int
    lineage: int
    heir: Id
    heir_stamp: int


@message("e2e.token")
class Token(Gated):
    """TOKEN: you are the owner, of this generation, and these come after you."""

    generation: int
    lineage: int
    requests: Queue


@message("e2e.recall")
class Recall(Gated):
    """Give the vote back if you have not won: an earlier request came, or (`won`) somebody has won."""

    replica: int
    stamp: int
    round: int
    won: bool


@message("e2e.sent_back")
class SentBack(Gated):
    """Your request came for a generation that is over, and no other one followed: ask that replica again."""

    replica: int
    stamp: int
    generation: int


@message("e2e.stale")
class Stale(Gated):
    """Your replica list is out of date: generations up to this one are over."""

    replica: int
    generation: int


@message("e2e.confirm")
class Confirm(Gated):
    """The replica takes you for the owner, for a lease from when you asked."""

    replica: int
    lineage: int
    generation: int
    round: int


@message("e2e.copy")
class Copy(Gated):
    """The owner's queue, for one of the first waiters. `sequence` orders the copies of one owner."""

    generation: int
    sequence: int
    requests: Queue


@message("e2e.ping")
class Ping(Gated):
    """Are you there, and still the owner of this generation?"""

    generation: int


@message("e2e.pong")
class Pong(Gated):
    """I am."""

    generation: int
