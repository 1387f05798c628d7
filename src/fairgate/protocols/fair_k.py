"""Fair-k: Reddy, Mittal and Gupta, "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems".

A node that wants to enter first becomes the coordinator, briefly. A request follows the `parent` pointers, which lead
to the node that asked last (path reversal). The `next` pointers form the privileged queue: the nodes waiting to become
the coordinator. Along it travels the coordinator's state: `token_locations`, the tails of the k token queues, and
`counter_number`, the queue that gets the next request. A coordinator appends its successor to that token queue and
passes its state on to it. Tokens travel along the `child` pointers.

Names, order and labels (FK:RQ1) follow papers/fair_k.md, which also explains why a token has a slot and a fence.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, Ids, Option, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.core.tuples import replaced, taken


@message("fk.request")
class Request(Message):
    """Node r wants to enter, and so to become the coordinator."""

    r: Id


@message("fk.token", tokens=1)
class Token(Message):
    """The right to enter: the token's slot, and the fence of the last entry with it."""

    slot: int
    fence: int


@message("fk.child")
class Child(Message):
    """Node r is behind the receiver in its token queue: pass the token on to r."""

    r: Id


@message("fk.token_locations", coordinators=1)
class TokenLocations(Message):
    """The receiver is now the coordinator: a is token_locations, b is counter_number."""

    a: Ids
    b: int


@node
class FairK(Mutex):
    about = About(
        name="fair_k", paper="FK", kind="token", cost="O(log N), about 8 at N=100", slots=True, symmetric=True
    )
    shown = "parent next child token=slot inside locations=token_locations counter=counter_number"

    parent_on_child: Option[bool] = True
    parent: Id
    next: Id = NIL
    child: Id = NIL
    token_present: bool
    slot: int
    fence: int
    is_coordinator: bool
    token_locations: Ids = ()
    counter_number: int = NIL

    def initialize(self, setup: Setup) -> None:
        if setup.root not in setup.holders:
            raise ValueError(
                f"the root {setup.root} must have a token: it has to be one of the first {setup.k} members"
            )
        self.parent = setup.root  # FK:I1
        self.slot = setup.holders.get(self.me, NIL)
        self.token_present = self.slot != NIL  # FK:I2
        self.fence = setup.first_fence if self.token_present else NIL
        self.is_coordinator = self.me == setup.root
        if self.is_coordinator:  # FK:I3
            self.parent = NIL
            self.token_locations = tuple(setup.holders)
            self.counter_number = 0

    def request_cs(self) -> None:
        if self.token_present:
            self.take_token()
        else:
            self.out.send(self.parent, Request(self.me))  # FK:RQ1
            self.parent = NIL  # FK:RQ2

    def release_cs(self) -> None:
        if self.child != NIL:
            self.send_token(self.child)  # FK:RL1
            self.child = NIL  # FK:RL2

    def on_request(self, m: Request) -> None:
        if self.parent != NIL:
            self.out.send(self.parent, m)  # FK:PR1
        elif self.is_coordinator:
            self.assign(m.r)  # FK:PR3
        else:
            self.next = m.r  # FK:PR2
        self.parent = m.r  # FK:PR4

    def on_token(self, m: Token) -> None:
        self.token_present = True  # FK:PT1
        self.slot = m.slot
        self.fence = m.fence
        self.take_token()

    def on_child(self, m: Child) -> None:
        if self.requesting_cs:
            self.child = m.r  # FK:PC1
        else:
            self.out.note("child arrived after release")
            self.send_token(m.r)  # FK:PC2
        if self.parent_on_child:
            self.parent = m.r  # FK:PC3

    def on_token_locations(self, m: TokenLocations) -> None:
        self.token_locations = taken(m, m.a)  # FK:TL1
        self.counter_number = m.b
        self.is_coordinator = True
        if self.next != NIL:
            self.out.note("the coordinator had a successor waiting")
            self.assign(self.next)  # FK:TL2
            self.parent = self.next
            self.next = NIL

    def assign(self, r: Id) -> None:
        """Append r to the token queue that is next, and make r the coordinator."""
        a: Ids = self.token_locations
        c: int = self.counter_number
        self.is_coordinator = False
        self.token_locations = ()  # drop this reference first, so that `replaced` need not copy
        self.counter_number = NIL
        self.out.send(a[c], Child(r))  # FK:AS1
        self.out.send(r, TokenLocations(replaced(a, c, r), (c + 1) % self.setup.k))  # FK:AS2, FK:AS3

    def take_token(self) -> None:
        """Enter with the token that is here. Each entry raises the fence by one."""
        self.fence += 1
        self.enter_cs(self.slot, self.fence)

    def send_token(self, r: Id) -> None:
        assert self.token_present, "only a node that has the token sends it"
        self.out.send(r, Token(self.slot, self.fence))
        self.token_present = False
        self.slot = NIL
        self.fence = NIL

    def slots(self) -> tuple[int, ...]:
        return (self.slot,) if self.token_present else ()

    def coordinators(self) -> int:
        return int(self.is_coordinator)

    def broken(self) -> str:
        if self.parent == NIL and not self.requesting_cs and not self.token_present:
            return "property 1: a root has no token, and nobody to ask for one"  # of FK's proof
        return ""

    def alone(self) -> bool:
        return self.token_present and self.is_coordinator and self.token_locations == (self.me,) * self.setup.k

    def retaken(self, times: int) -> None:
        self.fence += times
