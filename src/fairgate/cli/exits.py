"""Exit codes and error lines of all commands. It imports only what `fairgate run` needs, so that `run` starts fast."""

import logging
import sys

GOOD, WRONG, BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141


def complain(what: object) -> None:
    """Print one error line to stderr."""
    print(f"fairgate: {what}", file=sys.stderr)


def log_as_complaints() -> None:
    """Print the warnings of live peers as error lines: a lost permit, a gate of the same name in another directory."""
    logging.basicConfig(format="fairgate: %(message)s", level=logging.WARNING)
