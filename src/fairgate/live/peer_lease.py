"""The lease of a peer: until when its users may be inside.

The membership raises it (`raised`), again and again, while a majority of the voters answers. Otherwise, shortly before
its end, all permits of this peer are lost, and nobody is let in until there is a lease again (gate.py withholds grants
meanwhile). The users have until the end to stop: only then may others have their slots, even if they could be told now.
Every use of a permit asks the clock, so a process that was stopped finds its permits lost even before this module runs.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from fairgate.arguments import LONG_AGO, SECOND
from fairgate.live.gate import LiveGate
from fairgate.live.gate_checks import stopping
from fairgate.live.uplink import Uplink
from fairgate.net.system import clock

STOPPING_SECONDS = 0.02  # how often to look whether users have stopped
LAPSED = "this peer cannot reach a majority of the voters of its cluster, and its lease is over"


class LeaseOwner(Protocol):
    """What this module needs of the engine."""

    loop: asyncio.AbstractEventLoop
    gates: dict[str, LiveGate]

    @property
    def traffic(self) -> Uplink: ...

    def step(self) -> AbstractContextManager[None]: ...


class PeerLease:
    def __init__(self, owner: LeaseOwner) -> None:
        self.owner = owner
        self.listeners: list[Callable[[], None]] = []
        self.timer: asyncio.TimerHandle | None = None
        self.end = 0  # ns on CLOCK_BOOTTIME
        self.stopped_at = 0  # ns: when the users that were told to stop have done so; 0 if there are none

    def is_valid(self) -> bool:
        until = self.owner.traffic.lease_until
        return until == 0 or clock() < until

    def revoked(self, why: str) -> None:
        """This peer was excluded: the others wait for the end of its lease. Call it in a step."""
        self.owner.traffic.lease_until = LONG_AGO
        self.stopped_at = 0
        self.lose_all(why)
        self.tell()

    def raised(self, until: int, end: int) -> None:
        """Users may be inside until `until`, and others count them as inside until `end`. Call it in a step.

        A lease that lapsed before has taken all permits with it, even if no timer noticed."""
        uplink = self.owner.traffic
        if not uplink.has_lease():
            self.lapse()
        uplink.lease_until = until
        self.end = end
        if self.timer is None:
            self.watch()
        if uplink.has_lease():
            for gate in self.gates():
                gate.let_in_withheld()
        self.tell()

    def watch(self) -> None:
        """Sets the timer. The lease may be raised before it is due."""
        uplink = self.owner.traffic
        left = [at - uplink.now for at in (uplink.lease_until, self.stopped_at) if at > uplink.now]
        self.timer = self.owner.loop.call_later(min(left) / SECOND, self.may_be_over) if left else None

    def may_be_over(self) -> None:
        with self.owner.step():
            if not self.owner.traffic.has_lease():
                self.lapse()
                self.tell()
            self.free_slots()
            self.watch()

    def lapse(self) -> None:
        if self.lose_all(LAPSED):
            self.stopped_at = self.end
        self.free_slots()

    def free_slots(self) -> None:
        """Those of users that were told to stop, if the time they had is over."""
        if 0 < self.stopped_at <= self.owner.traffic.now:
            self.stopped_at = 0
            for gate in self.gates():
                gate.lease_ended()

    async def until_users_stopped(self, gates: Iterable[LiveGate]) -> None:
        """Before seats of these gates are given up: their slots would be free at once."""
        while self.stopped_at and any(stopping(gate.tickets) for gate in gates):
            await asyncio.sleep(STOPPING_SECONDS)

    def lose_all(self, why: str) -> bool:
        lost = [gate.lose_all(why) for gate in self.gates()]
        return any(lost)

    def tell(self) -> None:
        for listener in self.listeners:
            listener()

    def gates(self) -> Iterable[LiveGate]:
        return list(self.owner.gates.values())
