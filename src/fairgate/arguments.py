"""Checks of the arguments of both APIs: BadInput, in one line, whatever the type of the argument."""

from fairgate.errors import BadInput

LONGEST = 1e9  # seconds, about 31 years: longer times overflow timers
SHORTEST_LEASE = 0.001  # seconds: a shorter one would be over before its permit is used
FOREVER = -1  # a timeout, as in threading
SINGLE = 1  # the usual n. Only this very object needs no check: True and 1.0 are equal to it
LONGEST_NAME = 200
MOST_K = 1000  # in a cluster, the memory of a gate grows with the square of k
SECOND = 1_000_000_000  # ns
LONG_AGO = 1  # ns on CLOCK_BOOTTIME: the end of what is over
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


def shown(value: object) -> str:
    """For an error message. Python refuses to print integers with thousands of digits."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return "an integer with thousands of digits"


def check_k(k: object) -> None:
    if not is_whole(k) or not 1 <= k <= MOST_K:
        raise BadInput(f"k must be a whole number from 1 to {MOST_K}, not {shown(k)}")


def check_seed(seed: object) -> None:
    """Refuses negative seeds, because Python's generator makes the same numbers from -1 as from 1."""
    if not is_whole(seed) or seed < 0:
        raise BadInput(f"the seed must be a whole number, 0 or more, not {shown(seed)}")


def check_request(timeout: object, note: object, n: object) -> float | None:
    """The arguments of `acquire`. Returns how many seconds to wait; None is forever. A gate refuses n above its k."""
    seconds: float | None = None
    if is_number(timeout) and 0 <= timeout <= LONGEST:
        seconds = timeout
    elif timeout is not None and timeout != FOREVER:
        raise BadInput(
            f"timeout must be a number of seconds from 0 to {LONGEST:g}, or None or -1 to wait forever, not"
            f" {shown(timeout)}"
        )
    if not isinstance(note, str):
        raise BadInput(f"note must be a string, not {note!r:.60}")
    if not is_whole(n) or not 1 <= n <= MOST_K:
        raise BadInput(f"n must be a whole number of permits from 1 to {MOST_K}, not {shown(n)}")
    return seconds


def lease_time(lease: object) -> int:
    """The lease in nanoseconds; 0 for None."""
    if lease is None:
        return 0
    if not (is_number(lease) and SHORTEST_LEASE <= lease <= LONGEST):
        raise BadInput(f"lease must be a number of seconds from {SHORTEST_LEASE} to {LONGEST:g}, not {shown(lease)}")
    return int(lease * SECOND)


def given(**options: object) -> "dict[str, Any]":
    """Those that the caller has chosen: None stands for the default."""
    return {name: value for name, value in options.items() if value is not None}


TYPE_CHECKING = False  # importing `typing` takes longer than everything else that `fairgate run` does before it waits
if TYPE_CHECKING:
    from typing import Any, TypeGuard


def is_number(value: object) -> "TypeGuard[float]":
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> "TypeGuard[int]":
    return isinstance(value, int) and not isinstance(value, bool)
