"""A lock service with leases, after Gray and Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism" (1989).

Theory of operation. The root has k slots and a queue. A free slot is offered to the next in the queue
with a new fence (Grant), and a timer at the root limits how long the slot can stay away. An offer lets
nobody in, for nobody knows how long it was under way. The client asks for the lease instead (Renew),
notes its own time as it asks, and is inside once the root has confirmed (Renewed), until one `lease`
after *asking*. The root's timer starts later, when the question comes, and runs longer, by the bound on
how far two clocks can run apart (`drift`). So however long messages take, the client is out before
the root gives the slot away, and no clock is ever compared with another one, only rates are.

The client renews at a third of its lease. If the lease is over first, its permit is lost. It tells the
root nothing then: the time until the root's own timer is over is left for whoever was inside to stop.
A Renew with an old fence is answered Gone; a client that still wants in asks again.

At most one Renew of a client is unanswered, and only the answer to that one (`n`) counts. With offers
taken in rising order of fences, this keeps two out of one slot whatever the network loses,
duplicates or reorders. That everybody gets in needs messages that arrive: over a lossy network, a channel.

The root is a client without a lease: it gives the slots, so it knows that its own is not given away. If
the root crashes the gate stands still.
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
GIVEN_AWAY = "the slot was given away"  # why a permit was lost: a clock ran further apart than `drift`


@message("le.request")
class Request(Message):
    """Put me in the queue."""


@message("le.grant")
class Grant(Message):
    """The slot is yours for now, if you ask for its lease."""

    slot: int
    fence: int


@message("le.renew")
class Renew(Message):
    """Question n: is it still mine? Then a lease, from the moment I ask."""

    slot: int
    fence: int
    n: int


@message("le.renewed")
class Renewed(Message):
    """Question n: yes."""

    slot: int
    fence: int
    n: int


@message("le.gone")
class Gone(Message):
    """No: that fence is over, whatever the question."""

    slot: int
    fence: int


@message("le.release")
class Release(Message):
    """I need the slot no more."""

    slot: int
    fence: int


@node
class Leased(Mutex):
    timed = True
    about = About(
        name="leased",
        paper="Gray and Cheriton 1989 (leases)",
        kind="token",
        cost="5, and 2 for every third of a lease inside",
        survives=("crash of a client", "loss over a channel", "duplication over a channel"),
        slots=True,
    )

    lease: Option[int] = LEASE
    drift: Option[int] = DRIFT
    hold_time: Fixed[int]  # how long a slot may stay away
    root: Fixed[Id]
    # The client's side.
    slot: int = NIL  # what it was offered, or is in
    fence: int = NIL  # of its last offer, also when that is over
    renewing: bool = False  # is question n unanswered?
    n: int = 0
    until: int = 0  # the end of the lease, if question n is answered with yes
    # The root's side.
    queue: list[Id] = []
    fences: list[int] = []  # by slot; NIL if it is free
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
            self.out.note("an offer nobody asked for")  # its time at the root will run out
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
        self.until = self.now + self.lease  # counted from asking: the root's timer starts later
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
