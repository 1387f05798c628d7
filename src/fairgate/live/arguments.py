"""Checks of the arguments of requests, for both APIs. net/roster.py checks those of gates."""

from typing import TypeGuard

from fairgate.core.units import SECOND
from fairgate.errors import BadInput

LONGEST = 1e9  # seconds, about 31 years: longer times overflow timers


def check_request(timeout: object, note: object) -> None:
    """BadInput if one of these arguments of `acquire` is invalid. A timeout below 0 counts as 0."""
    if timeout is not None and not (is_number(timeout) and -LONGEST <= timeout <= LONGEST):
        raise BadInput(f"timeout must be a number of seconds up to {LONGEST:g}, or None, not {timeout!r:.60}")
    if not isinstance(note, str):
        raise BadInput(f"note must be a string, not {note!r:.60}")


def lease_time(lease: object) -> int:
    """The lease in nanoseconds; 0 for None. BadInput if it is not a positive number."""
    if lease is None:
        return 0
    if not (is_number(lease) and 0 < lease <= LONGEST):
        raise BadInput(f"lease must be a number of seconds, more than 0 and up to {LONGEST:g}, not {lease!r:.60}")
    return int(lease * SECOND)


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
