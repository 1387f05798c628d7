"""A thread that waits for something to be over: the fastest way to wake it is not to need to.

Unless another thread of this process does it already, who waits reads by itself what other peers say (net/reader.py),
and finds out by that. Else it is woken by a lock that is released when there is news.
"""

import threading

from fairgate.net.reader import Reader, Waiting
from fairgate.net.system import heed


class ThreadWaiter:
    def __init__(self, reader: Reader | None = None) -> None:
        self.reader = reader
        self.news: threading.Lock | None = None  # for who does not read

    def wake(self) -> bool:
        """When what is waited for may be over."""
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
        if not what.is_over():  # as it may have been before there was anything to wake us by
            news.acquire(timeout=-1 if timeout is None else max(timeout, 0))
