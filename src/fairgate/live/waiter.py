"""How a user's thread waits for its request.

Unless another thread of this process already does so, the waiting thread itself reads what other peers send
(net/reader.py), so that nobody has to wake it. Otherwise it sleeps on a lock that is released when there is news.
"""

import threading

from fairgate.net.reader import Reader, Waiting
from fairgate.net.system import heed


class ThreadWaiter:
    def __init__(self, reader: Reader | None = None) -> None:
        self.reader = reader
        self.news: threading.Lock | None = None  # for a thread that does not read

    def wake(self) -> bool:
        """Called when the wait may be over."""
        if self.news is not None:
            if self.news.locked():
                self.news.release()
        elif self.reader is not None:
            self.reader.ring()
        return True

    def wait(self, what: Waiting, timeout: float | None) -> None:
        if self.reader is None or not self.reader.read_for(what, timeout):
            self.sleep(what, timeout)

    def sleep(self, what: Waiting, timeout: float | None) -> None:
        news = threading.Lock()
        news.acquire()
        self.news = news
        heed()
        if not what.is_over():  # it may have ended before `wake` could see the lock
            news.acquire(timeout=-1 if timeout is None else max(timeout, 0))
