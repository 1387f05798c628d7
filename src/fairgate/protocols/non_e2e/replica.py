"""The replica's side of Non End-to-End: its vote, its queue, and how it moves (EE:B3, and the end of B4)."""

from fairgate.core.declare import Fixed, Id, Place, node
from fairgate.core.keyspace import is_between
from fairgate.core.message import Key
from fairgate.core.queues import is_same, put
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.messages import LIFE, Asked, Gathering, GrantReq, HandOver, Owner, Request
from fairgate.protocols.non_e2e.state import Replica, Terms, is_earlier, merged, terms_of
from fairgate.protocols.stamps import Stamped

NO_REPLICAS: dict[int, Replica] = {}  # shared by all nodes that serve no replica, to save memory; never modified


@node
class ReplicaSide(Stamped):
    """What a node does for the replicas that it serves; protocol.py has the rest."""

    terms: Fixed[Terms]
    replicas: dict[int, Replica]

    def initialize(self, setup: Setup) -> None:
        self.terms = terms_of(type(self), setup, len(self.keys))
        self.replicas = NO_REPLICAS

    def replica(self, number: int) -> Replica:
        replica: Replica | None = self.replicas.get(number)
        return self.add_replica(number) if replica is None else replica

    def add_replica(self, number: int) -> Replica:
        replica = Replica()
        self.replicas = {**self.replicas, number: replica}
        return replica

    def on_request(self, src: Id, m: Request) -> None:  # EE:B3
        self.see_stamp(m.ts)
        replica: Replica = self.replica(m.replica)
        asked: Asked = m.asked
        if is_same(replica.owner, asked):
            self.tell_owner(m.replica, replica)
            return
        put(replica.queue, asked)
        self.vote(m.replica, replica)
        if replica.owner and not is_same(replica.owner, asked):
            self.inform(m, replica.owner[1], False)

    def vote(self, number: int, replica: Replica) -> None:
        """Vote for the first request in the queue, if the vote is free.

        If it is not, tell its owner, once, that an earlier request is waiting.
        """
        if not replica.queue:
            return
        if not replica.owner:
            replica.owner = replica.queue.pop(0)
            replica.wanted = False
            self.tell_owner(number, replica)
        elif not replica.wanted and self.terms.earliest_keeps and is_earlier(replica.queue[0], replica.owner):
            replica.wanted = True
            self.tell_owner(number, replica)

    def tell_owner(self, number: int, replica: Replica) -> None:
        ts: int
        node: Id
        attempt: int
        ts, node, attempt = replica.owner
        self.out.send(node, GrantReq(self.gate, number, ts, attempt, node, False, True, replica.wanted, self.clock()))

    def on_gathering(self, src: Id, m: Gathering) -> None:  # EE:B4, at the replica
        replica: Replica = self.replica(m.replica)
        replica.queue = merged(replica.queue, m.queue)
        if m.over:
            self.take_out(replica.queue, m)
            if replica.owner and (self.is_own(m, replica.owner) or not self.terms.from_owner):
                replica.owner = ()
        self.vote(m.replica, replica)

    def inform(self, m: Request, holder: Id, way: bool) -> None:
        news = GrantReq(self.gate, m.replica, m.ts, m.attempt, holder, way, False, False, self.clock())
        self.out.send(m.node, news)

    def is_own(self, m: Gathering, asked: Owner) -> bool:
        """Is this the message's request? Its earlier attempts count too, because they are over as well."""
        node: int = asked[1]
        if node != m.node or not self.terms.by_number:
            return node == m.node
        ts: int = asked[0]
        attempt: int = asked[2]
        return ts == m.ts and attempt <= m.attempt and attempt >> LIFE == m.attempt >> LIFE

    def take_out(self, queue: list[Asked], m: Gathering) -> None:
        at: int
        for at in range(len(queue) - 1, -1, -1):
            if self.is_own(m, queue[at]):
                del queue[at]

    # Keys change owners.

    def hand_over(self, start: Place, end: Place) -> None:
        """Hand over replicas whose keys have another owner now. On a dynamic ring, titles have moved them already."""
        for number in sorted(self.replicas):
            if not is_between(self.keys[number], start, end):
                r: Replica = self.replicas[number]
                if r.owner or r.queue:
                    self.out.note("a replica moved")
                    self.door.route(HandOver(self.gate, self.keys[number], number, r.owner, tuple(r.queue)))
                self.give_replica(number)

    def on_handover(self, m: HandOver) -> None:
        """Take over a replica's vote and queue, unless this node has already decided otherwise.

        A RELEASE that overtook the HandOver counts as such a decision.
        """
        is_new = self.knows_nothing(m.replica)
        replica: Replica = self.replica(m.replica)
        if m.owner and not replica.owner and is_new:
            replica.owner = m.owner
            self.took_owner(m.replica)
        replica.queue = merged(replica.queue, m.queue)
        self.vote(m.replica, replica)

    def knows_nothing(self, number: int) -> bool:
        return number not in self.replicas

    def took_owner(self, number: int) -> None:
        """A hook for a subclass whose votes expire."""

    def played(self) -> list[tuple[int, int]]:
        return [(number, self.keys[number]) for number in sorted(self.replicas)]

    def give_replica(self, i: int) -> Key:
        state: Key = self.replicas.pop(i).key()  # type: ignore[attr-defined]  # derived
        return state

    def take_replica(self, i: int, state: Key) -> None:
        self.replicas = {**self.replicas, i: Replica.from_key(state)}  # type: ignore[attr-defined]
