"""The centralised gate: one server, one queue. Not fault tolerant, and hard to beat on anything else.

Theory of operation. The root keeps the k tokens that are free, the last fence of each, and the queue of
those who wait. REQUEST asks, GRANT lends a token, RELEASE brings it back. RELEASE names its slot, because
a client's next REQUEST may overtake it: the server then simply has a client that holds one token and
waits for another, and never has to guess which one came back.

The root may be a client too; it asks, enters and leaves without a message.
"""

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup


@message("ce.request")
class Request(Message):
    """r wants in."""

    r: Id


@message("ce.grant", tokens=1)
class Grant(Message):
    """You are inside, in this slot, with this fence."""

    slot: int
    fence: int


@message("ce.release", tokens=1)
class Release(Message):
    """The token of this slot comes back."""

    slot: int


@node
class Centralised(Mutex):
    about = About(
        name="centralised",
        paper="none: the textbook's server",
        kind="token",
        cost="3, or 0 at the server",
        slots=True,
        symmetric=True,
    )
    shown = "token=slot inside free queue"

    root: Fixed[Id]
    slot: int = NIL  # the token this client holds
    # The rest is the server's.
    free: list[int]
    fences: list[int]
    queue: list[Id] = []

    def initialize(self, setup: Setup) -> None:
        self.root = setup.root
        slots = setup.k if self.me == self.root else 0
        self.free = list(range(slots))
        self.fences = [setup.first_fence] * slots

    # The client.

    def request_cs(self) -> None:
        if self.me == self.root:
            self.serve(self.me)
        else:
            self.out.send(self.root, Request(self.me))

    def release_cs(self) -> None:
        slot: int = self.slot
        self.slot = NIL
        if self.me == self.root:
            self.take_back(slot)
        else:
            self.out.send(self.root, Release(slot))

    def on_grant(self, m: Grant) -> None:
        self.slot = m.slot
        self.enter_cs(m.slot, m.fence)

    # The server.

    def on_request(self, m: Request) -> None:
        self.serve(m.r)

    def on_release_message(self, m: Release) -> None:
        self.take_back(m.slot)

    def serve(self, r: Id) -> None:
        if self.free:
            self.lend(self.free.pop(0), r)
        else:
            self.queue.append(r)

    def take_back(self, slot: int) -> None:
        if self.queue:
            self.lend(slot, self.queue.pop(0))
        else:
            self.free.append(slot)

    def lend(self, slot: int, r: Id) -> None:
        """Each loan of a slot is one fence further."""
        self.fences[slot] += 1
        if r == self.me:
            self.slot = slot
            self.enter_cs(slot, self.fences[slot])
        else:
            self.out.send(r, Grant(slot, self.fences[slot]))

    def alone(self) -> bool:
        return self.me == self.root and self.slot != NIL and not self.queue

    def retaken(self, times: int) -> None:
        if self.me == self.root:  # else a census has moved the server since, and its fences are past all of those
            self.fences[self.slot] += times

    def tokens(self) -> int:
        return len(self.free) + int(self.slot != NIL)
