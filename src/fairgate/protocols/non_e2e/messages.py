"""The messages of Non End-to-End (EE): those of section IV.B first, then those of section V.B."""

from fairgate.core.declare import Fixed, Id, Spread, message
from fairgate.core.ids import NIL
from fairgate.core.keyed import Gated, Keyed

LIFE = 20  # an attempt's number has this many bits below those of its node's life

Asked = tuple[int, int, int]  # a request, as (ts, node, attempt). Queues are sorted in this order
Owner = tuple[int, ...]  # the request that has a replica's vote, or () if no request has it


@message("ne.request")
class Request(Keyed):
    """REQUEST: `node` asks replica `replica` for its vote.

    `past` means that nodes on the path must pass it on even if they have an entry. `asked` is the tuple that entries
    and queues store, so that it is created once per request and not once per message.
    """

    replica: int
    asked: Spread[Asked]
    past: bool
    ts: Fixed[int] = NIL
    node: Fixed[Id] = NIL
    attempt: Fixed[int] = NIL

    def complete(self) -> None:
        self.ts, self.node, self.attempt = self.asked


@message("ne.grantreq")
class GrantReq(Gated):
    """GRANTREQ: the sender knows the receiver's request (ts, attempt), and `holder` has the replica's vote.

    `way`: the sender is a node on the path, and `holder` may be out of date. `vote`: the sender is the replica, and
    its vote is the receiver's. `wanted`: an earlier request is waiting for that vote.
    """

    replica: int
    ts: int
    attempt: int
    holder: Id
    way: bool
    vote: bool
    wanted: bool
    clock: int


@message()
class Gathering(Keyed):
    """A message that follows the entries of a request, deletes them and gathers the requests in their queues.

    The request is (ts, node, attempt). `keeper` is the last node that keeps a copy until the message has arrived, or
    NIL.
    """

    over = True  # is the request over, and its vote free?

    replica: int
    ts: int
    node: Id
    attempt: int
    queue: tuple[Asked, ...]
    keeper: Id

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> "Gathering":
        """The same message with another queue and keeper."""
        raise NotImplementedError


@message("ne.release")
class Release(Gathering):
    """RELEASE: the requester gives the vote back.

    Its request is over; there will be no further attempt.
    """

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> Gathering:
        return Release(self.gate, self.target, self.replica, self.ts, self.node, self.attempt, queue, keeper)


@message("ne.yield")
class Yield(Gathering):
    """YIELD: the requester gives the vote back because it has not won.

    This attempt is over; another will follow.
    """

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> Gathering:
        return Yield(self.gate, self.target, self.replica, self.ts, self.node, self.attempt, queue, keeper)


@message("ne.cleanup")
class CleanUp(Gathering):
    """The path of this request was cut: delete its entries from here on. The request has taken another path."""

    over = False

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> Gathering:
        return CleanUp(self.gate, self.target, self.replica, self.ts, self.node, self.attempt, queue, keeper)


@message("ne.ping")
class Ping(Keyed):
    """Question n of the request (ts, node, attempt): does it still have the vote of this replica?"""

    replica: int
    ts: int
    node: Id
    attempt: int
    n: int


@message("ne.ack")
class Ack(Gated):
    """The answer to question n. If `held`, the receiver has the vote for one lease from when it asked."""

    replica: int
    ts: int
    attempt: int
    n: int
    held: bool


@message("ne.taken")
class Taken(Gated):
    """The replica has received what was gathered for the request (ts, node, attempt): drop the copy."""

    replica: int
    ts: int
    node: Id
    attempt: int


@message("ne.skip")
class Skip(Gated):
    """The sender leaves: `previous` and `next` are now neighbours on the path of the request (ts, node, attempt)."""

    replica: int
    ts: int
    node: Id
    attempt: int
    previous: Id
    next: Id


@message("ne.handover")
class HandOver(Keyed):
    """The vote and the queue of a replica, for the node that owns its key now."""

    replica: int
    owner: Owner
    queue: tuple[Asked, ...]

    def complete(self) -> None:
        if len(self.owner) not in (0, 3):
            raise ValueError(f"the owner of a vote must be (ts, node, attempt) or (), not {self.owner!r}")
