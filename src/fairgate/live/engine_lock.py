"""The engine's lock. The engine's thread goes before the users' threads: a latch is given to anybody.

A user that enters a gate again and again takes the lock most of the time, and would let it go and have it back before
the engine's thread has even woken up. So users step aside while `wanted`: the engine's thread has the turnstile then.

Users take the lock itself: a `with` of a latch (net/system.py), which is C in any build, cannot be broken off by Ctrl-C
between the lock and the body, and one of a class like this can, for the signal is heard inside of `__enter__` too.
"""

from fairgate.net.system import Latch


class EngineLock:
    """`with lock` in the engine's thread; in any other `step_aside` while it is wanted, then `with lock.lock`."""

    def __init__(self) -> None:
        self.lock = Latch()
        self.turnstile = Latch()
        self.wanted = False

    def take(self) -> None:
        self.wanted = True
        self.turnstile.acquire()
        self.lock.acquire()
        self.wanted = False

    def give(self) -> None:
        self.lock.release()
        self.turnstile.release()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *how: object) -> None:
        self.give()

    def step_aside(self) -> None:
        with self.turnstile:
            pass
