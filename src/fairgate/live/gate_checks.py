"""Small questions about the users, fences, errors and early messages of a gate."""

from fairgate.core.fences import FENCE_COUNT_BITS
from fairgate.core.ids import NIL, peer_of
from fairgate.core.message import Message
from fairgate.live.ticket import LOST, Ticket

LATE = 1 << 31  # a view has 2^32 fences: ask for a new view when half of them are used

MOST_EARLY = 1024  # messages of one peer for views that we do not know yet

EarlyMessage = tuple[int, int, Message]  # destination, source, message


def described(wrong: Exception) -> str:
    return f"{type(wrong).__name__}: {wrong!s:.200}"


def is_late(fence: int) -> bool:
    """Whether the fences of this view are running out. An overflow would yield a fence of the next view."""
    return fence != NIL and fence & (1 << FENCE_COUNT_BITS) - 1 > LATE


def stopping(tickets: dict[int, Ticket]) -> list[Ticket]:
    """Users that were told to stop because of the lease, and may not have done so."""
    return [ticket for ticket in tickets.values() if ticket.state == LOST]


def keep_early(early: dict[int, list[EarlyMessage]], message: EarlyMessage) -> None:
    """The sender has heard of a new view before us. ValueError if it has sent too many such messages."""
    kept = early.setdefault(peer_of(message[1]), [])
    if len(kept) >= MOST_EARLY:
        raise ValueError(f"more than {MOST_EARLY} messages for a view that nobody else knows")
    kept.append(message)
