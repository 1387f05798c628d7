"""Keeps a gate open without requesting a permit, so that its k and protocol persist while nobody uses it."""

import asyncio

from fairgate.live.engine import LiveEngine
from fairgate.net.system import once
from fairgate.recovery.roster import Sit


def keep_open(engine: LiveEngine, name: str, k: int, protocol: str | None) -> str:
    """Takes a seat, and returns the gate's protocol. KMismatch or BadInput if k or protocol differ from the gate's."""
    gate = engine.gate(name, k, protocol)
    for _ in once(engine.user_lock):
        gate.pinned = True
        if not gate.seats:
            gate.free.append(gate.new_seat())
        seats = gate.seats_to_ask_for()
    sit = engine.change(Sit(name, k, gate.protocol, seats))
    asyncio.run_coroutine_threadsafe(sit, engine.loop).result()
    return gate.protocol
