"""The part that every mutual exclusion protocol shares: numbered requests, and cancelling them.

The papers speak of Request_CS, Release_CS and of entering. A protocol writes just those three, as
`request_cs`, `release_cs` and a call of `enter_cs`; here they meet the numbered requests of the
contract. `requesting_cs` is FK's variable: true from Request_CS to Release_CS.

A cancelled request leaves its turn where it is in the queues: the next request of the same node takes
the turn over, and a turn that comes with nobody to use it is released at once. So cancelling works in
every protocol alike, sends nothing, and can leak nothing.
"""

from fairgate.core.about import About
from fairgate.core.declare import declared
from fairgate.core.ids import NIL
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup


class Mutex(Node):
    __slots__ = ("inside", "request", "requesting_cs")

    about = About(name="", paper="", kind="", cost="")  # every protocol says its own

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        if setup.k > 1 and not self.about.many:
            raise ValueError(f"{self.about.name} lets one in at a time: k must be 1, not {setup.k}")
        self.request = NIL  # the number of the request that waits or is inside
        self.requesting_cs = False
        self.inside = False
        Node.set_up(self, me, setup, out)

    # What the protocol writes.

    def request_cs(self) -> None:
        raise NotImplementedError

    def release_cs(self) -> None:
        raise NotImplementedError

    # What it calls when the turn has come.

    def enter_cs(self, slot: int, fence: int) -> None:
        assert self.requesting_cs, "a turn came to a node that never asked for one"
        if self.request == NIL:
            self.out.note("a turn came for a cancelled request")
            self.leave_cs()
        else:
            self.inside = True
            self.out.granted(self.request, slot, fence)

    def leave_cs(self) -> None:
        self.request = NIL
        self.inside = False
        self.requesting_cs = False
        self.release_cs()

    def lose_cs(self, why: str) -> None:
        """The permit of whoever is inside is over, and not by a release: the protocol has nothing left to give back."""
        request = self.request
        self.request = NIL
        self.inside = False
        self.requesting_cs = False
        self.out.lost(request, why)

    # For a driver that lets a user in again by itself, where that is certain to be right (live/gate.py).

    def alone(self) -> bool:
        """Whoever is inside here could come again at once, for nobody waits anywhere as far as this node knows."""
        return False

    def retaken(self, times: int) -> None:
        """It did, so often: the fences go on from there."""
        raise NotImplementedError

    # What the driver calls.

    def on_acquire(self, request: int) -> None:
        if self.request != NIL:
            raise RuntimeError(f"request {request} while {self.request} is under way: a seat has one at a time")
        self.request = request
        if self.requesting_cs:
            self.out.note("a request took over a cancelled turn")
        else:
            self.requesting_cs = True
            self.request_cs()

    def on_release(self, request: int) -> None:
        if request == self.request and self.inside:
            self.leave_cs()

    def on_cancel(self, request: int) -> None:
        if request == self.request:
            if self.inside:
                self.leave_cs()  # a cancel after granted is a release
            else:
                self.request = NIL


declared(Mutex, {"request": int, "requesting_cs": bool, "inside": bool})  # the state that every protocol has
