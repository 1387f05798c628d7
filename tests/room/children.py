"""Child processes that use a room, driven line by line from a test."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fairgate.room.calls import clock
from fairgate.room.layout import PATIENT
from fairgate.room.room import Room

SECONDS = 20.0  # until a child counts as stuck


class Child:
    """A forked process that runs `work(child)`. `say` and `hear` talk to its parent, line by line."""

    def __init__(self, work: Callable[[Child], None]) -> None:
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(from_parent)
            os.close(to_parent)
            self.reader, self.writer = to_child, from_child
            try:
                work(self)
            except BaseException as wrong:
                print(f"child {os.getpid()}: {wrong!r}", file=sys.stderr)
            finally:
                os._exit(0)
        os.close(to_child)
        os.close(from_child)
        self.reader, self.writer = to_parent, from_parent
        self.ended = False

    def say(self, word: object) -> None:
        os.write(self.writer, f"{word}\n".encode())

    def hear(self, seconds: float = SECONDS) -> str:
        """The next line, or "" if the other side has ended."""
        line = b""
        while not line.endswith(b"\n"):
            poll = select.poll()  # select() takes no descriptor above 1,023
            poll.register(self.reader, select.POLLIN)
            ready = poll.poll(1000 * seconds)
            if not ready:
                raise TimeoutError(f"nothing within {seconds:g} s")
            byte = os.read(self.reader, 1)
            if not byte:
                return ""
            line += byte
        return line.decode().strip()

    def is_silent(self) -> bool:
        """Has it said nothing so far? A short look: a grant would take about a millisecond."""
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        return not poll.poll(150)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stop(self) -> None:
        """Stop it, and wait until it is stopped."""
        self.send(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if not self.ended:
            self.send(number)
            os.waitpid(self.pid, 0)
            self.ended = True
            os.close(self.reader)
            os.close(self.writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, _: TracebackType | None) -> None:
        self.end()


# What they do.


def visitor(folder: str, k: int, **how: float) -> Callable[[Child], None]:
    """Enters, says its slot, and leaves when it is told to."""

    def work(me: Child) -> None:
        with Room(folder, "g", k) as room:
            me.say("asks")
            permit = room.acquire(**how)  # type: ignore[arg-type]
            if permit is None:
                me.say("late")
                return
            me.say(permit.slots[0])
            while me.hear() == "valid?":
                me.say(permit.is_valid())
            permit.release()
            me.say("left")
            me.hear()

    return work


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def waits(room: Room, count: int) -> None:
    """Until this many requests wait, and have waited for so long that one that is stopped is passed over."""
    until(lambda: len([each for each in room.requests() if not each.inside]) >= count)
    asked = max([each.asked for each in room.requests() if not each.inside], default=0)
    time.sleep(max(0, asked + 2 * PATIENT - clock()) / 1e9)


def bells(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".bell")]
