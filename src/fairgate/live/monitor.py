"""The engine's lock. The engine's thread goes before the users' threads: a lock of Python's is given to anybody.

A user that enters a gate again and again takes the lock most of the time, and would let it go and have it back before
the engine's thread has even woken up. So users step aside while `wanted`: the engine's thread has the turnstile then.
"""

import threading


class Monitor:
    """`with monitor` in the engine's thread, `with monitor.user` in any other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.turnstile = threading.Lock()
        self.wanted = False
        self.user = UserSide(self)

    def __enter__(self) -> None:
        self.wanted = True
        self.turnstile.acquire()
        self.lock.acquire()
        self.wanted = False

    def __exit__(self, *how: object) -> None:
        self.lock.release()
        self.turnstile.release()


class UserSide:
    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.lock = monitor.lock

    def __enter__(self) -> None:
        if self.monitor.wanted:
            with self.monitor.turnstile:
                pass
        self.lock.acquire()

    def __exit__(self, *how: object) -> None:
        self.lock.release()
