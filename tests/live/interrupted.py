"""`python -m tests.live.interrupted SECONDS [SEED]`: acquires and releases in a loop, and carries on after each Ctrl-C.

At the end it prints how often it entered and how often it was interrupted. Then it stays, with everything that it may
have leaked, until stdin is closed.
"""

from __future__ import annotations

import signal
import sys
import time

from fairgate import sync


class Visitor:
    def __init__(self, gate: sync.Semaphore) -> None:
        self.gate = gate
        self.armed = False  # at most one Ctrl-C per visit, anywhere in it
        self.entries = 0
        self.interrupted = 0
        signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def visit(self) -> None:
        """A release that was interrupted before it started is repeated: releasing twice is a no-op."""
        permit = None
        try:
            self.armed = True
            permit = self.gate.acquire()
            assert permit is not None
            permit.check()
            self.entries += 1
            permit.release()
            self.armed = False
        except KeyboardInterrupt:
            self.interrupted += 1
            if permit is not None:
                permit.release()


def main(seconds: float, *seeds: str) -> None:
    with sync.join(*seeds) as peer:
        visitor = Visitor(peer.semaphore("gate", 2))
        print("ready", flush=True)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            visitor.visit()
        print(visitor.entries, visitor.interrupted, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(float(sys.argv[1]), *sys.argv[2:])
