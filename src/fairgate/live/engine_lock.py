"""The engine's lock, which gives the engine's thread priority over users' threads.

A plain lock is not fair. A user's thread that enters a gate again and again would release the lock and have it back
before the engine's thread even wakes up. So while `wanted` is set, users' threads first wait at the turnstile, which
the engine's thread holds.

Users' threads use `for _ in once(lock.lock)` (once.py), not `with lock`: Ctrl-C could strike inside `__enter__`, and
nothing would release the lock then.
"""

from fairgate.net.system import Latch, once


class EngineLock:
    """In the engine's thread use `with lock`; elsewhere `step_aside()` if it is `wanted`, then `once(lock.lock)`."""

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
        for _ in once(self.turnstile):
            pass
