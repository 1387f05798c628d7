"""Gates that nobody here uses any more give up their seats, and so leave the roster when no other peer has seats there.

Otherwise a roster would only grow: every name that was ever used would cost something in each of its versions. A gate
rests when nobody here has used it for a minute. If more than `MOST_IDLE` are idle, those that were used last stay, so a
peer that uses one name after the other does not have to wait for the minute. The next request takes new seats, in a
view with a higher number than all before (recovery/roster.py), so fences rise. Meanwhile the gate may have got another
k, as any gate that nobody uses.

A gate at rest is forgotten with the last object that refers to it. If it is opened again before, it is the same one: a
peer has one count of seats per gate.
"""

import asyncio
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakValueDictionary

from fairgate.arguments import SECOND
from fairgate.live.gate import LiveGate
from fairgate.net.system import clock

IDLE_SECONDS = 60.0
LOOKS = 4  # in that time
MOST_IDLE = 64


class RestingOwner(Protocol):
    """What this module needs of the engine."""

    gates: dict[str, LiveGate]

    def step(self) -> AbstractContextManager[None]: ...

    def put_to_rest(self, gate: LiveGate) -> None:
        """Give up its seats, without waiting for that."""


class Resting:
    def __init__(self, owner: RestingOwner) -> None:
        self.owner = owner
        self.gates: WeakValueDictionary[str, LiveGate] = WeakValueDictionary()  # at rest, and still referred to

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS / LOOKS)
            with self.owner.step():
                long_ago = clock() - int(IDLE_SECONDS * SECOND)
                for gate in [gate for gate in self.idle() if gate.used <= long_ago]:
                    self.rest(gate)

    def make_room(self) -> None:
        """A gate has got seats. Half of the idle ones rest together if there are too many: that is one roster."""
        with self.owner.step():
            idle = self.idle()
            for gate in idle[: len(idle) - MOST_IDLE // 2] if len(idle) > MOST_IDLE else ():
                self.rest(gate)

    def idle(self) -> list[LiveGate]:
        """The one that was used last is last."""
        return sorted([gate for gate in self.owner.gates.values() if gate.is_idle()], key=lambda gate: gate.used)

    def rest(self, gate: LiveGate) -> None:
        if gate.seats:
            gate.rest()
            self.owner.put_to_rest(gate)
        else:
            self.forget(gate)

    def forget(self, gate: LiveGate) -> None:
        """It has no seats."""
        del self.owner.gates[gate.name]
        self.gates[gate.name] = gate
