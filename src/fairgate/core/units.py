"""Units of time. Users give seconds; the code computes with integer nanoseconds.

A clock ends before NEVER, so compiled code can add any delay below NEVER to any moment in 64 bits. Sums of times, such
as the total wait of a run, take 128 bits there (units.pxd).
"""

from fairgate.errors import BadInput

SECOND = 1_000_000_000
NEVER = 1 << 62  # later than any moment: 146 years


def seconds_to_ns(seconds: float) -> int:
    """The same time in nanoseconds; raises BadInput if it is NEVER or later."""
    if not seconds * SECOND < NEVER:
        raise BadInput(f"{seconds:g} s is too long: every time must be below {NEVER // SECOND:,} s (146 years)")
    return round(seconds * SECOND)


def left(at: int, now: int) -> int:
    """The time left until a moment, which is how a key contains it. NEVER stays NEVER."""
    return NEVER if at == NEVER else at - now


def moment(left: int, now: int) -> int:
    """The inverse of `left`."""
    return NEVER if left == NEVER else now + left
