"""Exit codes and error lines of all commands. It imports only what `fairgate run` needs, so that `run` starts fast."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fairgate.arguments import printable

GOOD, WRONG, BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141


def complain(what: object) -> None:
    """Print one error line to stderr, as far as there is one. It may quote what another process has written."""
    if sys.stderr is not None:
        text = "\n".join(map(printable, str(what).split("\n")))
        with suppress(OSError):  # a full disk, a closed pipe
            print(f"fairgate: {text}", file=sys.stderr, flush=True)


@contextmanager
def cleaning_up_on_sigterm() -> Iterator[None]:
    """Within it SIGTERM raises KeyboardInterrupt, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def log_as_complaints() -> None:
    """Print the warnings of live peers as error lines: a lost permit, a gate of the same name in another directory."""
    import logging  # noqa: PLC0415

    logging.basicConfig(format="fairgate: %(message)s", level=logging.WARNING)
