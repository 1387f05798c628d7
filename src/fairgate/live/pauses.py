"""Pauses of a user's thread that enters a gate again and again without waiting for anybody.

Such a thread gives Python's global lock away when it reads what has arrived, but has it back before the engine's thread
wakes up, and that thread does not insist on a lock that it sees released. Without a pause from time to time, the engine
would stand still for seconds, and with it the heartbeats that renew the lease.
"""

import os
import time

from fairgate.net.system import clock

EVERY = 5_000_000  # ns: as often as Python lets threads take turns that do not read
SECONDS = 0.0001  # long enough for the engine's thread to wake up and take the lock


class Pauses:
    def __init__(self) -> None:
        self.latest = 0

    def pause(self, now: int) -> None:
        if now - self.latest >= EVERY:
            time.sleep(SECONDS)
            self.latest = clock()
        else:
            os.sched_yield()  # another process may be about to send a request
