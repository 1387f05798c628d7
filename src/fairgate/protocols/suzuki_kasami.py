"""Suzuki and Kasami's mutual exclusion by broadcast: requests go to all nodes, and the token holder answers.

Theory of operation. Each node numbers its requests. `RN[j]` is the highest request number received from j. `LN[j]`,
which travels in the token, is the number of j's last request that was served. So j is waiting exactly if
RN[j] = LN[j] + 1. Messages may overtake each other: an old request changes nothing, because RN keeps the maximum. A
node that leaves appends all nodes that it knows to be waiting to the token's queue `Q`, unless they are already in it,
and sends the token to the head.

Names are the paper's. A token carries LN in the order of `setup.members`.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, Ids, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

SLOT = 0  # k is 1, so there is only one


@message("sk.request")
class Request(Message):
    """REQUEST(j, n): request number n of node j."""

    j: Id
    n: int


@message("sk.token", tokens=1)
class Token(Message):
    """PRIVILEGE(Q, LN): the right to enter, the queue, the last request served of each node, and the last fence."""

    fence: int
    Q: Ids
    LN: tuple[int, ...]


@node
class SuzukiKasami(Mutex):
    about = About(
        name="suzuki_kasami",
        paper="FK [21] Suzuki-Kasami 1985",
        kind="token",
        cost="0 or N",
        many=False,
        slots=True,
        serves_in_order=True,
    )
    shown = "RN token=token_present inside Q LN"

    RN: dict[int, int]
    token_present: bool
    fence: int
    Q: Ids = ()  # empty unless the token is here and in use
    LN: dict[int, int] = {}  # empty unless the token is here

    def initialize(self, setup: Setup) -> None:
        self.RN = dict.fromkeys(setup.members, 0)
        self.token_present = self.me in setup.holders
        self.fence = setup.first_fence if self.token_present else NIL
        if self.token_present:
            self.LN = dict.fromkeys(setup.members, 0)

    def request_cs(self) -> None:
        if self.token_present:
            self.take_token()
        else:
            self.RN[self.me] += 1
            ask: Request = Request(self.me, self.RN[self.me])
            j: int
            for j in self.setup.members:
                if j != self.me:
                    self.out.send(j, ask)

    def release_cs(self) -> None:
        self.LN[self.me] = self.RN[self.me]
        self.Q += self.newcomers()
        if self.Q:
            self.send_token(self.Q[0], self.Q[1:])

    def newcomers(self) -> Ids:
        """The nodes that are waiting but not in the queue yet."""
        queued = set(self.Q)
        return tuple([j for j in self.setup.members if self.RN[j] == self.LN[j] + 1 and j not in queued])

    def on_request(self, m: Request) -> None:
        if m.n <= self.RN[m.j]:
            self.out.note("an old request came late")
        self.RN[m.j] = max(self.RN[m.j], m.n)
        if self.token_present and not self.requesting_cs and self.RN[m.j] == self.LN[m.j] + 1:
            self.send_token(m.j, ())

    def on_token(self, m: Token) -> None:
        self.token_present = True
        self.fence = m.fence
        self.Q = m.Q
        self.LN = dict(zip(self.setup.members, m.LN, strict=True))
        self.take_token()

    def take_token(self) -> None:
        """Enter with the token that is here. Each entry raises the fence by one."""
        self.fence += 1
        self.enter_cs(SLOT, self.fence)

    def send_token(self, j: Id, rest: Ids) -> None:
        served = tuple([self.LN[i] for i in self.setup.members])
        self.out.send(j, Token(self.fence, rest, served))
        self.token_present = False
        self.fence = NIL
        self.Q = ()
        self.LN = {}

    def slots(self) -> tuple[int, ...]:
        return (SLOT,) if self.token_present else ()
