"""People speak of seconds; the code of integer nanoseconds."""

SECOND = 1_000_000_000


def seconds_to_ns(seconds: float) -> int:
    return round(seconds * SECOND)


NEVER = 1 << 62  # a moment that does not come


def left(at: int, now: int) -> int:
    """A moment as a key has it: how far away it is."""
    return NEVER if at == NEVER else at - now


def moment(left: int, now: int) -> int:
    """The opposite of `left`."""
    return NEVER if left == NEVER else now + left
