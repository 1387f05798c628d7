"""Srimani and Reddy's k tokens (1992): Suzuki and Kasami's algorithm, with k tokens in place of one.

Theory of operation. Each node numbers its requests and broadcasts them, as in suzuki_kasami.py. `RN[j]` is the highest
request number received from j; `LN[j]` is the number of j's last request that is known to be served. Every token
carries a queue `Q` and LN, and a node that a token visits keeps what it learns. A node that leaves appends all nodes
that it knows to be waiting to its token's queue, unless they are already in it, and sends the token to the head.

With several tokens, more than one may be sent to the same node for one request. The first lets it in. A node that gets
a surplus token passes it on like one that leaves; if nobody waits, it keeps the token, idle, and has several. A token
visits a node at most once per request, so an entry costs at most N-1 requests and k tokens.

The labels are those of papers/srimani_reddy.md. A token carries LN in the order of `setup.members`.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, Ids, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup


@message("sr.request")
class Request(Message):
    """REQUEST(j, n): request number n of node j."""

    j: Id
    n: int


@message("sr.token", tokens=1)
class Token(Message):
    """PRIVILEGE(Q, LN) of one slot: the right to enter, and the fence of the last entry with it."""

    slot: int
    fence: int
    Q: Ids
    LN: tuple[int, ...]


@node
class SrimaniReddy(Mutex):
    about = About(
        name="srimani_reddy",
        paper="FK [19] Srimani-Reddy 1992",
        kind="token",
        cost="0 or N to N+k-1",
        slots=True,
        serves_in_order=True,
    )
    shown = "RN LN token=slot idle inside Q"

    RN: dict[int, int]
    LN: dict[int, int]
    slot: int = NIL  # of the token in use
    fence: int = NIL
    Q: Ids = ()  # of the token in use
    idle: tuple[tuple[int, int], ...]  # (slot, fence) of the other tokens here; their queues are empty

    def initialize(self, setup: Setup) -> None:
        self.RN = dict.fromkeys(setup.members, 0)
        self.LN = dict.fromkeys(setup.members, 0)
        mine = setup.holders.get(self.me, NIL)
        self.idle = ((mine, setup.first_fence),) if mine != NIL else ()  # SR:I1

    def request_cs(self) -> None:
        if self.idle:
            slot, fence = self.take_idle()
            self.take_token(slot, fence, ())
        else:
            self.RN[self.me] += 1  # SR:RQ1
            ask: Request = Request(self.me, self.RN[self.me])
            j: int
            for j in self.setup.members:
                if j != self.me:
                    self.out.send(j, ask)  # SR:RQ2

    def release_cs(self) -> None:
        slot: int = self.slot
        fence: int = self.fence
        queue: Ids = self.Q
        self.slot = NIL
        self.fence = NIL
        self.Q = ()
        self.pass_on(slot, fence, queue)

    def on_request(self, m: Request) -> None:
        if m.n <= self.RN[m.j]:
            self.out.note("an old request came late")
        self.RN[m.j] = max(self.RN[m.j], m.n)  # SR:PR1
        if self.idle and self.waits(m.j):
            slot, fence = self.take_idle()
            self.send_token(m.j, slot, fence, ())  # SR:PR2

    def on_token(self, m: Token) -> None:
        for j, served in zip(self.setup.members, m.LN, strict=True):
            self.LN[j] = max(self.LN[j], served)  # SR:PT1
        if self.requesting_cs and self.slot == NIL:
            self.take_token(m.slot, m.fence, m.Q)  # SR:PT2
        else:
            self.out.note("a surplus token came")
            self.pass_on(m.slot, m.fence, m.Q)  # SR:PT3

    def pass_on(self, slot: int, fence: int, queue: Ids) -> None:
        """Send a token to the next node that waits, or keep it idle. All requests of this node are being served."""
        self.LN[self.me] = self.RN[self.me]  # SR:PO1
        waiting: Ids = tuple([j for j in queue if self.waits(j)])  # SR:PO2
        waiting += tuple([j for j in self.setup.members if self.waits(j) and j not in waiting])  # SR:PO3
        if waiting:
            self.send_token(waiting[0], slot, fence, waiting[1:])  # SR:PO4
        else:
            self.idle = tuple(sorted([*self.idle, (slot, fence)]))  # SR:PO5

    def waits(self, j: int) -> bool:
        return self.RN[j] > self.LN[j]

    def take_idle(self) -> tuple[int, int]:
        first: tuple[int, int] = self.idle[0]
        self.idle = self.idle[1:]
        return first

    def take_token(self, slot: int, fence: int, queue: Ids) -> None:
        """Enter with this token. Each entry raises the fence by one."""
        self.slot = slot
        self.fence = fence + 1
        self.Q = queue
        self.enter_cs(slot, self.fence)

    def send_token(self, j: Id, slot: int, fence: int, rest: Ids) -> None:
        served = tuple([self.LN[i] for i in self.setup.members])
        self.out.send(j, Token(slot, fence, rest, served))

    def slots(self) -> tuple[int, ...]:
        idle: tuple[int, ...] = tuple([slot for slot, _ in self.idle])
        return idle if self.slot == NIL else (self.slot, *idle)
