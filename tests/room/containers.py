"""Children in pid namespaces of their own, with a /proc of their own, as in a container."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.room.children import Child, until
from tests.room.others import NEW_MOUNTS, RECURSIVE_AND_PRIVATE, libc, mount

NEW_PIDS = 0x20000000
DIE_WITH_PARENT = 1  # prctl
REFUSED = "refused"


class Contained(Child):
    """A child in a container of its own, where it is process 2. `inner` is its id as the test sees it."""

    def __init__(self, work: Callable[[Child], None], options: str = "") -> None:
        Child.__init__(self, lambda me: enter(me, work, options))
        said = self.hear()
        if said == REFUSED:
            self.end()
            pytest.skip("this process may not create pid namespaces")
        self.inner = child_of(int(said))

    def send(self, number: signal.Signals) -> None:
        os.kill(self.inner, number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if not self.ended:
            os.kill(self.pid, number)  # the others die with it
            os.waitpid(self.pid, 0)
            self.ended = True

    def kill(self) -> None:
        """Kill the process in the container, and wait until it is dead."""
        self.send(signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.ended = True


def enter(me: Child, work: Callable[[Child], None], options: str) -> None:
    """`options` are those of its /proc."""
    if libc.unshare(NEW_PIDS | NEW_MOUNTS) or libc.mount(b"none", b"/", None, RECURSIVE_AND_PRIVATE, None):
        me.say(REFUSED)
        return
    told, tell = os.pipe()
    first = os.fork()
    if first:
        me.say(first)
        os.write(tell, b"!")
        os.waitpid(first, 0)
        return
    os.read(told, 1)  # the work must not speak before
    libc.prctl(DIE_WITH_PARENT, int(signal.SIGKILL))
    mount("proc", "/proc", options)
    second = os.fork()  # the first process of a namespace cannot stop itself
    if second:
        os.waitpid(second, 0)
        return
    work(me)


def child_of(pid: int) -> int:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    until(lambda: path.read_text() != "")
    return int(path.read_text())
