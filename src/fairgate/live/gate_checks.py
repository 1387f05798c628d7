"""Small questions about the users, fences and errors of a gate."""

from fairgate.core.fences import FENCE_COUNT_BITS
from fairgate.core.ids import NIL
from fairgate.live.ticket import LOST, Ticket

LATE = 1 << 31  # a view has 2^32 fences: ask for a new view when half of them are used


def described(wrong: Exception) -> str:
    return f"{type(wrong).__name__}: {wrong!s:.200}"


def is_late(fence: int) -> bool:
    """Whether the fences of this view are running out. An overflow would yield a fence of the next view."""
    return fence != NIL and fence & (1 << FENCE_COUNT_BITS) - 1 > LATE


def stopping(tickets: dict[int, Ticket]) -> list[Ticket]:
    """Users that were told to stop because of the lease, and may not have done so."""
    return [ticket for ticket in tickets.values() if ticket.state == LOST]
