"""Log lines that others can cause: only a few a minute, so that nobody can fill the log."""

import logging
import time
from collections.abc import Callable

LINES, SECONDS = 20, 60.0


class RationedLog:
    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self.log = log
        self.clock = clock
        self.until = 0.0  # the end of the current minute
        self.left = 0
        self.omitted = 0

    def warning(self, text: str, *args: object) -> None:
        self.write(logging.WARNING, text, *args)

    def error(self, text: str, *args: object) -> None:
        self.write(logging.ERROR, text, *args)

    def write(self, level: int, text: str, *args: object) -> None:
        """Logs the line, unless there have been too many. How many were left out is said later."""
        now = self.clock()
        if now >= self.until:
            if self.omitted:
                self.log.warning("%d similar lines were left out", self.omitted)
            self.until, self.left, self.omitted = now + SECONDS, LINES, 0
        if self.left:
            self.left -= 1
            self.log.log(level, text, *args)
        else:
            self.omitted += 1
