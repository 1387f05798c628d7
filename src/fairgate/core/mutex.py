"""The base class of all mutual exclusion protocols: numbered requests, and how to cancel them.

The papers define Request_CS, Release_CS and entering the critical section. A protocol implements `request_cs` and
`release_cs`, and calls `enter_cs` when its turn has come. This class connects them to the numbered requests of the
contract. `requesting_cs` is FK's variable: true from Request_CS to Release_CS.

A cancelled request keeps its place in the protocol's queues. If the same node makes another request before the turn
comes, that request takes over the place. Otherwise the turn is released as soon as it comes. So cancelling works the
same way in every protocol, sends no message, and cannot leak a permit.
"""

from fairgate.core import authors
from fairgate.core.about import About
from fairgate.core.declare import DERIVED, check_complete, declared, no_handler
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

COMPLETE: set[type] = set()  # whose nodes have a value for each field


class Mutex(Node):
    __slots__ = ("inside", "request", "requesting_cs")

    about = About(name="", paper="", kind="", cost="")  # every protocol defines its own

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        if setup.k > 1 and not self.about.many:
            raise ValueError(f"{self.about.name} lets one in at a time: k must be 1, not {setup.k}")
        self.request = NIL  # number of the request that is waiting or inside
        self.requesting_cs = False
        self.inside = False
        Node.set_up(self, me, setup, out)
        if type(self) not in COMPLETE:
            check_complete(self)
            COMPLETE.add(type(self))

    # What a protocol implements.

    def request_cs(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no method request_cs")

    def release_cs(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no method release_cs")

    def again_cs(self) -> None:
        """Release_CS, then Request_CS. A protocol may override this if it can do both with fewer messages."""
        self.requesting_cs = False
        self.release_cs()
        self.requesting_cs = True
        self.request_cs()

    # What a protocol calls.

    def enter_cs(self, slot: int, fence: int) -> None:
        """This node's turn has come: grant the request, or release the turn if the request was cancelled."""
        assert self.requesting_cs, "a turn came to a node that never asked for one"
        assert not self.inside, "a turn came to a node that is inside"
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
        """End a permit that was lost instead of released: the protocol has nothing left to give back."""
        request = self.request
        self.request = NIL
        self.inside = False
        self.requesting_cs = False
        self.out.lost(request, why)

    def unhandled(self, msg: Message) -> None:
        """A message has arrived that no handler takes."""
        raise TypeError(no_handler(type(self), type(msg)))

    # For a driver that lets a user re-enter without asking the node, where that is certainly safe (live/gate.py).

    def alone(self) -> bool:
        """Could the user inside leave and re-enter at once? True only if this node knows of no waiter anywhere."""
        return False

    def retaken(self, times: int) -> None:
        """The user has re-entered this many times, each time with the next fence: continue after those."""
        raise NotImplementedError

    # For a census (recovery/regenerate.py), which makes requests in a given order.

    def logical_time(self) -> int:
        """This node's logical clock, if its requests are ordered by one."""
        return 0

    def hear_time(self, time: int) -> None:
        """Advance the logical clock, as if a message with this time had arrived."""

    # What a driver calls.

    def on_acquire(self, request: int) -> None:
        if self.request != NIL:
            raise RuntimeError(f"request {request} while {self.request} is pending: a seat has one request at a time")
        self.request = request
        if self.requesting_cs:
            self.out.note("a request took over a cancelled turn")
        else:
            self.requesting_cs = True
            self.request_cs()

    def on_release(self, request: int) -> None:
        if request == self.request and self.inside:
            self.leave_cs()

    def on_again(self, released: int, request: int) -> None:
        if released == self.request and self.inside:
            self.request = request
            self.inside = False
            self.again_cs()
        else:
            self.on_acquire(request)

    def on_cancel(self, request: int) -> None:
        if request == self.request:
            if self.inside:
                self.leave_cs()  # cancelling a granted request releases it
            else:
                self.request = NIL


declared(Mutex, {"request": int, "requesting_cs": bool, "inside": bool})  # part of every protocol's state


def check_protocol(protocol: type[Mutex], name: str) -> None:
    """Raise BadDeclaration unless this class is a declared protocol of this name."""
    authors.check_protocol(protocol, name, DERIVED)


def asks_again(protocol: type[Mutex]) -> bool:
    """Whether the protocol can leave and ask again with fewer messages than in two steps."""
    return protocol.again_cs is not Mutex.again_cs
