"""Small questions about the users, fences, errors and early messages of a gate."""

from collections.abc import Iterator

from fairgate.core.fences import FENCE_COUNT_BITS
from fairgate.core.ids import NIL, peer_of
from fairgate.core.message import Message, decode
from fairgate.live.ticket import LOST, Ticket
from fairgate.net.codec import Decoder, encode

LATE = 1 << 31  # a view has 2^32 fences: ask for a new view when half of them are used

MOST_EARLY = 1 << 23  # bytes of one peer's messages for views that we do not know yet
MOST_EARLY_OF_ALL = 1 << 25  # of those of all peers


def described(wrong: Exception) -> str:
    return f"{type(wrong).__name__}: {wrong!s:.200}"


def is_late(fence: int) -> bool:
    """Whether the fences of this view are running out. An overflow would yield a fence of the next view."""
    return fence != NIL and fence & (1 << FENCE_COUNT_BITS) - 1 > LATE


def stopping(tickets: dict[int, Ticket]) -> list[Ticket]:
    """Users that were told to stop because of the lease, and may not have done so."""
    return [ticket for ticket in tickets.values() if ticket.state == LOST]


class EarlyMessages:
    """Messages of senders that have heard of a new view before us, until we hear of it.

    They are kept as they came. A message takes up to thirty times as much memory once it is decoded, and may be from
    anyone who is admitted.
    """

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.sizes: dict[int, int] = {}  # by peer

    def keep(self, dst: int, src: int, msg: Message) -> None:
        """ValueError if there are too many."""
        peer, frame = peer_of(src), encode((dst, src, msg.key()))
        size = self.sizes.get(peer, 0) + len(frame)
        if size > MOST_EARLY or sum(self.sizes.values()) + len(frame) > MOST_EARLY_OF_ALL:
            raise ValueError("too many messages for a view that nobody else knows")
        self.frames.append(frame)
        self.sizes[peer] = size

    def take(self) -> Iterator[tuple[int, int, Message]]:
        """Destination, source and message of each. None is left."""
        frames, self.frames, self.sizes = self.frames, [], {}
        for frame in frames:
            ((dst, src, key),) = Decoder().feed(frame)
            yield dst, src, decode(key)
