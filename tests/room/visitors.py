"""Processes that are inside a gate, or wait for it, until a test ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from fairgate.room.host import GateView, look_at
from fairgate.room.room import Room
from tests.room.children import SECONDS, Child


def visitor(folder: str, k: int = 1, gate: str = "g", **how: Any) -> Child:
    """Asks for a permit, says its slots, and leaves when it hears something. `how` goes to Room.acquire."""

    def work(me: Child) -> None:
        with Room(folder, gate, k) as room:
            me.say("asks")
            permit = room.acquire(**how)
            me.say(permit.slots if permit else "late")
            me.hear()

    child = Child(work)
    assert child.hear() == "asks"
    return child


def holder(folder: str, k: int = 1, gate: str = "g", **how: Any) -> Child:
    """It is inside."""
    child = visitor(folder, k, gate, **how)
    assert child.hear().startswith("(")
    return child


def waiter(folder: str, k: int = 1, gate: str = "g", **how: Any) -> Child:
    """It waits, behind all those that do already."""
    child = visitor(folder, k, gate, **how)
    until(lambda: child.pid in [each.request.pid for each in seen(folder, gate).waiting])
    return child


def seen(folder: str, gate: str = "g") -> GateView:
    found = look_at(folder, gate)
    assert found is not None
    return found


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.002)


def orphans(folder: str, keep_bell: bool = True, note: str = "") -> tuple[int, int]:
    """The command of a process that was killed inside gate g, as `fairgate run` starts it: the pid of both."""

    def work(me: Child) -> None:
        with Room(folder, "g", 1) as room:
            permit = room.acquire(note=note)
            assert permit
            fds = [permit.share()] if keep_bell else []
            script = "import time; time.sleep(60)"
            command = subprocess.Popen([sys.executable, "-c", script], pass_fds=fds, start_new_session=True)
            permit.hand_to(command.pid)
            me.say(command.pid)
            me.hear()

    with Child(work) as child:
        return child.pid, int(child.hear())


def end_group(group: int) -> None:
    """End the processes of a group that are not our children."""
    os.killpg(group, signal.SIGKILL)
