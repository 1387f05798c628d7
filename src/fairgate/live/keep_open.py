"""Keeps a gate open without ever requesting a permit, so that its k and protocol persist while nobody uses it."""

import asyncio

from fairgate.live.engine import LiveEngine
from fairgate.net.roster import Sit


def keep_open(engine: LiveEngine, name: str, k: int, protocol: str) -> None:
    """Takes a seat that is never used for requests. KMismatch or BadInput if k or protocol differ from the gate's."""
    gate = engine.gate(name, k, protocol)
    with engine.user_lock:
        ident = gate.new_seat()
    sit = engine.change(Sit(name, k, protocol, engine.me, (ident,)))
    asyncio.run_coroutine_threadsafe(sit, engine.loop).result()
