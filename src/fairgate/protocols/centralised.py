"""The centralised gate: one server with one queue. It is not fault tolerant, but hard to beat on anything else.

Theory of operation. The root is the server. It keeps the free ones of the k tokens, the last fence of each token, and a
queue of waiting clients. A client asks with REQUEST, the server lends it a token with GRANT, and RELEASE returns it.
RELEASE names the slot, because the client's next REQUEST may overtake it. Then, to the server, the client
holds one token and waits for another, and the slot tells which of the two comes back.

The root may be a client too; its own requests need no messages.
"""

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup


@message("ce.request")
class Request(Message):
    """Client r wants to enter."""

    r: Id


@message("ce.grant", tokens=1)
class Grant(Message):
    """The receiver may enter, with this slot and this fence."""

    slot: int
    fence: int


@message("ce.release", tokens=1)
class Release(Message):
    """The sender returns the token of this slot."""

    slot: int


@node
class Centralised(Mutex):
    about = About(
        name="centralised",
        paper="none (textbook)",
        kind="token",
        cost="3, or 0 at the server",
        slots=True,
        symmetric=True,
    )
    shown = "token=slot inside free queue"

    root: Fixed[Id]
    slot: int = NIL  # the token this client holds
    # The remaining fields are used by the server only.
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
        """Lend the slot to client r. Each loan raises the slot's fence by one."""
        self.fences[slot] += 1
        if r == self.me:
            self.slot = slot
            self.enter_cs(slot, self.fences[slot])
        else:
            self.out.send(r, Grant(slot, self.fences[slot]))

    def alone(self) -> bool:
        return self.me == self.root and self.slot != NIL and not self.queue

    def retaken(self, times: int) -> None:
        if self.me == self.root:  # otherwise a census has moved the server, and started a higher epoch of fences
            self.fences[self.slot] += times

    def slots(self) -> tuple[int, ...]:
        return tuple(self.free) if self.slot == NIL else (self.slot, *self.free)
