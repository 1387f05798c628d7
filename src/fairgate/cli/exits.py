"""How commands end, and how they complain. No more is imported here than `fairgate run` needs: it is to start fast."""

import logging
import sys

GOOD, WRONG, BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141


def complain(what: object) -> None:
    print(f"fairgate: {what}", file=sys.stderr)


def log_as_complaints() -> None:
    """What peers have to say: a permit that is lost, a gate of the same name elsewhere."""
    logging.basicConfig(format="fairgate: %(message)s", level=logging.WARNING)
