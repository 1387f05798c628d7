"""Messages of the End-to-End protocol.

The names are EE's; RECALL, SENT_BACK, STALE, HANDOVER and CONFIRM are ours. `replica` is a replica's number. `node` and
`stamp`, a Lamport timestamp, identify a request. `round` numbers the messages of one client to one replica about one
request: only the answer to the last of them counts.
"""

from fairgate.core.declare import Id, message
from fairgate.core.keyed import Gated, Keyed

Queue = tuple[tuple[int, Id], ...]  # requests as (stamp, node), the earliest first
Waiting = tuple[tuple[int, int, Id, int], ...]  # requests as (-known, stamp, node, round), the best first


@message("e2e.request")
class Request(Keyed):
    """REQUEST: the node asks the replica for its vote.

    `ended` is not 0 in a request that was sent again: all generations up to this one are known to be over.
    `known` is the requester's rank, by how recent its copy of the queue is (fault_tolerant.py).
    """

    replica: int
    node: Id
    stamp: int
    round: int
    ended: int
    known: int


@message("e2e.yield")
class Yield(Keyed):
    """YIELD, that is RELEASE and REQUEST: the node gives back all votes before this round, and asks again."""

    replica: int
    node: Id
    stamp: int
    round: int
    known: int


@message("e2e.response")
class Response(Gated):
    """RESPONSE: the replica's owner, and whether this is a vote for the receiver."""

    replica: int
    stamp: int
    round: int
    vote: bool
    owner: Id
    owner_stamp: int
    generation: int


@message("e2e.enqueue")
class Enqueue(Gated):
    """ENQUEUE: requests to queue behind the receiver, the owner of this generation.

    `via` is the node whose replica list named the receiver as the owner, or NIL.
    """

    replica: int
    generation: int
    via: Id
    requests: Queue


@message("e2e.winner")
class IAmWinner(Keyed):
    """IAMWINNER: the node is the owner of this generation. `round` numbers repetitions (fault_tolerant.py)."""

    replica: int
    node: Id
    stamp: int
    generation: int
    lineage: int
    round: int


@message("e2e.release")
class Release(Keyed):
    """RELEASE: the generation is over, and so are the node's requests up to this stamp. The token went to `heir`."""

    replica: int
    node: Id
    stamp: int
    generation: int
    lineage: int
    heir: Id
    heir_stamp: int


@message("e2e.token")
class Token(Gated):
    """TOKEN: the receiver is the owner of this generation, with these requests queued behind it.

    `clock` is the sender's, so that the clocks of all that enter stay close together.
    """

    generation: int
    lineage: int
    requests: Queue
    clock: int


@message("e2e.recall")
class Recall(Gated):
    """RECALL: give the vote back unless you have won. An earlier request has arrived, or (`won`) somebody has won."""

    replica: int
    stamp: int
    round: int
    won: bool


@message("e2e.sent_back")
class SentBack(Gated):
    """SENT_BACK: the receiver's request reached a former owner that has no heir. Ask that replica again."""

    replica: int
    stamp: int
    generation: int


@message("e2e.stale")
class Stale(Gated):
    """STALE: the receiver's replica list is out of date. Generations up to this one are over."""

    replica: int
    generation: int


@message("e2e.handover")
class HandOver(Keyed):
    """The state of a replica (`Replica` in replica.py), for the node that owns its key now."""

    replica: int
    vote: Id
    vote_stamp: int
    vote_round: int
    vote_known: int
    recalled: bool
    holder: Id
    holder_stamp: int
    generation: int
    lineage: int
    waiting: Waiting


@message("e2e.confirm")
class Confirm(Gated):
    """CONFIRM: the replica accepts the receiver as the owner, for one lease from when the receiver asked."""

    replica: int
    lineage: int
    generation: int
    round: int


@message("e2e.copy")
class Copy(Gated):
    """A copy of the owner's queue, sent to the first waiters. `sequence` orders the copies of one owner."""

    generation: int
    sequence: int
    requests: Queue


@message("e2e.ping")
class Ping(Gated):
    """A waiter asks whether the receiver is alive and still the owner of this generation."""

    generation: int


@message("e2e.pong")
class Pong(Gated):
    """The answer to a Ping: yes."""

    generation: int
