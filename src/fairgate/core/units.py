"""Units of time. Users give seconds; the code computes with integer nanoseconds."""

SECOND = 1_000_000_000


def seconds_to_ns(seconds: float) -> int:
    return round(seconds * SECOND)


NEVER = 1 << 62  # later than any moment


def left(at: int, now: int) -> int:
    """The time left until a moment, which is how a key contains it. NEVER stays NEVER."""
    return NEVER if at == NEVER else at - now


def moment(left: int, now: int) -> int:
    """The inverse of `left`."""
    return NEVER if left == NEVER else now + left
