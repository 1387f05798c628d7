"""The End-to-End protocol to the letter of EE section IV.A: each method here disables a correction of protocol.py.

It hangs, and sometimes lets two in. It exists only to demonstrate that.
"""

from bisect import insort
from dataclasses import replace

from fairgate.core.declare import Option, node
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.protocols.e2e.messages import Enqueue, Release, Request, Response, Token, Yield
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.e2e.replica import Replica


@node
class E2ELiteral(E2E):
    """The client counts which nodes the replicas have voted for, as in the paper."""

    about = replace(E2E.about, name="e2e_literal", options=dict(E2E.about.options))

    tells: Option[bool] = True
    owners: dict[int, int] = {}  # the node that each replica has voted for, if it has answered

    def request_cs(self) -> None:
        self.owners = {}
        E2E.request_cs(self)

    def on_response(self, m: Response) -> None:
        """EE:A4: if nobody has enough votes in a round, YIELD goes to every replica that voted for this node."""
        self.see_stamp(m.owner_stamp)
        if not self.requesting_cs or self.holding or m.stamp != self.stamp:
            return
        self.owners[m.replica] = m.owner
        self.best = max(self.best, m.generation)
        owners = list(self.owners.values())
        if owners.count(self.me) >= self.quorum:
            self.win()
        elif len(owners) == len(self.keys) and max([owners.count(owner) for owner in owners]) < self.quorum:
            for i in [i for i in sorted(self.owners) if self.owners[i] == self.me and self.is_elsewhere(i)]:
                del self.owners[i]
                self.yield_vote(i)

    def is_elsewhere(self, i: int) -> bool:
        """A YIELD to the node's own replica would be answered with the vote, forever, within one step."""
        return self.door.next_hop(self.keys[i]) != NIL

    def put(self, asked: tuple[int, int]) -> None:  # without (7)
        insort(self.queue, asked)

    def keep_early(self, m: Enqueue) -> None:  # without (6)
        pass

    def redirect(self, m: Enqueue) -> None:  # without (5)
        pass

    def on_token(self, m: Token) -> None:  # without (7): sends no IAMWINNER, and keeps an unwanted token
        self.generation = m.generation
        self.take_queue(m.requests)
        if self.requesting_cs:
            self.enter_cs(NIL, NIL)

    def named_heir(self) -> int:  # without (1)
        return NIL

    def is_news(self, generation: int, known: int) -> bool:  # without (2)
        return True

    def stops(self, m: Request) -> bool:  # without (7)
        return True

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:  # without (7)
        if isinstance(msg, Yield):
            again = Request(msg.gate, msg.target, msg.replica, msg.node, msg.stamp, msg.round, 0, 0)
            return None if self.intercept(again) else msg
        return E2E.forward(self, src, msg, next_hop)

    def keep(self, r: Replica, node: int, stamp: int, round: int, known: int) -> None:  # without (3)
        if r.vote == NIL and r.holder == NIL:
            E2E.keep(self, r, node, stamp, round, known)

    def recall(self, i: int, r: Replica, won: bool) -> None:  # without (4)
        pass

    def dispossess(self, i: int, r: Replica) -> None:  # without (4)
        r.vote = NIL

    def on_release_message(self, m: Release) -> None:
        """EE:A6 The replica's owner is reset."""
        r: Replica = self.replica(m.replica)
        r.vote = NIL
        r.holder = NIL
