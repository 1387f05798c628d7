"""Naimi, Trehel and Arnold's mutual exclusion by path reversal: the tree that Fair-k and BV95 are built on.

Theory of operation. The `parent` pointers lead to the root, the node that requested last. A request from r climbs
them. Every node that it passes takes r as its new parent, because r is now the last to have requested: the path is
reversed, and use keeps the tree flat. The old root stores r in `next`. So the `next` pointers form the queue, and the
single token travels along them.

A root that is not requesting has the token, idle: a node becomes a root only by requesting, and stops being one when it
sets `next`. The labels are those of papers/naimi_trehel.md.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

SLOT = 0  # k is 1, so there is only one


@message("nt.request")
class Request(Message):
    """Node r wants the token."""

    r: Id


@message("nt.token", tokens=1)
class Token(Message):
    """The right to enter, with the fence of the last entry."""

    fence: int


@node
class NaimiTrehel(Mutex):
    about = About(
        name="naimi_trehel",
        paper="FK [11] Naimi-Trehel-Arnold 1996",
        kind="token",
        cost="O(log N), 0 for an idle holder",
        many=False,
        slots=True,
        symmetric=True,
    )
    shown = "parent next token=token_present inside"

    parent: Id
    next: Id = NIL
    token_present: bool
    fence: int

    def initialize(self, setup: Setup) -> None:
        self.token_present = self.me in setup.holders  # NT:I1
        self.fence = setup.first_fence if self.token_present else NIL
        self.parent = NIL if self.token_present else next(iter(setup.holders))  # the root must have the token

    def request_cs(self) -> None:
        if self.token_present:
            self.take_token()
        else:
            self.out.send(self.parent, Request(self.me))  # NT:RQ1
            self.parent = NIL  # NT:RQ2

    def release_cs(self) -> None:
        if self.next != NIL:
            self.send_token(self.next)  # NT:RL1
            self.next = NIL  # NT:RL2

    def on_request(self, m: Request) -> None:
        if self.parent != NIL:
            self.out.send(self.parent, m)  # NT:PR1
        elif self.requesting_cs:
            self.next = m.r  # NT:PR2
        else:
            self.out.note("an idle token was handed over")
            self.send_token(m.r)  # NT:PR3
        self.parent = m.r  # NT:PR4

    def on_token(self, m: Token) -> None:
        self.token_present = True  # NT:PT1
        self.fence = m.fence
        self.take_token()

    def take_token(self) -> None:
        """Enter with the token that is here. Each entry raises the fence by one."""
        self.fence += 1
        self.enter_cs(SLOT, self.fence)

    def send_token(self, r: Id) -> None:
        assert self.token_present, "only a node that has the token sends it"
        self.out.send(r, Token(self.fence))
        self.token_present = False
        self.fence = NIL

    def alone(self) -> bool:
        return self.token_present and self.parent == NIL and self.next == NIL

    def retaken(self, times: int) -> None:
        self.fence += times

    def slots(self) -> tuple[int, ...]:
        return (SLOT,) if self.token_present else ()
