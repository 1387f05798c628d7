"""The processes of `fairgate demo`, which share one gate and report what they do.

They are forked before the parent has any threads, so that modules are imported only once. Each reports its steps as
lines of JSON through its own pipe. They end when they are told to, or when the parent is gone.
"""

import json
import os
import random
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

JOINS, THINKS, WAITS, INSIDE = "joins", "thinks", "waits", "inside"


@dataclass
class DemoPeer:
    """One of the processes, as its parent sees it. Times are seconds on CLOCK_MONOTONIC."""

    number: int
    pid: int
    file: int  # the pipe that it reports through
    state: str = JOINS
    slot: int | None = None
    since: float = field(default_factory=time.monotonic)
    asked: float = 0.0
    entries: list[tuple[float, float, float]] = field(default_factory=list)  # asked, in, out
    messages: int = 0
    rest: bytes = b""

    def hear(self) -> bool:
        """Reads what it has reported since. False at the end of the pipe."""
        data = os.read(self.file, 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.told(**json.loads(line))
        return bool(data)

    def told(self, state: str, at: float, slot: int | None = None, messages: int = 0) -> None:
        if state == WAITS:
            self.asked = at
        elif self.state == INSIDE:
            self.entries.append((self.asked, self.since, at))
        self.state, self.since, self.slot, self.messages = state, at, slot, messages or self.messages


Work = Callable[[Callable[..., None], Callable[[float], bool]], None]


def fork(number: int, stop: tuple[int, int], work: Work) -> DemoPeer:
    """Forks a process that calls `work(tell, goes_on)`.

    `tell(state, ...)` reports a step. `goes_on(seconds)` sleeps and returns whether the demo continues; it ends when
    the write end of the pipe `stop` is closed, which also happens if the parent is killed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return DemoPeer(number, pid, reader)
    code = 1
    try:
        os.close(reader)
        os.close(stop[1])
        for each in (signal.SIGINT, signal.SIGTERM):  # the parent gets it too, and ends the demo
            signal.signal(each, signal.SIG_IGN)
        random.seed(number)

        def tell(state: str, **more: Any) -> None:
            line = json.dumps({"state": state, "at": time.monotonic(), **more})
            os.write(writer, f"{line}\n".encode())

        def goes_on(seconds: float) -> bool:
            return not select.select([stop[0]], [], [], seconds)[0]

        work(tell, goes_on)
        code = 0
    finally:
        os._exit(code)


@dataclass(frozen=True)
class DemoOutcome:
    """What the processes did, according to their own reports."""

    entries: list[int]  # by process
    most_inside: int
    waits: list[float]
    messages: int

    @property
    def total(self) -> int:
        return sum(self.entries)


def outcome(peers: list[DemoPeer]) -> DemoOutcome:
    stays = [(entered, left) for peer in peers for _, entered, left in peer.entries]
    waits = [entered - asked for peer in peers for asked, entered, _ in peer.entries]
    counts = [len(peer.entries) for peer in peers]
    return DemoOutcome(counts, most_at_once(stays), waits, sum(peer.messages for peer in peers))


def most_at_once(stays: list[tuple[float, float]]) -> int:
    """The highest number inside at once. At equal times entries count before exits, so it is never underestimated."""
    moments = sorted([(entered, 0) for entered, _ in stays] + [(left, 1) for _, left in stays])
    inside = most = 0
    for _, leaves in moments:
        inside += -1 if leaves else 1
        most = max(most, inside)
    return most
