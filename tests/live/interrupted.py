"""`python -m tests.live.interrupted SECONDS`: in and out all the time, and whenever Ctrl-C comes, on with it.

It prints how often it came in, and how often it was interrupted, when the time is over, and stays, with all that it may
have forgotten, until stdin is closed.
"""

from __future__ import annotations

import signal
import sys
import time

from fairgate import sync


class Visitor:
    def __init__(self, gate: sync.Semaphore) -> None:
        self.gate = gate
        self.armed = False  # one Ctrl-C a visit, wherever in it
        self.entries = 0
        self.interrupted = 0
        signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def visit(self) -> None:
        """What was interrupted before it had begun can be done again: to release twice is nothing."""
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


def main(seconds: float) -> None:
    with sync.join() as peer:
        visitor = Visitor(peer.semaphore("gate", 2))
        print("ready", flush=True)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            visitor.visit()
        print(visitor.entries, visitor.interrupted, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(float(sys.argv[1]))
