"""One request of one user: the state that the engine and the user's thread share.

It changes only under the engine's lock. `wake` is called there whenever the request is granted, refused or lost. The
user's thread reads it without the lock, so the state is stored last.
"""

from collections.abc import Callable

from fairgate.core.ids import NIL
from fairgate.errors import FairgateError

NEW, WAITING, INSIDE, LOST, OVER = "new", "waiting", "inside", "lost", "over"
NO_DEADLINE = 0
NO_GUEST = (0, 0)


def nobody() -> bool:
    return True


class Ticket:
    # fmt: off
    __slots__ = (
        "asked", "deadline", "entered", "error", "fence", "guest", "ident", "lease", "note", "number", "retakes",
        "slot", "state", "wake", "why"
    )
    # fmt: on

    def __init__(self, wake: Callable[[], bool] = nobody, lease: int = 0, note: str = "") -> None:
        self.wake = wake
        self.lease = lease  # ns; 0 means no lease
        self.note = note  # shown by `fairgate who`
        self.guest = NO_GUEST  # the process that it is for, and its user, if that is not this one
        self.state = NEW
        self.ident = NIL  # its seat
        self.number = NIL
        self.retakes = 0  # entries that its node has not been told of (see gate.py)
        self.asked = 0  # ns on the engine's clock
        self.entered = 0
        self.slot = NIL
        self.fence = NIL
        self.deadline = NO_DEADLINE  # ns on the engine's clock
        self.why = ""  # the reason, if it was lost
        self.error: FairgateError | None = None  # the reason, if it was refused

    def is_over(self) -> bool:
        """Whether the wait has ended, with whatever result."""
        return self.state != WAITING

    def let_in(self, now: int, slot: int, fence: int) -> None:
        """Grants the permit. The caller then calls `wake`, which returns False if the user is gone."""
        self.entered = now
        self.slot = slot
        self.fence = fence
        if self.lease:
            self.deadline = now + self.lease
        self.state = INSIDE

    def again(self, now: int, note: str) -> "Ticket":
        """The next ticket of the same seat, for an entry that the seat's node is not told of."""
        ticket: Ticket = Ticket.__new__(Ticket)  # twice as fast as calling `__init__`
        ticket.wake = nobody
        ticket.lease = 0
        ticket.note = note
        ticket.guest = NO_GUEST
        ticket.deadline = NO_DEADLINE
        ticket.why = ""
        ticket.error = None
        ticket.state = INSIDE
        ticket.ident = self.ident
        ticket.number = self.number
        ticket.retakes = self.retakes + 1
        ticket.asked = ticket.entered = now
        ticket.slot = self.slot
        ticket.fence = self.fence + 1
        return ticket

    def refuse(self, error: FairgateError) -> None:
        self.error = error
        self.state = OVER
        self.wake()

    def lose(self, why: str) -> None:
        self.why = why
        self.state = LOST
        self.wake()
