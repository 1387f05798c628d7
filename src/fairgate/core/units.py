"""People speak of seconds; the code of integer nanoseconds."""

SECOND = 1_000_000_000


def seconds_to_ns(seconds: float) -> int:
    return round(seconds * SECOND)


NEVER = 1 << 62  # a moment that does not come
