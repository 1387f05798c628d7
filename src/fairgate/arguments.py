"""Checks of the arguments of both APIs: BadInput, in one line, whatever the type of the argument."""

from fairgate.errors import BadInput

LONGEST = 1e9  # seconds, about 31 years: longer times overflow timers
LONGEST_NAME = 200
MOST_K = 1000  # in a cluster, the memory of a gate grows with the square of k
SECOND = 1_000_000_000  # ns
ONE, MANY = "bv95", "one_line"  # the protocols of clusters, by default: for k=1, and for more


def check_gate(name: object, k: object) -> None:
    check_name(name, LONGEST_NAME)
    check_k(k)


def check_name(name: object, longest: int) -> None:
    if not (isinstance(name, str) and 0 < len(name) <= longest and name.isprintable()):
        raise BadInput(f"{name!r:.60} is not a valid gate name: use 1 to {longest} printable characters")
    if not name.isascii() and (size := len(name.encode())) > longest:  # file systems count bytes
        raise BadInput(f"{name!r:.60} is too long for a gate name: it takes {size} bytes, and {longest} are allowed")


def printable(text: str) -> str:
    """The text without characters that could move the cursor or change colours: others have written it."""
    return "".join([char if char.isprintable() else "?" for char in text])


def check_k(k: object) -> None:
    if not is_whole(k) or not 1 <= k <= MOST_K:
        raise BadInput(f"k must be a whole number from 1 to {MOST_K}, not {k!r:.60}")


def check_seed(seed: object) -> None:
    """Refuses negative seeds, because Python's generator makes the same numbers from -1 as from 1."""
    if not is_whole(seed) or seed < 0:
        raise BadInput(f"the seed must be a whole number, 0 or more, not {seed!r:.60}")


def check_request(timeout: object, note: object, n: object) -> None:
    """The arguments of `acquire`. A timeout below 0 counts as 0."""
    if timeout is not None and not (is_number(timeout) and -LONGEST <= timeout <= LONGEST):
        raise BadInput(f"timeout must be a number of seconds up to {LONGEST:g}, or None, not {timeout!r:.60}")
    if not isinstance(note, str):
        raise BadInput(f"note must be a string, not {note!r:.60}")
    if not is_whole(n) or n < 1:
        raise BadInput(f"n must be a whole number of permits, 1 or more, not {n!r:.60}")


def lease_time(lease: object) -> int:
    """The lease in nanoseconds; 0 for None."""
    if lease is None:
        return 0
    if not (is_number(lease) and 0 < lease <= LONGEST):
        raise BadInput(f"lease must be a number of seconds, more than 0 and up to {LONGEST:g}, not {lease!r:.60}")
    return int(lease * SECOND)


TYPE_CHECKING = False  # importing `typing` takes longer than everything else that `fairgate run` does before it waits
if TYPE_CHECKING:
    from typing import TypeGuard


def is_number(value: object) -> "TypeGuard[float]":
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> "TypeGuard[int]":
    return isinstance(value, int) and not isinstance(value, bool)
