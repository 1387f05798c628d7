"""Children in time namespaces of their own, where CLOCK_BOOTTIME differs. Only root can make them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.room.children import Child
from tests.room.containers import DIE_WITH_PARENT, REFUSED, child_of
from tests.room.others import libc

NEW_TIME = 0x80
OFFSET = "boottime -200 0"


def new_clock(offset: str = OFFSET) -> bool:
    """From now on the children of this process have another clock. False if that is not allowed."""
    if libc.unshare(NEW_TIME):
        return False
    with open("/proc/self/timens_offsets", "w") as file:
        file.write(offset)
    return True


class Shifted(Child):
    """A child with a clock of its own. `inner` is its process; `pid` is the parent of that, which has our clock."""

    def __init__(self, work: Callable[[Child], None], offset: str = OFFSET) -> None:
        self.inner = 0
        Child.__init__(self, lambda me: enter(me, work, offset))
        said = self.hear()
        if said == REFUSED:
            self.end()
            pytest.skip("this process may not create time namespaces")
        self.inner = child_of(self.pid)
        self.say("go")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill the process with the other clock, and wait until it is dead."""
        if not self.ended and self.inner:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(self.inner, number)
            os.waitpid(self.pid, 0)
            self.ended = True
        Child.end(self, number)


def enter(me: Child, work: Callable[[Child], None], offset: str) -> None:
    if not new_clock(offset):
        me.say(REFUSED)
        return
    if inner := os.fork():
        os.waitpid(inner, 0)
        return
    libc.prctl(DIE_WITH_PARENT, int(signal.SIGKILL))
    me.say("ready")
    me.hear()
    work(me)
