"""Raymond's mutual exclusion on a tree (1989): a node talks to its neighbours only, and asks once for all behind it.

Theory of operation. The nodes form a tree that never changes. `holder` points along it towards the token. A node
queues its own request and those of its neighbours in `request_q`, and passes on at most one request at a time
(`asked`), for whoever is behind it. The token travels back along the path of the requests, and the pointers turn with
it.

Option `tree` gives its shape. The first member is the root, and has the token at first. Names are the paper's, in lower
case; the labels are those of papers/raymond_tree.md.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, Ids, Option, message, node, one_of
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

SLOT = 0  # k is 1, so there is only one


@message("rt.request")
class Request(Message):
    """REQUEST: the sender, or a node behind it, wants the token."""


@message("rt.privilege", tokens=1)
class Privilege(Message):
    """PRIVILEGE: the token, with the fence of the last entry."""

    fence: int


@node
class RaymondTree(Mutex):
    about = About(
        name="raymond_tree",
        paper="FK [15] Raymond 1989",
        kind="token",
        cost="O(log N), about 4 under load",
        many=False,
        slots=True,
    )
    shown = "holder using asked request_q inside"

    tree: Option[str] = one_of("binary", "line", "star")
    holder: Id
    using: bool = False
    asked: bool = False
    request_q: Ids = ()
    fence: int

    def initialize(self, setup: Setup) -> None:
        branches = {"binary": 2, "line": 1, "star": setup.n}[self.tree]
        place = setup.place(self.me)
        self.holder = setup.members[(place - 1) // branches] if place > 0 else self.me  # RT:I1
        self.fence = NIL if place > 0 else setup.first_fence

    def request_cs(self) -> None:
        self.request_q += (self.me,)  # RT:RQ1
        self.go_on()

    def release_cs(self) -> None:
        self.using = False  # RT:RL1
        self.go_on()

    def on_request(self, j: int, m: Request) -> None:
        self.request_q += (j,)  # RT:PR1
        self.go_on()

    def on_privilege(self, m: Privilege) -> None:
        self.holder = self.me  # RT:PP1
        self.fence = m.fence
        self.go_on()

    def go_on(self) -> None:
        self.assign_privilege()
        self.make_request()

    def assign_privilege(self) -> None:
        if self.holder == self.me and not self.using and self.request_q:  # RT:AP1
            self.holder = self.request_q[0]  # RT:AP2
            self.request_q = self.request_q[1:]
            self.asked = False  # RT:AP3
            if self.holder == self.me:
                self.take_token()
            else:
                self.out.send(self.holder, Privilege(self.fence))  # RT:AP5
                self.fence = NIL

    def make_request(self) -> None:
        if self.holder != self.me and self.request_q and not self.asked:  # RT:MR1
            self.out.send(self.holder, Request())  # RT:MR2
            self.asked = True  # RT:MR3

    def take_token(self) -> None:
        """Enter with the token that is here. Each entry raises the fence by one."""
        self.using = True  # RT:AP4
        self.fence += 1
        self.enter_cs(SLOT, self.fence)

    def slots(self) -> tuple[int, ...]:
        return (SLOT,) if self.holder == self.me else ()
