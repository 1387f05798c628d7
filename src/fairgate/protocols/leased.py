"""A lock service with leases, after Gray and Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism" (1989).

Theory of operation. The root has k slots and a queue. It offers a free slot, with a new fence, to the first client in
the queue (Grant), and starts a timer that limits how long the slot can stay away. The offer alone does not let the
client in, because the client cannot know how long the message was in transit. Instead, it asks for a lease (Renew) and
notes its own time. It is inside once the root has confirmed (Renewed), until one `lease` after it *asked*. The root
restarts its timer later, when the Renew arrives, and for longer: the bound on clock drift (`drift`) is added. So
however long messages take, the client's lease ends before the root gives the slot away. Clock readings are never
compared, only clock rates matter.

The client renews after a third of its lease. If the lease expires first, its permit is lost. It does not tell the root:
the remaining time on the root's timer is for the user to stop. The root answers a Renew with an old fence with Gone;
then a client that still wants to enter requests again.

A client has at most one unanswered Renew, and accepts the answer to that one only (number `n`). It accepts offers only
in rising order of fences. Together this keeps two clients out of one slot, whatever the network loses, duplicates or
reorders. Liveness needs reliable messages: on a lossy network, add a channel.

The root itself may be a client. It needs no lease, because it knows that it has not given its own slot away. If the
root crashes, the gate grants nothing more.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Option, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

LEASE = 10_000_000_000  # ns
DRIFT = 10_000  # parts per million
MILLION = 1_000_000
SLOT = "slot:"
GIVEN_AWAY = "the slot was given away"  # reason of a loss that only happens if clocks drift by more than `drift`


@message("le.request")
class Request(Message):
    """The sender asks to be put into the queue."""


@message("le.grant")
class Grant(Message):
    """The root offers the slot: the receiver may ask for its lease."""

    slot: int
    fence: int


@message("le.renew")
class Renew(Message):
    """Question n: is the slot still the sender's? If so, the lease starts from the moment of asking."""

    slot: int
    fence: int
    n: int


@message("le.renewed")
class Renewed(Message):
    """The answer to question n: yes."""

    slot: int
    fence: int
    n: int


@message("le.gone")
class Gone(Message):
    """The receiver no longer has the slot with this fence. This answers any Renew with that fence."""

    slot: int
    fence: int


@message("le.release")
class Release(Message):
    """The sender no longer needs the slot."""

    slot: int
    fence: int


