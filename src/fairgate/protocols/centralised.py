"""The centralised gate: one server, one queue. Not fault tolerant, and hard to beat on anything else.

Theory of operation. The root keeps the k tokens that are free, the last fence of each, and the queue of
those who wait. REQUEST asks, GRANT lends a token, RELEASE brings it back. RELEASE names its slot, because
a client's next REQUEST may overtake it: the server then simply has a client that holds one token and
waits for another, and never has to guess which one came back.

The root may be a client too; it asks, enters and leaves without a message.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message, register
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup


class Request(Message):
    """r wants in."""

    __slots__ = ("r",)
    tag = "ce.request"

    def __init__(self, r: int) -> None:
        self.r = r

    def key(self) -> Key:
        return (self.tag, self.r)


class Grant(Message):
    """You are inside, in this slot, with this fence."""

    __slots__ = ("fence", "slot")
    tag = "ce.grant"

    def __init__(self, slot: int, fence: int) -> None:
        self.slot = slot
        self.fence = fence

    def key(self) -> Key:
        return (self.tag, self.slot, self.fence)

    def tokens(self) -> int:
        return 1


class Release(Message):
    """The token of this slot comes back."""

    __slots__ = ("slot",)
    tag = "ce.release"

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def key(self) -> Key:
        return (self.tag, self.slot)

    def tokens(self) -> int:
        return 1


register(Request, Grant, Release)


class Centralised(Mutex):
    about = About(
        name="centralised",
        paper="none: the textbook's server",
        kind="token",
        cost="3, or 0 at the server",
        slots=True,
        ids={"key": (7,), "ce.request": (1,)},
    )

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Mutex.__init__(self, me, setup, out)
        self.root = setup.root
        self.slot = NIL  # the token this client holds
        slots = setup.k if me == self.root else 0  # the rest is the server's
        self.free: list[int] = list(range(slots))
        self.fences: list[int] = [setup.first_fence] * slots
        self.queue: list[int] = []

    # The client.

    def request_cs(self) -> None:
        if self.me == self.root:
            self.serve(self.me)
        else:
            self.out.send(self.root, Request(self.me))

    def release_cs(self) -> None:
        slot = self.slot
        self.slot = NIL
        if self.me == self.root:
            self.take_back(slot)
        else:
            self.out.send(self.root, Release(slot))

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Request):
            self.on_request(msg)
        elif isinstance(msg, Grant):
            self.on_grant(msg)
        elif isinstance(msg, Release):
            self.on_release_message(msg)

    def on_grant(self, m: Grant) -> None:
        self.slot = m.slot
        self.enter_cs(m.slot, m.fence)

    # The server.

    def on_request(self, m: Request) -> None:
        self.serve(m.r)

    def on_release_message(self, m: Release) -> None:
        self.take_back(m.slot)

    def serve(self, r: int) -> None:
        if self.free:
            self.lend(self.free.pop(0), r)
        else:
            self.queue.append(r)

    def take_back(self, slot: int) -> None:
        if self.queue:
            self.lend(slot, self.queue.pop(0))
        else:
            self.free.append(slot)

    def lend(self, slot: int, r: int) -> None:
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

    def key(self) -> Key:
        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            self.slot,
            tuple(self.free),
            tuple(self.fences),
            tuple(self.queue),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        (
            _,
            self.request,
            self.requesting_cs,
            self.inside,
            self.slot,
            free,
            fences,
            queue,
        ) = key
        self.free = list(free)
        self.fences = list(fences)
        self.queue = list(queue)

    def tokens(self) -> int:
        return len(self.free) + int(self.slot != NIL)

    def show(self) -> dict[str, Any]:
        return {
            "token": self.slot if self.slot != NIL else None,
            "inside": self.inside,
            "free": tuple(self.free),
            "queue": tuple(self.queue),
        }
