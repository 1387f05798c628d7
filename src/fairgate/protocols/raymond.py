"""Raymond's k-mutual exclusion [Ray89], as described in section 4 of RF.

Theory of operation. As in Ricart and Agrawala's algorithm, a node that wants to enter asks all others, and a node that
is inside, or whose own request is earlier, defers its reply. But N-k permissions are enough: then at most k-1 others
can be inside. So a request may end while replies to it are still outstanding. `reply_count[j]` is the number of
outstanding replies from j. Only the reply that brings it to zero is a permission for the current request. Replies that
j has deferred arrive together, as one REPLY with their number.

Names and order are the paper's. The labels are the line numbers of its Algorithm 1 (papers/raymond_fd.md). This file
contains the lines for the case without faults, and raymond_fd.py those that handle crashes. That is why `n` and
`others` are fields although they never change here.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Ids, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

NOT_REQUESTING = 0
REQUESTING = 1
CS = 2
STATES = ("not_requesting", "requesting", "CS")


@message("ry.request")
class Request(Message):
    """REQUEST(i, last_i): the sender, i, requests one of the k units."""

    last: int


@message("ry.reply")
class Reply(Message):
    """REPLY(j, x): x replies of the sender, j, in one message."""

    x: int


@node
class Raymond(Mutex):
    about = About(
        name="raymond",
        paper="RF [Ray89]",
        kind="permission",
        cost="2N-k-1 to 2N-2",
    )

    k: Fixed[int]
    others: Fixed[Ids]
    n: Fixed[int]
    state: int = NOT_REQUESTING
    H: int = 0  # RF:2
    last: int = 0
    perm_count: int = 0  # RF:3
    reply_count: dict[int, int]
    defer_count: dict[int, int]

    def initialize(self, setup: Setup) -> None:
        self.k = setup.k
        self.others = tuple([j for j in setup.members if j != self.me])
        self.n = setup.n  # RF:1
        self.reply_count = dict.fromkeys(self.others, 0)  # RF:4
        self.defer_count = dict.fromkeys(self.others, 0)  # RF:5

    def request_cs(self) -> None:
        self.state = REQUESTING  # RF:10
        self.last = self.H + 1  # RF:11
        self.perm_count = 0  # RF:12
        for j in self.others:  # RF:13
            self.out.send(j, Request(self.last))  # RF:14
            self.reply_count[j] += 1
        self.await_permissions()

    def await_permissions(self) -> None:
        """The wait in line 15. It is evaluated again whenever perm_count or n has changed."""
        if self.state == REQUESTING and self.perm_count >= self.n - self.k:  # RF:15
            self.state = CS  # RF:16
            self.enter_cs(NIL, NIL)

    def release_cs(self) -> None:
        self.state = NOT_REQUESTING  # RF:17
        for j in self.others:
            if self.defer_count[j] != 0:  # RF:18
                self.out.send(j, Reply(self.defer_count[j]))  # RF:19
                self.defer_count[j] = 0  # RF:20

    def on_request(self, j: int, m: Request) -> None:
        assert m.last < 1 << 62, "no clock gets there, and one beyond it would overflow"
        self.H = max(self.H, m.last)  # RF:22
        if self.state == CS or (self.state == REQUESTING and self.goes_first(j, m.last)):  # RF:24
            self.defer_count[j] += 1  # RF:26
        else:
            self.out.send(j, Reply(1))  # RF:28

    def goes_first(self, j: int, last: int) -> bool:
        """Line 25, (last_i, i) < (last_j, j). The paper's last_j can only mean the timestamp in the message."""
        if self.last == last:
            return self.me < j
        return self.last < last  # RF:25

    def on_reply(self, j: int, m: Reply) -> None:
        self.reply_count[j] -= m.x  # RF:31
        if self.permitted_by(j):
            self.perm_count += 1  # RF:33
            self.await_permissions()

    def permitted_by(self, j: int) -> bool:
        """The condition in lines 32 and 41. In CS, further replies are no permissions; they only reduce reply_count."""
        settled: bool = self.reply_count[j] == 0
        return self.state == REQUESTING and settled  # RF:32

    def show(self) -> dict[str, Any]:
        return {
            "state": STATES[self.state],
            "n": self.n,
            "H": self.H,
            "last": self.last,
            "perm_count": self.perm_count,
            "reply_count": {j: x for j, x in self.reply_count.items() if x},
            "defer_count": {j: x for j, x in self.defer_count.items() if x},
        }