@node
class Leased(Mutex):
    timed = True
    about = About(
        name="leased",
        paper="Gray and Cheriton 1989 (leases)",
        kind="token",
        cost="5, and 2 per third of a lease inside",
        survives=("crash of a client", "loss over a channel", "duplication over a channel"),
        slots=True,
    )

    lease: Option[int] = LEASE
    drift: Option[int] = DRIFT
    hold_time: Fixed[int]  # how long a slot may stay away from the root
    root: Fixed[Id]
    # Client.
    slot: int = NIL  # the slot it was offered or is in
    fence: int = NIL  # of its last offer, even if that is over
    renewing: bool = False  # is question n unanswered?
    n: int = 0
    until: int = 0  # end of the lease if the answer to question n is yes
    # Root.
    queue: list[Id] = []
    fences: list[int] = []  # by slot; NIL if the slot is free
    last_fence: int

    def initialize(self, setup: Setup) -> None:
        self.hold_time = self.lease + (self.lease // MILLION + 1) * self.drift  # lease * (1 + drift), rounded up
        self.root = setup.root
        self.last_fence = setup.first_fence
        if self.me == setup.root:
            self.fences = [NIL] * setup.k

    # The client.

    def request_cs(self) -> None:
        if self.me == self.root:
            self.enqueue(self.me)
        else:
            self.out.send(self.root, Request())

    def release_cs(self) -> None:
        slot = self.slot
        self.forget_slot()
        if self.me == self.root:
            self.give_back(slot, self.fence)
        else:
            self.out.send(self.root, Release(slot, self.fence))

    def on_grant(self, m: Grant) -> None:
        if not self.requesting_cs or self.slot != NIL or m.fence <= self.fence:
            self.out.note("an offer nobody asked for")  # the root takes the slot back when its timer expires
            return
        self.slot = m.slot
        self.fence = m.fence
        if self.request == NIL:
            self.out.note("an offer came for a cancelled request")
            self.leave_cs()
        else:
            self.renew()

    def renew(self) -> None:
        self.renewing = True
        self.n += 1
        self.until = self.now + self.lease  # counted from the question; the root's timer starts later
        self.out.send(self.root, Renew(self.slot, self.fence, self.n))

    def on_renewed(self, m: Renewed) -> None:
        if not self.renewing or not self.is_mine(m.slot, m.fence) or m.n != self.n:
            return
        self.renewing = False
        left: int = self.until - self.now
        if left <= 0:
            self.out.note("the answer took longer than the lease")
            self.renew()
            return
        self.set_timer("lease", left)
        self.set_timer("renew", max(left - self.lease * 2 // 3, 0))
        if not self.inside:
            self.enter_cs(self.slot, self.fence)

    def on_gone(self, m: Gone) -> None:
        if not self.is_mine(m.slot, m.fence):
            return
        self.forget_slot()
        if self.inside:
            self.lose_cs(GIVEN_AWAY)
        elif self.request == NIL:
            self.requesting_cs = False
        else:
            self.out.note("an offer ran out on its way")
            self.request_cs()

    def is_mine(self, slot: int, fence: int) -> bool:
        return slot == self.slot and fence == self.fence

    def forget_slot(self) -> None:
        self.slot = NIL
        self.renewing = False
        self.cancel_timer("lease")
        self.cancel_timer("renew")

    def on_timer(self, name: str) -> None:
        if name == "lease":
            self.forget_slot()
            self.lose_cs("lease over")
        elif name == "renew":
            self.renew()
        else:
            self.out.note("the root took a slot back")
            self.free(int(name.removeprefix(SLOT)))

    # The root.

    def on_request(self, src: int, m: Request) -> None:
        self.enqueue(src)

    def enqueue(self, client: Id) -> None:
        self.queue.append(client)
        self.serve()

    def serve(self) -> None:
        while self.queue and NIL in self.fences:
            self.offer(self.fences.index(NIL), self.queue.pop(0))

    def offer(self, slot: int, client: Id) -> None:
        self.last_fence += 1
        self.fences[slot] = self.last_fence
        if client == self.me:
            self.slot = slot
            self.fence = self.last_fence
            self.enter_cs(slot, self.last_fence)
        else:
            self.set_timer(f"{SLOT}{slot}", self.hold_time)
            self.out.send(client, Grant(slot, self.last_fence))

    def on_renew(self, src: int, m: Renew) -> None:
        if self.is_current(m.slot, m.fence):
            self.set_timer(f"{SLOT}{m.slot}", self.hold_time)
            self.out.send(src, Renewed(m.slot, m.fence, m.n))
        else:
            self.out.send(src, Gone(m.slot, m.fence))

    def on_release_message(self, m: Release) -> None:
        self.give_back(m.slot, m.fence)

    def give_back(self, slot: int, fence: int) -> None:
        if self.is_current(slot, fence):
            self.cancel_timer(f"{SLOT}{slot}")
            self.free(slot)

    def free(self, slot: int) -> None:
        self.fences[slot] = NIL
        self.serve()

    def is_current(self, slot: int, fence: int) -> bool:
        return 0 <= slot < len(self.fences) and self.fences[slot] == fence

    # The state.

    def until_key(self) -> int:
        return self.until - self.now if self.renewing else 0

    def load_until(self, key: int) -> None:
        self.until = self.now + key

    def show(self) -> dict[str, Any]:
        mine = {"slot": self.slot, "fence": self.fence, "inside": self.inside, "renewing": self.renewing}
        if self.me != self.root:
            return mine
        return {**mine, "queue": tuple(self.queue), "fences": tuple(self.fences)}
