"""Durations on the command line: a plain number is seconds, and units can be added, as in 500ms, 10m or 1h30m.

`fairgate run` reads its options with it, so it imports next to nothing.
"""

from fairgate.arguments import LONGEST, SECOND

UNITS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": 86400 * SECOND
}  # fmt: skip
EXAMPLES = "10 (seconds), 500ms, 10m or 1h30m"


class Duration(float):
    """The type of an option whose value is a duration. The value itself is a plain number of seconds."""


def nanoseconds(word: str) -> int | None:
    """The sum of the parts of a word such as 2.5ms or 1h30m; None if a number without its unit is left over."""
    total, rest = 0, word
    while rest:
        unit = rest.lstrip("0123456789.")
        count, rest = rest.removesuffix(unit), unit.lstrip("abcdefghijklmnopqrstuvwxyz")
        try:
            total += round(float(count) * UNITS[unit[: len(unit) - len(rest)]])
        except (KeyError, ValueError, OverflowError):
            return None
    return total if word else None


def seconds(word: str) -> float:
    """Raises ValueError, with what it must be, if the word is no duration."""
    try:
        value = -1.0 if "_" in word else float(word)  # Python's own notation
    except ValueError:
        parts = nanoseconds(word)
        value = -1.0 if parts is None else parts / SECOND
    if not 0 <= value <= LONGEST:
        raise ValueError(f"a duration up to {LONGEST:g} s, such as {EXAMPLES}")
    return value
