"""The messages of Non End-to-End (EE): those of section IV.B first, then those of section V.B."""

from fairgate.core.declare import Fixed, Id, Spread, message
from fairgate.core.ids import NIL
from fairgate.core.keyed import Gated, Keyed

LIFE = 20  # bits of an attempt's number below those of its node's life

Asked = tuple[int, int, int]  # a request: (ts, node, attempt). Requests queue in this order
Owner = tuple[int, ...]  # the request that has a replica's vote, or () if no request has it


@message("ne.request")
class Request(Keyed):
    """REQUEST: `node` asks replica `replica` for its vote. `past`: nodes on the way must not keep it.

    `asked` is the tuple that entries and queues keep, so it is made once per request and not once per message.
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
    """GRANTREQ: your request (ts, attempt) is known here, and `holder` has the replica.

    `way`: a node on the way says so, as far as it can know. `vote`: the replica says so, and its vote is yours.
    `wanted`: an earlier request waits for that vote.
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
    """It follows the entries of the request (ts, node, attempt), deletes them and gathers the requests in their queues.

    `keeper`: the last node that keeps a copy until the message has arrived, or NIL.
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
    """RELEASE: the requester has been inside, and gives the vote back.

    Its request is over.
    """

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> Gathering:
        return Release(self.gate, self.target, self.replica, self.ts, self.node, self.attempt, queue, keeper)


@message("ne.yield")
class Yield(Gathering):
    """YIELD: nobody won, and the requester gives the vote back.

    This attempt is over; there will be another.
    """

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> Gathering:
        return Yield(self.gate, self.target, self.replica, self.ts, self.node, self.attempt, queue, keeper)


@message("ne.cleanup")
class CleanUp(Gathering):
    """The path of this request was cut behind you: delete its entries. The request goes on along another path."""

    over = False

    def with_queue(self, queue: tuple[Asked, ...], keeper: Id) -> Gathering:
        return CleanUp(self.gate, self.target, self.replica, self.ts, self.node, self.attempt, queue, keeper)


@message("ne.ping")
class Ping(Keyed):
    """Question n of the request (ts, node, attempt): is the vote of this replica still mine?"""

    replica: int
    ts: int
    node: Id
    attempt: int
    n: int


@message("ne.ack")
class Ack(Gated):
    """The answer to question n. `held`: the vote is yours for one lease, counted from when you asked."""

    replica: int
    ts: int
    attempt: int
    n: int
    held: bool


@message("ne.taken")
class Taken(Gated):
    """The replica has what you passed on for the request (ts, node, attempt): forget your copy."""

    replica: int
    ts: int
    node: Id
    attempt: int


@message("ne.skip")
class Skip(Gated):
    """I leave: on the path of the request (ts, node, attempt) these two are neighbours now."""

    replica: int
    ts: int
    node: Id
    attempt: int
    previous: Id
    next: Id


@message("ne.handover")
class HandOver(Keyed):
    """You own the replica's key now: this is its vote and its queue."""

    replica: int
    owner: Owner
    queue: tuple[Asked, ...]

    def complete(self) -> None:
        if len(self.owner) not in (0, 3):
            raise ValueError(f"the owner of a vote is a request (ts, node, attempt) or (), not {self.owner!r}")
